/** One handler call: its context, its deadline, and what it sent. */
import { OnceboxError } from '../errors.js'
import { readable, someCause } from '../failure.js'
import { batchRun, type BatchContext, type Context, type EffectOptions, type Logger, type Send } from '../handler.js'
import type { Json, Message, MessageMap } from '../message.js'
import { prepareSend, type Outgoing } from '../outbox/send.js'
import type { Loan } from '../postgres/driver.js'
import { isRefusedUnheard } from '../postgres/errors.js'
import { deadline } from '../worker/abort.js'
import type { HeldMessage } from './held.js'
import { refuseError, toResult } from './outcome.js'
import type { Run, Worker } from './run.js'
import type { Opened } from './transaction.js'

/** How `ctx.effect` is answered. */
export type EffectRunner = <R>(
  name: string,
  run: (call: { idempotencyKey: string; signal: AbortSignal }) => R | Promise<R>,
  options: EffectOptions | undefined,
  /** False once the handler has returned: what it did not wait for is not called. */
  isOpen: () => boolean,
) => Promise<Json<R>>

/** The effects of one message; what becomes of them depends on whether it has a record, and its transaction to itself. */
export interface Effects {
  runIn(tx: unknown): EffectRunner
  /** Throws if an effect has ended the run: a handler that catches everything must not settle without it. */
  check(): void
}

/** For calls that have no record to keep an outcome in. */
export const NO_EFFECTS: Effects = {
  runIn: () => () =>
    Promise.reject(
      new OnceboxError('OPTION_INVALID', "effects need a message and a record: not in batches, not in mode 'direct'"),
    ),
  check: () => undefined,
}

/**
 * Calls the handler of these messages in an open transaction. Answers the JSON text of its result: none of a batch. Rejects
 * with what it throws, with HANDLER_TIMEOUT after the deadline, with UNAWAITED_CALL if it did not wait for what it sent or
 * called, with RESULT_INVALID if it returned an error, and with the driver's complaint if it misused the transaction. What
 * it sent is kept only if it returns.
 */
export function callHandler(
  run: Run,
  open: Opened,
  messages: readonly HeldMessage[],
  effects: Effects,
): Promise<string | undefined> {
  return open.call(async () => {
    const { runtime, consumer } = run.worker
    const loan = runtime.db.driver.lend?.(open.tx)
    const subject = messages.map(({ message }) => message)
    const context = new HandlerContext(run.worker, subject, loan ? loan.tx : open.tx, effects.runIn(open.tx))
    const handler = consumer.handlerOf(messages[0]!.type)
    const many = batchRun(handler)
    const handle = (): unknown => (many ? many(subject, context) : (handler as PlainHandler)(subject[0]!, context))
    let result: unknown
    try {
      result = await withDeadline(run, handle, context, loan)
    } finally {
      context.close()
    }
    refuseError(result)
    for (const sent of context.sent) open.outgoing.push(sent)
    const text = many ? undefined : toResult(result)
    effects.check()
    return text
  })
}

type PlainHandler = (message: Message, ctx: HandlerContext) => unknown

/** What the handler left behind is waited for within the deadline too. */
function withDeadline(
  { worker, abort }: Run,
  handle: () => unknown,
  context: HandlerContext,
  loan: Loan<unknown> | undefined,
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    if (abort.aborted) return reject(abort.aborted)
    const end = (reason: Error): void => {
      clear()
      reject(reason)
    }
    const stop = (reason: Error): void => {
      context.abort(reason)
      end(reason)
    }
    const { timeoutMs } = worker.consumer.options
    const clear = deadline(abort, timeoutMs, { passed: () => stop(context.tookTooLong()), aborted: stop })
    context.end = end
    const done = (result: unknown): void => {
      clear()
      resolve(result)
    }
    const failed = (error: unknown): void => {
      const thrown = readable(error) as Error
      if (!loan || !someCause(thrown, isRefusedUnheard)) return end(thrown)
      // Whatever comes after a failure that was caught is refused; what counts is the failure, which the loan knows.
      void (async () => loan.giveBack())().then(
        () => end(thrown),
        (told: Error) => end(told instanceof OnceboxError && told.code === 'TRANSACTION_ABORTED' ? told : thrown),
      )
    }
    const returned = (result: unknown): void => {
      try {
        context.checkCalls()
        context.close()
        const givenBack = loan?.giveBack()
        if (givenBack instanceof Promise) givenBack.then(() => done(result), failed)
        else done(result)
      } catch (error) {
        failed(error)
      }
    }
    try {
      // A client such as an ORM may have something to do around it.
      const running = loan?.run ? loan.run(async () => handle()) : handle()
      Promise.resolve(running).then(returned, failed)
    } catch (error) {
      failed(error)
    }
  })
}

/** The context of one call. `signal` and `log` are made when they are first asked for. */
class HandlerContext implements Context<MessageMap, unknown>, BatchContext<MessageMap, unknown> {
  readonly #worker: Worker
  readonly #subject: readonly Message[]
  readonly #effect: EffectRunner
  readonly #calls: PendingCall<unknown>[] = []
  readonly #sent: Outgoing[] = []
  #controller: AbortController | undefined
  #log: Logger | undefined
  #closed = false
  #abandoned: OnceboxError | undefined
  /** Ends the run from outside: the handler is not waited for any more. */
  end: (reason: Error) => void = () => undefined
  readonly tx: unknown

  constructor(worker: Worker, subject: readonly Message[], tx: unknown, effect: EffectRunner) {
    this.#worker = worker
    this.#subject = subject
    this.#effect = effect
    this.tx = tx
  }

  get attempt(): number {
    return this.#subject[0]!.attempt
  }

  /** What it has sent. */
  get sent(): readonly Outgoing[] {
    return this.#sent
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController()
    return this.#controller.signal
  }

  get log(): Logger {
    this.#log ??= bindLogger(this.#worker.runtime.log, this.#worker.consumer.name, this.#subject)
    return this.#log
  }

  readonly send: Send<MessageMap> = (type, data, options) =>
    this.#watch('send', async () => {
      const cause = this.#subject.length === 1 ? this.#subject[0] : undefined
      const outgoing = await prepareSend(this.#worker.runtime, { type, data }, options, cause)
      this.#mustBeOpen('send')
      this.#sent.push(outgoing)
      return { id: outgoing.id }
    })

  readonly effect: Context<MessageMap, unknown>['effect'] = (name, run, options) =>
    this.#watch('effect', () =>
      this.#effect(name, run, options, () => !this.#closed).catch((error: unknown) => this.#abandon(error)),
    )

  /**
   * The first effect without an outcome ends the run, and its rejection is the one that the handler sees. What was begun
   * beside it never settles: it might reject a promise that the handler has not come to yet, which would end the process.
   */
  #abandon(error: unknown): Promise<never> {
    if (this.#abandoned) {
      // A handler that caught the first rejection would wait for ever.
      this.end(this.#abandoned)
      return new Promise(() => undefined)
    }
    if (error instanceof OnceboxError && error.code === 'GROUP_ABANDONED') this.#abandoned = error
    throw error
  }

  /** What a handler does not wait for would be lost, or fail unseen: its attempt fails instead. */
  checkCalls(): void {
    for (const { what, state, reason, observed } of this.#calls) {
      if (state === 'fulfilled' || (state === 'rejected' && observed)) continue
      throw new OnceboxError('UNAWAITED_CALL', `the handler returned without waiting for ${what}; await every call`, {
        cause: reason,
      })
    }
  }

  tookTooLong(): OnceboxError {
    const { name, options } = this.#worker.consumer
    const what = this.#subject.length === 1 ? `message ${this.#subject[0]!.id}` : `a batch of ${this.#subject.length}`
    const advice = 'raise timeoutMs, or make it faster'
    const text = `${name} took longer than ${options.timeoutMs} ms for ${what}; ${advice}`
    return new OnceboxError('HANDLER_TIMEOUT', text)
  }

  abort(reason: Error): void {
    this.#controller ??= new AbortController()
    this.#controller.abort(reason)
  }

  close(): void {
    this.#closed = true
  }

  #watch<T>(what: 'send' | 'effect', work: () => Promise<T>): Promise<T> {
    const begin = async (): Promise<T> => {
      this.#mustBeOpen(what)
      return work()
    }
    const call = new PendingCall<T>(what, begin())
    if (this.#closed) this.log.error({ call: what }, 'a handler that had returned called it; await every call inside')
    else this.#calls.push(call)
    return call
  }

  #mustBeOpen(what: string): void {
    if (!this.#closed) return
    throw new OnceboxError('TRANSACTION_CLOSED', `${what} was called after the handler had returned; await it inside`)
  }
}

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

function bindLogger(log: Logger, consumer: string, subject: readonly Message[]): Logger {
  const first = subject[0]!
  const bound =
    subject.length === 1
      ? { id: first.id, type: first.type, consumer, attempt: first.attempt, correlationId: first.correlationId }
      : { type: first.type, consumer, messages: subject.length }
  return {
    debug: (o, m) => log.debug({ ...bound, ...o }, m),
    info: (o, m) => log.info({ ...bound, ...o }, m),
    warn: (o, m) => log.warn({ ...bound, ...o }, m),
    error: (o, m) => log.error({ ...bound, ...o }, m),
  }
}
