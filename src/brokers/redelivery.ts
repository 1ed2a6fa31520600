import type { Outcome } from '../message.js'

/** Another worker runs a busy message right now: sooner would be a hot loop. */
const LEAST_MS = 500
const MOST_MS = 3_600_000

/** How long a message that may not be acknowledged waits until it is delivered again. */
export function redeliverAfterMs({ retryAt }: Outcome, nowMs: number = Date.now()): number {
  return Math.min(MOST_MS, Math.max(LEAST_MS, retryAt ? retryAt.getTime() - nowMs : 0))
}
