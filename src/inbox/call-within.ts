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

/**
 * Answers what the handler does, once it has waited for all that it called and has given its transaction back. What it
 * left behind is waited for within the deadline too. Its context takes nothing any more when this is over.
 */
export function callWithin<R>(
  { timeoutMs, abort }: Time,
  handle: () => R | Promise<R>,
  context: CallContext,
  loan: Loan<unknown> | undefined,
): Promise<R> {
  return new Promise((resolve, reject) => {
    if (abort.aborted) return reject(abort.aborted)
    const end = (reason: Error): void => {
      clear()
      context.close()
      reject(reason)
    }
    const stop = (reason: Error): void => {
      context.close()
      context.abort(reason)
      end(reason)
    }
    const clear = deadline(abort, timeoutMs, { passed: () => stop(context.tookTooLong()), aborted: stop })
    context.end = end
    const done = (result: R): void => {
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
    const returned = (result: R): void => {
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
