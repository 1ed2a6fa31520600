/** What a chart shows, in a sentence for whoever does not see it. */
import type { Values } from './lines.js'

interface Drawn {
  /** "Lag, last hour" */
  readonly title: string
  readonly times: readonly number[]
  readonly values: Values
  readonly limit?: number | undefined
  write(value: number): string
  when(time: number): string
}

export function sentenceOf({ title, times, values, limit, write, when }: Drawn): string {
  const known = values.flatMap((value, n) => (value === null ? [] : [{ value, at: times[n]! }]))
  const last = known.at(-1)
  if (!last) return `${title}: nothing recorded yet.`
  const top = known.reduce((most, one) => (one.value > most.value ? one : most))
  const begin = `${title}: ${write(last.value)} now, ${top.value === last.value ? 'the highest there was' : `${write(top.value)} at most, at ${when(top.at)}`}.`
  if (limit === undefined) return begin
  const since = known.findLastIndex(({ value }) => value <= limit)
  const above = last.value > limit ? ` Above its limit since ${when(known[since + 1]!.at)}.` : ''
  return `${begin} Limit ${write(limit)}.${above}`
}
