import type { Message } from '../message.js'

/** What a sink answers for a message that it did not publish. */
export interface Refusal {
  readonly error: unknown
  /** Whether the message is worth another try, if it is to blame. */
  readonly retry: boolean
  /**
   * True: the destination is to blame, or may be, and not the message: it is down, full, or set up wrongly. The message
   * waits, and no attempt is counted, unless the destination takes others meanwhile.
   */
  readonly down?: boolean | undefined
  /**
   * The message is not to blame, however others fare: it is tried again after so many milliseconds, an hour at most, and
   * no attempt is counted. 0: it was not tried.
   */
  readonly afterMs?: number | undefined
}

/** How long a call of `publish` may take. */
export interface PublishLimits {
  /** A sink that sends one after the other begins nothing more when half of it is over. */
  readonly timeoutMs: number
  /** Aborted when it is over. A sink that then ends what it has begun, and answers, is never called beside itself. */
  readonly signal: AbortSignal
}

/**
 * The third seam: where events go.
 *
 * `publish` resolves after the broker has confirmed, with one answer per message, in order: undefined for a published
 * one, else a refusal. Within a key it sends nothing after a failure. It may throw: then nothing was published, and
 * the destination counts as down. It may heed the limits: what it does not come to it answers as not tried.
 */
export interface Sink {
  publish(batch: readonly Message[], limits?: PublishLimits): Promise<readonly (undefined | Refusal)[]>
  close(): Promise<void>
}
