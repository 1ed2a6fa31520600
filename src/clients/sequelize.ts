/** Sequelize 6. Its transaction is put on the connection that is lent; its pool is used as one of pg's. */
import { OnceboxError } from '../errors.js'
import type { Driver } from '../postgres/driver.js'
import { refuse } from '../postgres/drivers/loan-errors.js'
import { fromPg, type PgPool } from '../postgres/drivers/pg.js'
import { unfit, wrongClient } from '../postgres/drivers/wrong-client.js'
import { type Begun, type Bound, bound } from './bound.js'
import { needed } from './needed.js'
import { type Namespace, type SequelizeInstance, type SequelizeTransaction, VERSIONS } from './sequelize/instance.js'
import { ManagedPool } from './sequelize/pool.js'

/** An instance of Sequelize 6, as `fromSequelize` takes it. `T` is its transaction. */
export interface SequelizeDb<T extends object> {
  transaction(options?: object): Promise<T>
  authenticate(): Promise<void>
}

const TAKES = 'an instance of Sequelize 6 for PostgreSQL, such as new Sequelize(url, { dialect: "postgres" })'

/**
 * Runs oncebox on the pool of an instance. Handlers get a `Transaction`, to be passed as `{ transaction: tx }`; with
 * `Sequelize.useCLS` they need not. `send` and `once` take the one that `sequelize.transaction()` hands out. The instance
 * stays yours: oncebox never closes it.
 */
export function fromSequelize<T extends object>(sequelize: SequelizeDb<T>): Driver<T> {
  const root = instanceOf(sequelize)
  const Transaction = needed(root.constructor.Transaction, 'Sequelize.Transaction', VERSIONS)
  needed(new Transaction(root, {}).prepareEnvironment, 'transaction.prepareEnvironment', VERSIONS)
  return bound<T, T>(fromPg(new ManagedPool(root.connectionManager) as unknown as PgPool<never>), {
    expected: ['a transaction of Sequelize', 'pass the one that sequelize.transaction() hands to its callback'],
    // Its hooks come first.
    late: true,
    bind: (connection) => on(new Transaction(root, {}), connection, root) as Bound<T>,
    begunBy,
  })
}

function instanceOf(sequelize: unknown): SequelizeInstance {
  const { connectionManager, options } = (sequelize ?? {}) as Partial<SequelizeInstance>
  if (!connectionManager || !options) throw wrongClient('fromSequelize', sequelize, TAKES)
  if (options.dialect !== 'postgres') throw refused(`one for ${options.dialect ?? 'no database'}`)
  return sequelize as SequelizeInstance
}

const refused = (got: string) => unfit('fromSequelize', TAKES, got)

/** The transaction as if it had begun on this connection. One within it is a savepoint. */
function on(tx: SequelizeTransaction, connection: object, root: SequelizeInstance): Bound<object> {
  tx.connection = connection
  tx.commit = refuse('commit')
  tx.rollback = refuse('rollback')
  tx.afterCommit = refuseAfterCommit
  return { tx, run: (handler) => inNamespace(root.constructor._cls, tx, handler) }
}

/** With `useCLS`, statements without a transaction take that of their async context. */
function inNamespace<R>(cls: Namespace | undefined, tx: object, handler: () => Promise<R>): Promise<R> {
  if (!cls) return handler()
  let result: Promise<R> | undefined
  cls.run(() => {
    cls.set('transaction', tx)
    result = handler()
  })
  return result!
}

function refuseAfterCommit(): never {
  throw new OnceboxError(
    'HANDLER_COMMITTED',
    'afterCommit() of the transaction that a handler was lent would never be called, since the box commits: send an event',
  )
}

function begunBy(given: object): Begun | string | undefined {
  const tx = given as SequelizeTransaction & { readonly connectionManager?: unknown }
  if (tx.connectionManager) return 'a Sequelize instance'
  if (typeof tx.prepareEnvironment !== 'function') return undefined
  if (tx.finished || !tx.connection) return 'a transaction that is over, or has not begun'
  return { client: tx.connection }
}
