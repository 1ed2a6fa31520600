/** What a handler is called with: its transaction, `send`, and the rules of both. Consumers add to it. */
import { OnceboxError } from '../errors.js'
import type { Logger, Send } from '../handler.js'
import type { Message, MessageMap } from '../message.js'
import { prepareSend, type Outgoing } from '../outbox/send.js'
import type { Runtime } from '../runtime.js'

/**
 * The context of one call. What is sent is kept here, for whoever called to write once the handler has returned: after
 * that, and after the deadline, nothing is taken any more. `signal` is made when it is first asked for.
 */
export abstract class CallContext {
  readonly #runtime: Runtime
  #calls: PendingCall<unknown>[] | undefined
  #sent: Outgoing[] | undefined
  #controller: AbortController | undefined
  #closed = false
  readonly tx: unknown

  constructor(runtime: Runtime, tx: unknown) {
    this.#runtime = runtime
    this.tx = tx
  }

  abstract get log(): Logger
  /** The message that what is sent goes back to, if it is one. */
  protected abstract get cause(): Message | undefined
  abstract tookTooLong(): OnceboxError

  /** What it has sent. */
  get sent(): readonly Outgoing[] {
    return this.#sent ?? NONE
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController()
    return this.#controller.signal
  }

  readonly send: Send<MessageMap> = (type, data, options) =>
    this.watch(
      'send',
      this.#runtime.traces.send(type, async () => {
        const outgoing = await prepareSend(this.#runtime, { type, data }, options, this.cause)
        this.#mustBeOpen('send')
        ;(this.#sent ??= []).push(outgoing)
        return { id: outgoing.id }
      }),
    )

  /** What a handler does not wait for would be lost, or fail unseen: its attempt fails instead. */
  checkCalls(): void {
    if (!this.#calls) return
    for (const { what, state, reason, observed } of this.#calls) {
      if (state === 'fulfilled' || (state === 'rejected' && observed)) continue
      throw new OnceboxError('UNAWAITED_CALL', `the handler returned without waiting for ${what}; await every call`, {
        cause: reason,
      })
    }
  }

  abort(reason: Error): void {
    this.#controller ??= new AbortController()
    this.#controller.abort(reason)
  }

  close(): void {
    this.#closed = true
  }

  protected get isOpen(): boolean {
    return !this.#closed
  }

  protected watch<T>(what: 'send' | 'effect', work: () => Promise<T>): Promise<T> {
    const begin = async (): Promise<T> => {
      this.#mustBeOpen(what)
      return work()
    }
    const call = new PendingCall<T>(what, begin())
    if (this.#closed)
      this.log.error(
        { call: what },
        'it was called by a handler that had returned, or in an effect; await every call in the handler itself',
      )
    else (this.#calls ??= []).push(call)
    return call
  }

  #mustBeOpen(what: string): void {
    if (!this.#closed) return
    const when = 'after the handler had returned, or in a call of an effect'
    throw new OnceboxError('TRANSACTION_CLOSED', `${what} was called ${when}; await it in the handler itself`)
  }
}

const NONE: readonly Outgoing[] = []

/** A promise that knows whether anybody waits for it, and whose rejection does not end the process if nobody does. */
class PendingCall<T> extends Promise<T> {
  static override get [Symbol.species](): PromiseConstructor {
    return Promise
  }
  readonly what: string
  state: 'pending' | 'fulfilled' | 'rejected' = 'pending'
  reason: unknown
  observed = false

  constructor(what: string, work: Promise<T>) {
    super((resolve, reject) => void work.then(resolve, reject))
    this.what = what
    // Not through `then` of our own: this is nobody who waits.
    super.then(
      () => {
        this.state = 'fulfilled'
      },
      (error: unknown) => {
        this.state = 'rejected'
        this.reason = error
      },
    )
  }

  override then<A = T, B = never>(
    fulfilled?: ((value: T) => A | PromiseLike<A>) | null,
    rejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.observed = true
    return super.then(fulfilled, rejected)
  }
}
