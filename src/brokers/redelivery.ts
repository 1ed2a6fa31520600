import { backoffMs } from '../backoff.js'
import type { Outcome } from '../message.js'

/** Another worker runs a busy message right now: sooner would be a hot loop. */
const LEAST_MS = 500
const MOST_MS = 3_600_000
/** Where nobody says when: each time twice as long, up to this. */
const MOST_UNASKED_MS = 60_000
/** Short, so that everything goes on within seconds of the return of the database. */
const MOST_AWAY_MS = 3_000

/** How long a message that may not be acknowledged waits until it is delivered again. */
export function redeliverAfterMs({ retryAt }: Outcome, nowMs: number = Date.now()): number {
  return Math.min(MOST_MS, Math.max(LEAST_MS, retryAt ? retryAt.getTime() - nowMs : 0))
}

/** The same, for an adapter that knows how often the message failed here: the box counts nothing of a direct consumer. */
export function failedAgainAfterMs(outcome: Outcome, failures: number): number {
  if (outcome.status !== 'failed' || outcome.retryAt) return redeliverAfterMs(outcome)
  return Math.max(LEAST_MS, backoffMs(failures, LEAST_MS, MOST_UNASKED_MS))
}

/** How long to wait before the box is asked again to take what it rejected, so many times in a row. */
export function awayMs(rejections: number): number {
  return backoffMs(rejections, LEAST_MS, MOST_AWAY_MS)
}
