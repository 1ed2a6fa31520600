/** Builders send a statement when somebody awaits it: one that a handler forgot would be missing without a word. */
import { forgottenQuery } from '../postgres/drivers/loan-errors.js'

/** Calls handlers, and rejects if one has returned while it left statements that were made and never sent. */
export function refusingForgotten(count: () => number): <R>(handler: () => Promise<R>) => Promise<R> {
  return async (handler) => {
    const result = await handler()
    const forgotten = count()
    if (forgotten > 0) throw forgottenQuery(forgotten)
    return result
  }
}
