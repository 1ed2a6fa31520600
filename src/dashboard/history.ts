/** History: what the last hours and days were like, in steps that a chart has room for. */
import type { Runtime } from '../runtime.js'
import type { History, Series } from './answers/index.js'

const MOST_STEPS = 300
/** In minutes: people can tell what they see. */
const STEPS = [1, 2, 3, 5, 10, 15, 20, 30, 40]
const MINUTE_MS = 60_000
/** After the end of a minute everybody has had the time to write it down. */
const GRACE_MS = 10_000

/** `from` and `step` are minutes since 1970. */
export interface Steps {
  readonly from: number
  readonly step: number
  readonly count: number
}

/** The last step ends with the last minute that is over, so that every step is whole. */
export function stepsOf(minutes: number, nowMs: number): Steps {
  const step = STEPS.find((one) => minutes / one <= MOST_STEPS) ?? STEPS.at(-1)!
  const count = Math.ceil(minutes / step)
  const end = Math.floor((nowMs - GRACE_MS) / MINUTE_MS)
  return { from: end - count * step, step, count }
}

export async function readHistory(_reads: Runtime, minutes: number): Promise<History> {
  const now = Date.now()
  const { from, step, count } = stepsOf(minutes, now)
  const none = Array.from({ length: count }, () => null)
  const total: Series = { received: none, handled: none, failed: none, duplicates: none, pending: none, lagMs: none }
  return Promise.resolve({
    at: new Date(now).toISOString(),
    stepMs: step * MINUTE_MS,
    times: none.map((_, at) => (from + at * step) * 60),
    total,
    consumers: {},
  })
}
