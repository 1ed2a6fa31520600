/** Words for people: spans of time, numbers that were counted to an end, and calls to copy. */
import { escapeUnits } from '../../escape.js'
import { COUNTED_TO } from '../../postgres/sql/rules.js'

const UNITS: readonly [ms: number, name: string][] = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1_000, 's'],
]

/** `90 min` is `1 h 30 min`: two units at most. */
export function span(ms: number): string {
  const first = UNITS.findIndex(([unit]) => ms >= unit)
  if (first < 0) return `${Math.round(ms)} ms`
  const [large, name] = UNITS[first]!
  const whole = Math.floor(ms / large)
  const next = UNITS[first + 1]
  const rest = next ? Math.floor((ms - whole * large) / next[0]) : 0
  return rest > 0 ? `${whole} ${name} ${rest} ${next![1]}` : `${whole} ${name}`
}

/** Counts end somewhere. */
export function many(count: number): string {
  return count >= COUNTED_TO ? `${COUNTED_TO} or more` : String(count)
}

/** `1 message`, `2 messages`, `10000 or more messages` */
export function counted(count: number, thing: string, things = `${thing}s`): string {
  return `${many(count)} ${count === 1 ? thing : things}`
}

/** The form of a verb that so many take. */
export function verb(count: number, one: string, more: string): string {
  return count === 1 ? one : more
}

export function size(bytes: number): string {
  const mib = bytes / 1_048_576
  return mib >= 1_024 ? `${(mib / 1_024).toFixed(1)} GiB` : `${mib.toFixed(mib < 10 ? 1 : 0)} MiB`
}

/** A string in a call to copy: what was received from outside stays a string there, on one line. */
export function quoted(text: string): string {
  const inner = JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")
  return `'${escapeUnits(inner, /[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g)}'`
}

/** The same in SQL. */
export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}

/** A name in SQL, whatever is in it. */
export function identifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
