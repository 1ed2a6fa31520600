/**
 * What the charts draw: the history of the box by steps, and after it what this tab has heard since. A step that nobody recorded
 * is a gap.
 */
import type { History, Overview, Series } from '../../../src/dashboard/answers/index.js'

export type Values = (number | null)[]

/** All of the same length. Times are seconds since 1970, lag is in ms, the rest is per second. */
export interface Lines {
  readonly times: number[]
  readonly lagMs: Values
  readonly in: Values
  readonly out: Values
  readonly depth: Values
  readonly duplicates: Values
}

/** What the tab keeps of one reading of the box. */
export interface Reading {
  readonly at: number
  readonly lagMs: number | null
  readonly pending: number
  readonly rates?: { readonly in: number; readonly out: number; readonly duplicates: number }
  readonly consumers: Readonly<Record<string, number>>
}

/** Paused consumers are not behind. */
export function readingOf({ at, consumers, rates }: Overview): Reading {
  const running = consumers.filter(({ paused, name }) => !paused && name !== '')
  return {
    at: Date.parse(at) / 1000,
    lagMs: running.length === 0 ? null : Math.max(...running.map(({ lagMs }) => lagMs)),
    pending: consumers.reduce((all, { pending }) => all + pending, 0),
    ...(rates && {
      rates: { in: rates.inPerSecond, out: rates.outPerSecond, duplicates: rates.duplicatesPerSecond },
    }),
    consumers: Object.fromEntries(consumers.map(({ name, lagMs }) => [name, lagMs])),
  }
}

/** A silence longer than this is a gap: the tab was hidden, or paused. */
const SILENCE_S = 30

export function linesOf(history: History | undefined, readings: readonly Reading[]): Lines {
  const step = (history?.stepMs ?? 0) / 1000
  const lines = history ? ofHistory(history) : none()
  const known = knownUntil(lines, step)
  let last = lines.times.at(-1) ?? -Infinity
  for (const reading of readings) {
    // The middle of what is recorded already is not told twice.
    if (reading.at <= known || reading.at <= last) continue
    if (last !== -Infinity && reading.at - last > Math.max(SILENCE_S, 2 * step)) push(lines, last + 1)
    push(lines, reading.at, reading)
    last = reading.at
  }
  return lines
}

function none(): Lines {
  return { times: [], lagMs: [], in: [], out: [], depth: [], duplicates: [] }
}

/** Steps at the end that nobody recorded are left to the readings. */
function ofHistory({ times, stepMs, total }: History): Lines {
  const perSecond = (values: Series['received']): Values =>
    values.map((value) => (value === null ? null : (value / stepMs) * 1000))
  const length = 1 + times.findLastIndex((_, n) => total.pending[n] != null || total.received[n] != null)
  const upTo = <T>(values: readonly T[]): T[] => values.slice(0, length)
  return {
    times: upTo(times),
    lagMs: upTo(total.lagMs),
    in: perSecond(upTo(total.received)),
    out: perSecond(upTo(total.handled)),
    depth: upTo(total.pending),
    duplicates: perSecond(upTo(total.duplicates)),
  }
}

function knownUntil({ times }: Lines, step: number): number {
  const last = times.at(-1)
  return last === undefined ? -Infinity : last + step
}

function push(lines: Lines, at: number, reading?: Reading): void {
  lines.times.push(at)
  lines.lagMs.push(reading?.lagMs ?? null)
  lines.depth.push(reading?.pending ?? null)
  lines.in.push(reading?.rates?.in ?? null)
  lines.out.push(reading?.rates?.out ?? null)
  lines.duplicates.push(reading?.rates?.duplicates ?? null)
}

/** The lag of one consumer, for a sparkline of so many points. */
export function sparkOf(
  name: string,
  { history, readings, points = 28 }: { history: History | undefined; readings: readonly Reading[]; points?: number },
): Values {
  const kept = history?.consumers[name]?.lagMs ?? []
  const heard = readings.map(({ consumers }) => consumers[name] ?? null)
  const known = (values: readonly (number | null)[]): number => values.filter((value) => value !== null).length
  // Where little is on record yet, the tab knows more.
  const from = known(kept) >= Math.min(points, known(heard)) ? [...kept, heard.at(-1) ?? null] : heard
  return thin(from, points)
}

/** So many values at most: of each part the largest, since a peak is what somebody looks for. */
export function thin(values: readonly (number | null)[], most: number): Values {
  if (values.length <= most) return [...values]
  return Array.from({ length: most }, (_, n) => {
    const part = values.slice(Math.floor((n * values.length) / most), Math.floor(((n + 1) * values.length) / most))
    const known = part.filter((value) => value !== null)
    return known.length === 0 ? null : Math.max(...known)
  })
}
