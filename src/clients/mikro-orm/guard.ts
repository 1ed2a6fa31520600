/**
 * Keeps an EntityManager in the transaction that it was lent. `em.begin()` would put it into one of its own on another
 * connection, and `em.commit()` within `em.transactional()` would leave it in none: what follows would be written outside.
 * The EntityManager is asked for its connection then, also by one that was injected.
 */
import { OnceboxError } from '../../errors.js'
import { handlerCalled } from '../../postgres/drivers/loan-errors.js'
import { refused } from '../../postgres/drivers/watch.js'
import type { Context } from './context.js'

interface Guarded {
  fork(options?: object): Guarded
  getConnection(type?: string): object
  getTransactionContext?(): Context | undefined
}

/** The same EntityManager; those that it makes for transactions within are guarded too. */
export function guarded<Em extends Guarded>(em: Em): Em {
  const { fork, getConnection } = em
  const isLent = (): boolean => em.getTransactionContext!() !== undefined
  return Object.assign(em, {
    fork: (options?: object) => guarded(fork.call(em, options)),
    getConnection: (type?: string) => guardedConnection(getConnection.call(em, type), isLent),
  })
}

type Method = (...args: unknown[]) => unknown

/** `transactional()`, which MikroORM calls for savepoints, calls the connection's own methods. */
function guardedConnection(connection: object, isLent: () => boolean): object {
  return new Proxy(connection, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target)
      if (typeof value !== 'function') return value
      return (...args: unknown[]) => {
        if (key === 'begin' && isLent()) return refused(began())
        if ((key === 'commit' || key === 'rollback') && isSavepoint(args[0])) return refused(handlerCalled(key))
        return Reflect.apply(value as Method, target, args)
      }
    },
  })
}

function isSavepoint(context: unknown): boolean {
  return (context as { readonly savepointName?: unknown } | undefined)?.savepointName !== undefined
}

function began(): OnceboxError {
  return new OnceboxError(
    'HANDLER_COMMITTED',
    'a handler called begin() on an EntityManager that is in its transaction, which would leave it: ' +
      'for a part that may fail use em.transactional(async (em) => …)',
  )
}
