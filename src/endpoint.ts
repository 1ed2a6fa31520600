/**
 * What an HTTP endpoint of ours needs of its box, beside the public methods: a name that retention and the registry know,
 * and transactions as handlers get them.
 */
import type { Send } from './handler.js'
import type { MessageMap, OnceOutcome } from './message.js'
import type { Isolation } from './postgres/driver.js'

/** On a box. */
export const ENDPOINTS: unique symbol = Symbol.for('oncebox.endpoints') as never

export interface EndpointHost {
  /**
   * A consumer without handlers: it takes no message, and `once` knows it. Answers how to register it, for a process that
   * never starts its box: before anything is stored, since janitors elsewhere go by what is registered.
   */
  declare(name: string, retainMs: number): () => Promise<void>
  transaction<R>(work: (tx: unknown) => Promise<R>, isolation: Isolation): Promise<R>
  /** For a transaction without `once`: the server ends it if this process freezes in it. */
  limitIdle(tx: unknown, timeoutMs: number): Promise<void>
  /** Runs `work` in a transaction of `transaction`, unless the key is known. Rejects with BUSY if a copy is in flight. */
  once(tx: unknown, of: Keyed, work: () => Promise<unknown>): Promise<OnceOutcome<unknown>>
  /**
   * Calls a handler in a transaction of `transaction`, by the rules of consumers: rejects with HANDLER_TIMEOUT after the
   * deadline, with UNAWAITED_CALL if it did not wait for what it sent, and with the driver's complaint if it misused the
   * transaction. What it sent is written once it has returned.
   */
  call<R>(within: CallLimits, handler: (given: Given) => Promise<R>): Promise<R>
}

/** What is done once: the endpoint's name, the key, and whose key it is. */
export interface Keyed {
  readonly name: string
  readonly source: string
  readonly id: string
  /** Of its handler. The server ends the transaction after that, if this process freezes in it. */
  readonly timeoutMs: number
}

export interface CallLimits {
  readonly tx: unknown
  readonly name: string
  readonly timeoutMs: number
}

/** What a handler is given of its box. */
export interface Given {
  readonly tx: unknown
  readonly send: Send<MessageMap>
  readonly signal: AbortSignal
  /** Throws UNAWAITED_CALL if it has returned before it should: what comes after it gives its calls the time to settle. */
  checkCalls(): void
}
