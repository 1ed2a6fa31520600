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
  readonly attempts?: readonly FailedAttempt[]
}

/** An attempt that failed. */
export interface FailedAttempt {
  readonly attempt: number
  readonly at: Date
  readonly error: Failure
  /** How long it took; undefined if nothing ran, or an older version recorded it. */
  readonly ms?: number
  /** Where it ran: host and process id. */
  readonly worker?: string
}

/**
 * Who retries a message that failed, and when: as its policy says. A source is told that time; without a policy (direct) there
 * is none.
 */
export interface Retrial {
  readonly retryBy: 'box' | 'source'
  readonly retryAt?: Date
}

/** Where something failed, or works again. */
export interface Place {
  readonly source?: Source
  readonly sink?: Sink
  readonly consumer?: string
  /** Of the box itself: what deletes by age, what hears of messages that other processes have stored, what reads figures. */
  readonly part?: 'retention' | 'wake-ups' | 'metrics' | 'history'
}

/**
 * Messages that a worker had claimed which died, or lost its lease. They run again, one by one, each with its attempt counted
 * first.
 */
export interface Takeover {
  readonly consumer: string
  readonly messages: readonly { readonly id: string; readonly source: string; readonly type: string }[]
}

/** They are methods: called on the object that they came with. */
export interface Hooks<M extends MessageMap> {
  /** An attempt failed, and there will be another. Not told of `RetryLater`, nor of deadlocks and the like. */
  failed?(entry: Entry<M>, retrial: Retrial): unknown
  /** A message was dead-lettered. */
  dead?(entry: Entry<M>): unknown
  /** A message was quarantined. */
  quarantined?(entry: Entry<M>): unknown
  /** A worker of this process took messages over: once for each claim. A crash, a frozen process, or a lease that is too short. */
  takenOver?(takeover: Takeover): unknown
  /**
   * Something fails that is tried again: a broker is unreachable, the database is away. Once for each cause and place. An
   * error of the database comes without what may quote a message: `detail`, `where`, a query and its parameters.
   */
  error?(error: Error, where: Place): unknown
  /** What `error` was told of works again. */
  recovered?(where: Place): unknown
  /** Sees handled rows before retention deletes them. If it throws, they are kept and shown again. */
  archive?(entries: readonly Entry<M>[]): Promise<void>
}
