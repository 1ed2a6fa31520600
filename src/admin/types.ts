/** What the admin takes and answers: the contract of `box.admin`, of the command line and of the dashboard. */
import type { Entry } from '../hooks.js'
import type { DoctorOptions, Finding } from './doctor/index.js'
import type { MessageMap, Name, QuarantineReason, State } from '../message.js'

/** Which messages. All criteria must be met; a list is met by any of its elements. */
export interface Filter<M extends MessageMap = MessageMap> {
  /** Default `inbox`. */
  box?: 'inbox' | 'outbox' | undefined
  /** `''` stands for messages that were refused before they reached a consumer. In the outbox: the sink. */
  consumer?: string | undefined
  state?: State | readonly State[] | undefined
  type?: Name<M> | readonly Name<M>[] | undefined
  key?: string | undefined
  /** The producer's id. */
  id?: string | readonly string[] | undefined
  /** The producer. */
  source?: string | undefined
  /** Why it is in quarantine. */
  reason?: QuarantineReason | undefined
  /** Part of the last failure's message. */
  error?: string | undefined
  /** What its failure has in common with others. Of what waits for somebody: dead, discarded, quarantined, failed on arrival. */
  fingerprint?: string | readonly string[] | undefined
  /** It blocks its key: others wait behind it. */
  blocking?: true | undefined
  /** Received before this time. */
  before?: Date | undefined
  /** Received at this time or after it. */
  after?: Date | undefined
  /** The data contains this, as PostgreSQL's `@>` would have it. Judged among the rows that the other criteria select. */
  data?: Readonly<Record<string, unknown>> | undefined
}

/** At least one criterion with a value: `discard({ id: params.id })` with an undefined id would match everything. */
export type Criteria<F> = { [K in keyof F]-?: Required<Pick<F, K>> & Omit<F, K> }[keyof F]

/** Who does it, and why, for the audit. The role that the database knows is written down in any case. */
export interface Signed {
  by?: string | undefined
  reason?: string | undefined
}

/** What somebody did, or the box on its own. */
export interface AuditRecord {
  readonly at: Date
  /** `retry`, `discard`, `pause`, `resume`, `answer`, `prune`, `remove-sink`, `remove-consumer`, `mark-handled`, … */
  readonly action: string
  /** What was asked for, how many messages it changed, and why. */
  readonly detail: Readonly<Record<string, unknown>>
  /** Who said that they did it. */
  readonly by?: string
  /** The database's role under which it was done, and the one that had logged in. */
  readonly role?: string
  readonly login?: string
}

export interface Bulk extends Signed {
  /** At most so many. */
  limit?: number | undefined
  /** At most so many in a second. */
  perSecond?: number | undefined
  /** Count only. */
  dryRun?: boolean | undefined
  /** Aborted: stops between two batches, writes the audit, and answers with how many it changed. */
  signal?: AbortSignal | undefined
  /** Told after each batch how many were changed so far, or counted. */
  progress?: ((count: number) => void) | undefined
}

/** A sink, as other processes know it. */
export interface SinkInfo {
  readonly name: string
  /** The types that it wants; undefined: all of them. */
  readonly types?: readonly string[]
  /** The hosts of the processes that have it attached. */
  readonly processes: readonly string[]
  /** When a process said last that it has the sink; undefined if none did. */
  readonly seenAt?: Date
}

export type Counts = Readonly<Record<State, number>> & {
  /** The age of the oldest message that is due and waits, in ms; 0 if none does, and for events that no sink wants. */
  readonly lagMs: number
  /** Present if there are too many rows to count, and some counts were taken from the planner's statistics. */
  readonly estimated?: true
}

export interface Status {
  /** By name. `''` has what was refused before it reached a consumer, and is there only if there is any. */
  readonly consumers: Readonly<Record<string, Counts & { readonly paused?: true }>>
  /** By type; an event counts once for each sink it is still to be published to. */
  readonly outbox: Readonly<Record<string, Counts>>
}

/** A consumer, as other processes know it. */
export interface ConsumerInfo {
  readonly name: string
  /** The types that it takes; `*` for every type not listed. */
  readonly types: readonly string[]
  readonly order: 'none' | 'key'
  /** Whether it has a business key, in some process. */
  readonly identity: boolean
  readonly retainMs: number
  readonly paused: boolean
  /** This process has declared it. */
  readonly local: boolean
  /** Host and process id of those that run it now: they were seen in the last 90 s. */
  readonly processes: readonly string[]
  /** When one was seen last that runs it; undefined if none was. */
  readonly seenAt?: Date
}

/** A message that something else has handled. */
export interface HandledId {
  id: string
  /** The producer. Default: that of the call, else none. */
  source?: string | undefined
  /** Default: that of the call, else any type. A consumer with a business key needs it. */
  type?: string | undefined
  /** When it was handled: it is remembered from then on, for as long as the consumer retains. Default: now. */
  at?: Date | undefined
}

export interface MarkOptions extends Signed {
  /** The producer of all that do not name one. */
  source?: string | undefined
  /** The type of all that do not name one. */
  type?: string | undefined
}

export interface Pruning extends Signed {
  /** Aborted: stops between two batches, writes the audit, and answers with how many it deleted. */
  signal?: AbortSignal | undefined
  /** Told of each consumer of which something is left, because a transaction holds its watermark. Default: the logger is. */
  held?: ((consumer: string) => void) | undefined
}

export interface Removal extends Signed {
  /** Gives up what the consumer has not handled: what waits for it, its dead letters and its quarantine. Default: false. */
  discard?: boolean | undefined
  /** Forgets what the consumer has handled, too: if it comes back, every copy is new. Default: false. */
  forget?: boolean | undefined
}

export interface Admin<M extends MessageMap> {
  /** How many messages there are, by consumer and state. */
  status(): Promise<Status>
  /**
   * Lists messages, newest first. `cursor` leads to the next page and is absent at the end. A page may hold fewer than
   * `limit` (default 50, at most 1000) and still have a cursor: the work of one call is bounded.
   */
  messages(
    filter?: Filter<M>,
    page?: { cursor?: string | undefined; limit?: number | undefined },
  ): Promise<{ entries: Entry<M>[]; cursor?: string }>
  /** Everything known of an id, with its failed attempts: one entry per consumer, and per body in quarantine. */
  message(at: { id: string; source?: string; consumer?: string }): Promise<Entry<M>[]>
  /**
   * Makes messages pending again, oldest first: dead, quarantined and discarded ones; with `state: 'handled'` it is a
   * replay. A message from quarantine goes through the front door again, whatever its age; if it is refused again it
   * stays and does not count. Answers with the count.
   */
  retry(filter: Criteria<Filter<M>> | 'all', options?: Bulk): Promise<number>
  /**
   * Gives messages up, oldest first: dead and quarantined ones; with `state: 'pending'` those that wait, too. What is
   * handled or held by a worker is never touched. Answers with the count.
   */
  discard(filter: Criteria<Filter<M>> | 'all', options: Bulk & { reason: string }): Promise<number>
  /** Stops claiming a consumer's messages, in all processes. They are still received. */
  pause(consumer: string, options?: Signed): Promise<void>
  resume(consumer: string, options?: Signed): Promise<void>
  /**
   * Tells what a person found out about an effect whose outcome was unknown: it happened, with this result, or it did
   * not and is called again. The parked message goes on.
   */
  answer(
    at: { consumer: string; id: string; source?: string; effect: string },
    answer: { happened: true; result?: unknown } | { happened: false },
    options?: Signed,
  ): Promise<void>
  /**
   * Records messages as handled that something else has handled, such as what a dedup table of your own knows: copies are
   * duplicates from then on. What waits under such an id is settled without being run, and so is what is dead; what a worker
   * holds is waited for, after the others, and if that takes longer than a minute it throws `BUSY`. Idempotent. Answers how many
   * were not handled before.
   */
  markHandled(
    consumer: string,
    ids: Iterable<string | HandledId> | AsyncIterable<string | HandledId>,
    options?: MarkOptions,
  ): Promise<number>
  /** The consumers that are registered, or that this process has declared, by name. */
  consumers(): Promise<readonly ConsumerInfo[]>
  /**
   * Removes a consumer that no process runs any more, with its subscriptions. Throws `CONSUMER_IN_USE` while one does, and
   * `CONSUMER_HAS_MESSAGES` while there is something that it has not handled, unless `discard` gives that up. What it has
   * handled is remembered until retention takes it, unless `forget` is said. Answers with the number of messages that it removed.
   */
  removeConsumer(name: string, options?: Removal): Promise<number>
  /** The sinks there are, by name. */
  sinks(): Promise<readonly SinkInfo[]>
  /**
   * Removes a sink that no process attaches any more, and what was still to be published to it. Throws `SINK_IN_USE` while
   * one does. Answers with the number of events that it was still to get.
   */
  removeSink(sink: string, options?: Signed): Promise<number>
  /**
   * Deletes now what retention would delete by and by. Answers with the number of messages. Throws what `hooks.archive` throws, after
   * which no message is deleted.
   */
  prune(options?: Pruning): Promise<number>
  /**
   * Looks at the box and its server for what is wrong, or soon will be: each finding says why it matters and what mends it, the
   * serious ones first. Healthy: none. It reads only, and a bounded part of what there is.
   */
  doctor(options?: DoctorOptions): Promise<readonly Finding[]>
  /** What was done, newest first. `cursor` leads to the next page (`limit` default 50, at most 1000) and is absent at the end. */
  audit(page?: { cursor?: string | undefined; limit?: number }): Promise<{ records: AuditRecord[]; cursor?: string }>
}
