/** One call of a handler, and its deadline. */
import { OnceboxError } from '../errors.js'
import { someCause } from '../failure.js'
import type { Loan } from '../postgres/driver.js'
import { isRefusedUnheard } from '../postgres/errors.js'
import { readable } from '../readable.js'
import type { Abort, Abortable } from '../worker/abort.js'
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

/** Answers what the handler does, as a `CallWithin` tells it. */
export function callWithin<R>(
  time: Time,
  handle: () => R | Promise<R>,
  context: CallContext,
  loan: Loan<unknown> | undefined,
): Promise<R> {
  return new Promise((returned, failed) => new PromisedCall(handle, { returned, failed }).begin(time, context, loan))
}

/**
 * A call of a handler, under way until it ends, in one way alone. It tells what the handler does, once that has waited for all
 * that it called and has given its transaction back. What it left behind is waited for within the deadline too. Its context
 * takes nothing any more when this is over.
 *
 * There is one for each message: callbacks cost less than promises, and methods less than closures.
 */
export abstract class CallWithin<R> implements Ends<R>, Abortable {
  #time: Time | undefined
  #context: CallContext | undefined
  #loan: Loan<unknown> | undefined
  #timer: NodeJS.Timeout | undefined
  #over = false

  /** Calls the handler. */
  protected abstract handle(): R | Promise<R>
  abstract returned(result: R): void
  abstract failed(error: unknown): void

  begin(time: Time, context: CallContext, loan: Loan<unknown> | undefined): void {
    if (time.abort.aborted) return this.failed(time.abort.aborted)
    this.#time = time
    this.#context = context
    this.#loan = loan
    this.#timer = setTimeout(passed, time.timeoutMs, this)
    time.abort.tell(this)
    try {
      // A client such as an ORM may have something to do around it.
      const running = loan?.run ? loan.run(async () => this.handle()) : this.handle()
      Promise.resolve(running).then(
        (result) => this.#returned(result),
        (error: unknown) => this.#failed(error),
      )
    } catch (error) {
      this.#failed(error)
    }
  }

  /** Ends it from outside: the handler is not waited for any more. */
  end(reason: Error): void {
    this.#clear()
    this.#context!.close()
    if (this.#over) return
    this.#over = true
    this.failed(reason)
  }

  /** The deadline has. */
  passed(): void {
    this.aborted(this.#context!.tookTooLong())
  }

  aborted(reason: Error): void {
    this.#context!.close()
    this.#context!.abort(reason)
    this.end(reason)
  }

  #clear(): void {
    clearTimeout(this.#timer)
    this.#time!.abort.forget(this)
  }

  #returned(result: R): void {
    try {
      this.#context!.checkCalls()
      this.#context!.close()
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
    if (!loan || !someCause(thrown, isRefusedUnheard)) return this.end(thrown)
    // Whatever comes after a failure that was caught is refused; what counts is the failure, which the loan knows.
    void (async () => loan.giveBack())().then(
      () => this.end(thrown),
      (told: Error) => this.end(told instanceof OnceboxError && told.code === 'TRANSACTION_ABORTED' ? told : thrown),
    )
  }

  #done(result: R): void {
    this.#clear()
    if (this.#over) return
    this.#over = true
    this.returned(result)
  }
}

function passed(call: CallWithin<unknown>): void {
  call.passed()
}

class PromisedCall<R> extends CallWithin<R> {
  readonly handle: () => R | Promise<R>
  readonly returned: (result: R) => void
  readonly failed: (error: unknown) => void

  constructor(handle: () => R | Promise<R>, { returned, failed }: Ends<R>) {
    super()
    this.handle = handle
    this.returned = returned
    this.failed = failed
  }
}
