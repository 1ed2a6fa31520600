/** Callbacks for alerts and archives. They run after the commit of what they are told. */
import type { Sink } from './brokers/sink.js'
import type { Source } from './brokers/source.js'
import type { Failure, MessageMap, MessageOf, QuarantineReason, State } from './message.js'

export interface Entry<M extends MessageMap> {
  readonly message: MessageOf<M>
  readonly consumer: string
  readonly state: State
  /** When it was handled; undefined if an older version of oncebox stored or handled it. */
  readonly handledAt?: Date
  /** What its handler returned, as a duplicate gets it. */
  readonly result?: unknown
  readonly error?: Failure
  readonly reason?: QuarantineReason
  /** The original bytes, where they could not be decoded. */
  readonly bytes?: Uint8Array
  /** What exactly was wrong, for a quarantined message. */
  readonly detail?: string
  /** Failed attempts, oldest first. Filled in by `admin.message`. */
  readonly attempts?: readonly { readonly attempt: number; readonly at: Date; readonly error: Failure }[]
}

export interface Hooks<M extends MessageMap> {
  /** A message was dead-lettered. */
  dead?(entry: Entry<M>): unknown
  /** A message was quarantined. */
  quarantined?(entry: Entry<M>): unknown
  /** Something failed that will be tried again: a broker is unreachable, the database is away. */
  error?(error: Error, where: { source?: Source; sink?: Sink; consumer?: string }): unknown
  /** Sees handled rows before retention deletes them. If it throws, they are kept and shown again. */
  archive?(entries: readonly Entry<M>[]): Promise<void>
}
