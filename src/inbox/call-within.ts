/** One call of a handler, and its deadline. */
import { OnceboxError } from '../errors.js'
import { readable, someCause } from '../failure.js'
import type { Loan } from '../postgres/driver.js'
import { isRefusedUnheard } from '../postgres/errors.js'
import { deadline, type Abort } from '../worker/abort.js'
import type { CallContext } from './context.js'

export interface Time {
  readonly timeoutMs: number
  /** Ends it before its time. */
  readonly abort: Abort
}

/** What a call comes to. */
export interface Ends<R> {
  returned(result: R): void
  failed(error: unknown): void
}

/** A call, and what it has of the transaction. */
export interface Called {
  readonly context: CallContext
  readonly loan: Loan<unknown> | undefined
}

/** Answers what the handler does, as `beginWithin` tells it. */
export function callWithin<R>(
  time: Time,
  handle: () => R | Promise<R>,
  context: CallContext,
  loan: Loan<unknown> | undefined,
): Promise<R> {
  return new Promise((returned, failed) => beginWithin(time, handle, { context, loan }, { returned, failed }))
}

/**
 * Calls the handler. Tells what it does, once it has waited for all that it called and has given its transaction back. What
 * it left behind is waited for within the deadline too. Its context takes nothing any more when this is over.
 */
export function beginWithin<R>(time: Time, handle: () => R | Promise<R>, called: Called, ends: Ends<R>): void {
  if (time.abort.aborted) ends.failed(time.abort.aborted)
  else new CallWithin(time, called, ends).begin(handle)
}

/** Under way until it ends, in one way alone: there is one for each message, and callbacks cost less than promises. */
class CallWithin<R> {
  readonly #context: CallContext
  readonly #loan: Loan<unknown> | undefined
  readonly #ends: Ends<R>
  readonly #clear: () => void
  #over = false

  constructor({ timeoutMs, abort }: Time, { context, loan }: Called, ends: Ends<R>) {
    this.#context = context
    this.#loan = loan
    this.#ends = ends
    this.#clear = deadline(abort, timeoutMs, this)
    context.end = (reason) => this.#fail(reason)
  }

  begin(handle: () => R | Promise<R>): void {
    const loan = this.#loan
    try {
      // A client such as an ORM may have something to do around it.
      const running = loan?.run ? loan.run(async () => handle()) : handle()
      Promise.resolve(running).then(
        (result) => this.#returned(result),
        (error: unknown) => this.#failed(error),
      )
    } catch (error) {
      this.#failed(error)
    }
  }

  /** The deadline has. */
  passed(): void {
    this.aborted(this.#context.tookTooLong())
  }

  aborted(reason: Error): void {
    this.#context.close()
    this.#context.abort(reason)
    this.#fail(reason)
  }

  #returned(result: R): void {
    try {
      this.#context.checkCalls()
      this.#context.close()
      const givenBack = this.#loan?.giveBack()
      if (givenBack instanceof Promise) {
        givenBack.then(
          () => this.#done(result),
          (error: unknown) => this.#failed(error),
        )
      } else this.#done(result)
    } catch (error) {
      this.#failed(error)
    }
  }

  #failed(error: unknown): void {
    const loan = this.#loan
    const thrown = readable(error) as Error
    if (!loan || !someCause(thrown, isRefusedUnheard)) return this.#fail(thrown)
    // Whatever comes after a failure that was caught is refused; what counts is the failure, which the loan knows.
    void (async () => loan.giveBack())().then(
      () => this.#fail(thrown),
      (told: Error) => this.#fail(told instanceof OnceboxError && told.code === 'TRANSACTION_ABORTED' ? told : thrown),
    )
  }

  #done(result: R): void {
    this.#clear()
    if (this.#over) return
    this.#over = true
    this.#ends.returned(result)
  }

  #fail(reason: Error): void {
    this.#clear()
    this.#context.close()
    if (this.#over) return
    this.#over = true
    this.#ends.failed(reason)
  }
}
