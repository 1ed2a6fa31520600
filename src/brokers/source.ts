import type { Incoming, Outcome } from '../message.js'

/** One line that says what in the broker's configuration would lose messages, and the setting to change. */
export type Warn = (text: string) => void

export type Deliver = (batch: readonly Incoming[]) => Promise<readonly Outcome[]>

/**
 * The second seam: where messages come from.
 *
 * `start` begins to pull and calls `deliver` with batches. `deliver` resolves after the commit, with one outcome per
 * message, in order; only then may the source acknowledge, and only those whose outcome says `ack`. If `deliver`
 * rejects, nothing of the batch may be acknowledged; the box has told `hooks.error` then. A source keeps one `deliver`
 * in flight per key or partition. A source that loses its broker reconnects by itself, and says so by `report(error)`,
 * and `report()` once it is back: the box tells `hooks.error` and `hooks.recovered`, and answers `health()` by it.
 * What works and would lose messages one day, such as a limit of the broker, it says by `warn`, however often: the box
 * logs each line once. A `start` that rejects is tried again by the box. A `start` while it runs changes nothing, and is refused
 * with another `deliver`: a source belongs to one box. `stop` stops pulling, waits for the deliveries in flight and
 * acknowledges them; then it may be started again. A `push` source (a webhook) is attached at once and works without
 * `start()` of the box.
 */
export interface Source {
  /**
   * What the log and `health()` call it. Default: its position in the box. On an object that is a sink as well it is the
   * sink's name in the outbox.
   */
  readonly name?: string | undefined
  readonly push?: boolean | undefined
  /** A push source behind a broker, which has checked who may publish: `from` treats it like other brokers. */
  readonly broker?: boolean | undefined
  /** How long a delivery that somebody captured can be sent again; consumers have to remember for longer. */
  readonly replayMs?: number | undefined
  /** What of a message tells two bodies under one id apart; false for nothing. Default: all of its data. */
  readonly fingerprint?: ((message: Incoming) => unknown) | undefined
  start(deliver: Deliver, report?: (problem?: unknown) => void, warn?: Warn): Promise<void>
  stop(): Promise<void>
}
