/**
 * # Glossary
 *
 * - **message**: what a producer sent, in CloudEvents' words: `id` unique within `source`, `type`, `data`, and
 *   optionally `key`, `subject`, `time` and `headers`.
 * - **consumer**: a named set of handlers; the unit of deduplication. Each message has one fate per consumer.
 * - **source**, **sink**: the broker that messages come from and go to. (`message.source` is the producer.)
 * - **claim**: a batch of messages leased to one worker, under one random token.
 * - **group**: messages of a claim whose handlers share a transaction.
 * - **settle**: record, in the handlers' transaction, that their messages are handled.
 * - **lane**: all messages of one key, for consumers with `order: 'key'`.
 * - **suspect**: a message whose last worker died while holding it. It runs alone, its attempt counted first.
 *
 * # States of a message, per consumer
 *
 *     receive ──> pending ──claim──> processing ──settle──> handled
 *                    ^                   │ throws
 *                    ├──after a delay────┤
 *                    │                   └─attempts used up, or Reject──> dead
 *                    └──────────── retry by a person ───────────────── dead, discarded, quarantined
 *
 * A message that cannot be judged or handled safely (no id, another body under a known id, too old, not allowed, …) is
 * `quarantined` with a reason and its original bytes. A person's `discard` makes it `discarded`.
 */
import { checkMessages } from './check-options.js'
import type { StandardSchemaV1 } from './standard-schema.js'

export type MessageMap = Readonly<Record<string, StandardSchemaV1>>

/** A types-only vocabulary that can be annotated, so that `isolatedDeclarations` packages can export it. */
export type TypedMessages<E> = { readonly [K in keyof E & string]: StandardSchemaV1<E[K], E[K]> }

export type Name<M> = keyof M & string
export type DataIn<M extends MessageMap, K extends Name<M>> = StandardSchemaV1.InferInput<M[K]>
export type DataOut<M extends MessageMap, K extends Name<M>> = StandardSchemaV1.InferOutput<M[K]>

/** `send` with a union of names must satisfy all of them: plain `DataIn<M, K>` would accept any one. */
export type SendData<M extends MessageMap, K extends Name<M>> = {
  [P in K]: (data: DataIn<M, P>) => void
}[K] extends (data: infer D) => void
  ? D
  : never

/** What a stored result looks like when it comes back: `Date` is a string, functions are gone. */
export type Json<T> = 0 extends 1 & T
  ? // eslint-disable-next-line @typescript-eslint/no-explicit-any -- any in, any out
    any
  : unknown extends T
    ? unknown
    : T extends string | number | boolean | null
      ? T
      : T extends { toJSON(): infer J }
        ? Json<J>
        : T extends undefined | void | symbol | bigint | ((...a: never) => unknown)
          ? undefined
          : T extends readonly (infer E)[]
            ? Json<E>[]
            : { [K in keyof T as T[K] extends symbol | ((...a: never) => unknown) ? never : K]: Json<T[K]> }

export interface Message<K extends string = string, D = unknown> {
  readonly id: string
  readonly source: string
  readonly type: K
  readonly key?: string
  readonly subject?: string
  readonly time?: Date
  readonly data: D
  readonly headers: Readonly<Record<string, string>>
  readonly receivedAt: Date
  /** 1 on the first run, and one more for each attempt that failed. */
  readonly attempt: number
  /** The id of the message that started the conversation; its own id if it is the first. */
  readonly correlationId: string
  /** The id of the message whose handler sent this one. */
  readonly causationId?: string
}

/** One name: that message. Several, or none given: a union discriminated by `type`. */
export type MessageOf<M extends MessageMap, K extends Name<M> = Name<M>> = { [P in K]: Message<P, DataOut<M, P>> }[K]

type Envelope<K extends string> = {
  id: string | undefined
  type: K
  source?: string | undefined
  key?: string | undefined
  subject?: string | undefined
  time?: Date | string | undefined
  headers?: Readonly<Record<string, string>> | undefined
  /** Set by a source that knows the message was delivered before and never acknowledged: its worker may have died. */
  redelivered?: boolean | undefined
}

type Payload<D> = { data: D; body?: never } | { body: Uint8Array | string; data?: never }

/** What you hand in. `id` must be written down, though it may be undefined (then: quarantined, `no-id`). */
export type Incoming = Envelope<string> & Payload<unknown>

/**
 * The same where you wrote the message yourself: of a type that is written down, that type is one of the vocabulary, and the
 * data is what its schema takes. With a `type` that is any string, the message came from elsewhere, and is judged on arrival.
 */
export type IncomingOf<M extends MessageMap, K extends string = Name<M>> = string extends K
  ? Incoming
  : [Name<M>] extends [never]
    ? Incoming
    : [K] extends [Name<M>]
      ? Envelope<K> & Payload<SendData<M, K>>
      : Envelope<Name<M>> & Payload<unknown>

export const QUARANTINE_REASONS = [
  'conflict',
  'invalid',
  'undecodable',
  'unmapped',
  'no-id',
  'too-old',
  'too-large',
  'unrouted',
  'not-allowed',
  'effect-unknown',
] as const

export type QuarantineReason = (typeof QUARANTINE_REASONS)[number]

export interface Failure {
  readonly name: string
  readonly message: string
  readonly stack?: string
  /** The failure that caused this one, as in `new Error(…, { cause })`. */
  readonly cause?: Failure
  /** An error code, where the error had one: a SQLSTATE, a Node.js code, an oncebox code. */
  readonly code?: string
}

export type ConsumerOutcome<R = unknown> = { readonly consumer: string } & (
  | { readonly status: 'stored' | 'busy' }
  | { readonly status: 'handled'; readonly result: R }
  | { readonly status: 'duplicate'; readonly result?: R }
  | { readonly status: 'failed'; readonly error: Failure; readonly retryAt?: Date }
  | { readonly status: 'dead'; readonly error: Failure }
  | Quarantined
)

interface Quarantined {
  readonly status: 'quarantined'
  readonly reason: QuarantineReason
  /**
   * What exactly is wrong, for whoever handed the message in: it may quote the message. Absent where the message was
   * quarantined before, or is parked for an effect.
   */
  readonly detail?: string
}

export type Outcome<R = unknown> = {
  readonly id: string | undefined
  /** True when the sender may forget the message. The one thing a hand-written loop must look at. */
  readonly ack: boolean
  /**
   * With `ack: false`: deliver it again then. Its consumer asked so (`RetryLater`), or its retry policy, or quarantine is
   * full. Absent otherwise.
   */
  readonly retryAt?: Date
  readonly consumers: readonly ConsumerOutcome<R>[]
} & (
  | { readonly status: 'stored' | 'busy' | 'skipped' }
  | { readonly status: 'handled'; readonly result: R }
  | { readonly status: 'duplicate'; readonly result?: R }
  | { readonly status: 'failed' | 'dead'; readonly error: Failure }
  | Quarantined
)

/** `once` throws BUSY instead of returning it: a return value would be committed and acked. */
export type OnceOutcome<R> =
  | { readonly status: 'handled'; readonly result: R }
  | { readonly status: 'duplicate'; readonly result: R }
  | { readonly status: 'quarantined'; readonly reason: QuarantineReason }

export type State = 'pending' | 'processing' | 'handled' | 'dead' | 'quarantined' | 'discarded'

/** Declares the vocabulary: type name → Standard Schema or `unchecked<T>()`. */
export function defineMessages<const M extends MessageMap>(messages: M): M {
  checkMessages('defineMessages', messages)
  return messages
}

/** A types-only entry of a vocabulary: nothing is checked at run time. */
export function unchecked<T>(): StandardSchemaV1<T, T> {
  return { '~standard': { version: 1, vendor: 'oncebox', validate: asItIs } }
}

/** Is there nothing to check? Then there is no reason to read the data either. */
export function isUnchecked(schema: StandardSchemaV1 | undefined): boolean {
  return schema === undefined || schema['~standard'].validate === asItIs
}

function asItIs(value: unknown): { value: never } {
  return { value: value as never }
}

/** Builds what a handler gets. */
export function toMessage(
  row: {
    readonly id: string
    readonly source: string
    readonly type: string
    readonly key: string | undefined
    readonly envelope: string | null
    readonly receivedMs: number
    readonly attempts: number
  },
  data: unknown,
): Message {
  const rest = row.envelope === null ? undefined : (JSON.parse(row.envelope) as Record<string, never>)
  const headers = (rest?.['headers'] ?? {}) as Record<string, string>
  const message: { -readonly [K in keyof Message]: Message[K] } = {
    id: row.id,
    source: row.source,
    type: row.type,
    data,
    headers,
    receivedAt: new Date(row.receivedMs),
    attempt: row.attempts + 1,
    correlationId: headers['correlationid'] ?? row.id,
  }
  if (row.key !== undefined) message.key = row.key
  if (rest?.['subject'] !== undefined) message.subject = rest['subject']
  if (rest?.['time'] !== undefined) message.time = new Date(rest['time'])
  if (headers['causationid'] !== undefined) message.causationId = headers['causationid']
  return message
}
