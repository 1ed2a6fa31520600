import type { Incoming, Outcome } from '../message.js'

/**
 * The second seam: where messages come from.
 *
 * `start` begins to pull and calls `deliver` with batches. `deliver` resolves after the commit, with one outcome per
 * message, in order; only then may the source acknowledge, and only those whose outcome says `ack`. If `deliver`
 * rejects, nothing of the batch may be acknowledged. A source keeps one `deliver` in flight per key or partition.
 * `stop` stops pulling, waits for the deliveries in flight and acknowledges them. A `push` source (a webhook) is
 * attached at once and works without `start()` of the box.
 */
export interface Source {
  readonly push?: boolean
  /** What of a message tells two bodies under one id apart; false for nothing. Default: all of its data. */
  readonly fingerprint?: (message: Incoming) => unknown
  start(deliver: (batch: readonly Incoming[]) => Promise<readonly Outcome[]>): Promise<void>
  stop(): Promise<void>
}
