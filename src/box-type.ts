/** What a box is to those who use it. `box.ts` makes one. */
import type { Admin } from './admin/index.js'
import type { Sink } from './brokers/sink.js'
import type { Source } from './brokers/source.js'
import type { FrontDoor } from './front-door.js'
import type { Handlers, SendOptions } from './handler.js'
import type { Health } from './health.js'
import type { FromArguments } from './inbox/origin.js'
import type { ConsumerOptions } from './inbox/options.js'
import type { StartOptions } from './inbox/running.js'
import type { DataIn, Json, MessageMap, Name, OnceOutcome, SendData } from './message.js'
import type { SinkOptions } from './outbox/options.js'
import type { Driver } from './postgres/driver.js'

export interface Consumer {
  readonly name: string
  start(): Promise<void>
  stop(options?: { timeoutMs?: number | undefined }): Promise<void>
  drain(): Promise<void>
}

export interface Box<M extends MessageMap, Tx, TxIn = Tx> {
  /** Brings the schema up to date, under a lock, and registers the consumers declared so far. */
  migrate(): Promise<{ from: number; to: number }>
  /** Declares a consumer; its name is the unit of deduplication. */
  consumer(name: string, handlers: Handlers<M, Tx>, options?: ConsumerOptions<M>): Consumer
  /** Always stores: persists for every subscribed consumer and answers after the commit, in order. */
  readonly receive: FrontDoor<M>
  /** Always runs now: dedup, run and record in one transaction per group; answers after the commit. */
  readonly handle: FrontDoor<M>
  /** Runs `work` in your transaction, only if this consumer has not handled this message. Throws BUSY. */
  once<R>(
    tx: TxIn,
    consumer: string,
    message: { id: string; source?: string; type?: Name<M>; data?: unknown; time?: Date | string },
    work: () => R | Promise<R>,
  ): Promise<OnceOutcome<Json<R>>>
  /** Writes an event to the outbox, in your transaction. */
  send<const K extends Name<M>>(tx: TxIn, type: K, data: SendData<M, K>, options?: SendOptions): Promise<{ id: string }>
  sendMany(
    tx: TxIn,
    messages: readonly { [K in Name<M>]: { type: K; data: DataIn<M, K> } & SendOptions }[Name<M>][],
  ): Promise<{ id: string }[]>
  /** Attaches a source to take messages from, and says what it may send. A push source has to name its `types`. */
  from<S extends Source>(source: S, ...options: FromArguments<M, S>): S
  /** Attaches a broker to publish to. Other processes know the sink by its name: the option, else its `name` property. */
  to<S extends Sink>(sink: S, options?: SinkOptions<M>): S
  /** With `consumers`, runs these alone: what arrives for the others is stored for a process that runs them. */
  start(options?: StartOptions): Promise<void>
  /** Stops pulling, settles what is in flight, releases claims, closes sinks. Your pool stays open. */
  stop(options?: { timeoutMs?: number | undefined }): Promise<void>
  /**
   * Runs until nothing is due, or until the box is stopped. Works without `start()`, also on a box that was stopped.
   * It does not wait for messages that ask to be run later, not even for those that ask for no delay.
   */
  drain(): Promise<void>
  /** Without `maxLagMs`, messages may wait for as long as something works on others of their consumer. */
  health(limits?: { maxLagMs?: number | undefined }): Promise<Health>
  /** What this process has counted, and the figures of the database, as text for Prometheus. See `oncebox/monitoring`. */
  metrics(): Promise<string>
  readonly admin: Admin<M>
}

/** The box of a vocabulary, for a field or a parameter: with a transaction, `PoolClient`, or with a driver, `typeof db`. */
export type BoxOf<M extends MessageMap, D> =
  D extends Driver<infer Tx, infer TxIn> ? (IsDriver<D, Tx> extends true ? Box<M, Tx, TxIn> : Box<M, D>) : Box<M, D>

/** An EntityManager of TypeORM has methods of the same names, and would pass for a driver whose transactions nobody knows. */
type IsDriver<D, Tx> = unknown extends Tx ? (Driver<unknown> extends D ? true : false) : true
