/** What users write: handlers, and the context they get. */
import { requireFunction } from './check-options.js'
import type { Json, MessageMap, MessageOf, Name, Outcome, SendData } from './message.js'

export interface SendOptions {
  /** Events of one key are published in order. */
  key?: string | undefined
  /** The same id twice is a no-op. Default: a random UUID. */
  id?: string | undefined
  subject?: string | undefined
  headers?: Record<string, string> | undefined
  /** Publish no earlier than this. */
  deliverAt?: Date | undefined
}

/** pino's order of arguments, so a pino logger fits as it is. */
export interface Logger {
  debug(o: object, m?: string): void
  info(o: object, m?: string): void
  warn(o: object, m?: string): void
  error(o: object, m?: string): void
}

export type Send<M extends MessageMap> = <const K extends Name<M>>(
  type: K,
  data: SendData<M, K>,
  options?: SendOptions,
) => Promise<{ id: string }>

export interface BatchContext<M extends MessageMap, Tx> {
  /** The database client's own transaction: your writes here commit together with the message. */
  readonly tx: Tx
  /** Writes an event to the outbox, in the same transaction. */
  readonly send: Send<M>
  /** Aborted when the lease is lost, the deadline passes or the box stops. */
  readonly signal: AbortSignal
  /** Your logger, with the message's id, type, consumer, attempt, correlation id and trace id bound. */
  readonly log: Logger
}

/**
 * What to do when nobody knows whether a call happened.
 *
 * @example
 * await ctx.effect('charge', ({ idempotencyKey }) => gateway.charge(order, { idempotencyKey }), {
 *   onUnknown: 'park',
 *   isDefinite: (error) => error instanceof GatewayError && error.status === 402,
 * })
 */
export interface EffectOptions {
  /**
   * The call threw, or the process died before its outcome was on record. `retry` calls again with the same
   * `idempotencyKey`: for services that honour it. `park` quarantines the message as `effect-unknown` until a person has
   * found out, see `admin.answer`. Default: 'retry'.
   */
  onUnknown?: 'retry' | 'park' | undefined
  /** True says that this error means that the call certainly did not happen: the message is retried by its policy. */
  isDefinite?: ((error: unknown) => boolean) | undefined
  /** The deadline of the call. Default: the consumer's `timeoutMs`. */
  timeoutMs?: number | undefined
}

export interface Context<M extends MessageMap, Tx> extends BatchContext<M, Tx> {
  /** The attempt that this is, from 1. */
  readonly attempt: number
  /**
   * Calls something outside the database, and keeps its outcome: a retry gets the recorded outcome and does not call again.
   * Known by its name, within the message.
   */
  readonly effect: <R>(
    name: string,
    run: (call: { idempotencyKey: string; signal: AbortSignal }) => R | Promise<R>,
    options?: EffectOptions,
  ) => Promise<Json<R>>
}

export type Handler<M extends MessageMap, K extends Name<M>, Tx> = (
  message: MessageOf<M, K>,
  ctx: Context<M, Tx>,
) => unknown

/** What a handler's result is for who waits for it: `ResultOf<typeof handlers, 'order.placed'>`. */
export type ResultOf<H, K extends keyof H> = H[K] extends (...args: never) => infer R ? Json<Awaited<R>> : unknown

/** The outcome of a message whose handlers are known. Name it where you wait: `handle` cannot know who handles it. */
export type OutcomeOf<H, K extends keyof H> = Outcome<ResultOf<H, K>>

const BATCH: unique symbol = Symbol.for('oncebox.batch') as never

/** An object, not a branded function: with a function in the union no plain handler gets its parameter types. */
export interface BatchHandler<Msg, M extends MessageMap, Tx> {
  readonly [BATCH]: (messages: readonly Msg[], ctx: BatchContext<M, Tx>) => unknown
}

/** Marks a handler of many messages of one type: one call, one transaction. If it throws, the batch is bisected. */
export function batch<Msg, M extends MessageMap, Tx>(
  run: (messages: readonly Msg[], ctx: BatchContext<M, Tx>) => unknown,
): BatchHandler<Msg, M, Tx> {
  requireFunction('batch: its handler', run)
  return { [BATCH]: run }
}

/** The function inside a batch handler, or undefined for a plain one. */
export function batchRun(
  handler: unknown,
): ((messages: readonly unknown[], ctx: BatchContext<MessageMap, unknown>) => unknown) | undefined {
  return (handler as { [BATCH]?: never } | undefined)?.[BATCH]
}

export type Handlers<M extends MessageMap, Tx> = {
  readonly [K in Name<M>]?: Handler<M, K, Tx> | BatchHandler<MessageOf<M, K>, M, Tx>
} & {
  readonly '*'?: ((message: MessageOf<M>, ctx: Context<M, Tx>) => unknown) | BatchHandler<MessageOf<M>, M, Tx>
}
