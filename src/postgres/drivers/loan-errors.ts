/** Why a handler's use of its transaction is refused; the same words for every client. */
import { OnceboxError } from '../../errors.js'

/** What to pass, and how to come by it. */
export type Expected = readonly [what: string, advice: string]

export function transactionRequired(got: string, [expected, advice]: Expected): OnceboxError {
  return new OnceboxError('TRANSACTION_REQUIRED', `expected ${expected}, got ${got}: ${advice}`)
}

export function transactionClosed(): OnceboxError {
  return new OnceboxError(
    'TRANSACTION_CLOSED',
    'this transaction was used after its handler had returned, or in a call of an effect, which is outside of it: await every ' +
      'statement inside the handler, and before or after an effect',
  )
}

export function unawaitedQuery(count: number): OnceboxError {
  return new OnceboxError(
    'UNAWAITED_QUERY',
    `the handler returned while ${count} of its statements had no answer yet: await them all, and close cursors`,
  )
}

/** For a client that sends a statement only when somebody awaits it. */
export function forgottenQuery(count: number): OnceboxError {
  return new OnceboxError(
    'UNAWAITED_QUERY',
    `the handler made statements that it did not await (${count}), so they were never sent: await them all`,
  )
}

export function handlerCommitted(): OnceboxError {
  return new OnceboxError(
    'HANDLER_COMMITTED',
    'the handler ended the transaction it was lent: return to commit, throw to roll back',
  )
}

export function handlerCalled(method: string): OnceboxError {
  return new OnceboxError(
    'HANDLER_COMMITTED',
    `a handler called ${method}() on the transaction it was lent: return to commit, throw to roll back`,
  )
}

/** In place of a method that would end the transaction. */
export function refuse(method: string): () => never {
  return () => {
    throw handlerCalled(method)
  }
}

export function transactionAborted(cause?: unknown): OnceboxError {
  return new OnceboxError(
    'TRANSACTION_ABORTED',
    'the handler caught an SQL error and went on, but the transaction was already aborted: let the error propagate, ' +
      'or put a savepoint around the statement that may fail',
    { cause },
  )
}

export function rolledBack(cause?: unknown): OnceboxError {
  return new OnceboxError(
    'ROLLED_BACK',
    'nothing was committed: a statement had failed in this transaction and its error was caught. ' +
      'Let SQL errors propagate, or put a savepoint around statements that may fail',
    { cause },
  )
}
