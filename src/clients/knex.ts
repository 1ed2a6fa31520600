/** Knex. Its transaction is put on the connection that is lent; its pool of tarn's is used as one of pg's. */
import type { Driver } from '../postgres/driver.js'
import { fromPg, type PgPool } from '../postgres/drivers/pg.js'
import { unfit, wrongClient } from '../postgres/drivers/wrong-client.js'
import { type Begun, bound } from './bound.js'
import { type KnexInstance, VERSIONS } from './knex/client.js'
import { poolOf } from './knex/pool.js'
import { transactionOn } from './knex/transaction.js'
import { needed } from './needed.js'

/** An instance of Knex, as `fromKnex` takes it. `T` is its transaction. */
export interface KnexDb<T extends object> {
  transaction(work: (tx: T) => Promise<unknown> | void): Promise<unknown>
  raw: unknown
  client: unknown
}

const TAKES = 'an instance of Knex for PostgreSQL, such as knex({ client: "pg", connection })'

/**
 * Runs oncebox on the pool of an instance. Handlers get a `Knex.Transaction`; `send` and `once` take the one that
 * `knex.transaction()` hands out. The instance stays yours: oncebox never destroys it.
 */
export function fromKnex<T extends object>(knex: KnexDb<T>): Driver<T> {
  const root = instanceOf(knex)
  const base = fromPg(poolOf(root.client) as unknown as PgPool<never>)
  needed(root.context?._transaction, 'knex.context._transaction', VERSIONS)
  needed(root.client.queryCompiler, 'client.queryCompiler', VERSIONS)
  return bound<T, T>(base, {
    expected: ['a transaction of Knex', 'pass the one that knex.transaction() hands to its callback'],
    // It asks for a connection first.
    late: true,
    bind: (connection) => transactionOn(root, connection) as never,
    begunBy: (tx) => begunBy(tx, base),
  })
}

function instanceOf(knex: unknown): KnexInstance {
  const instance = knex as Partial<KnexInstance> & { readonly raw?: unknown }
  if (typeof knex !== 'function' || typeof instance.raw !== 'function') throw wrongClient('fromKnex', knex, TAKES)
  const { client, isTransaction } = instance
  if (isTransaction) throw refused('a transaction: pass the instance that it was begun on')
  if (client?.dialect !== 'postgresql') throw refused(`one for ${client?.dialect ?? 'no database'}`)
  if (!client.pool) throw refused('one without a pool: give it a connection, and do not destroy it before')
  return instance as KnexInstance
}

const refused = (got: string) => unfit('fromKnex', TAKES, got)

function begunBy(given: object, base: Driver<object>): Begun | string | undefined {
  if (typeof given !== 'function') return undefined
  const tx = given as object as KnexInstance
  if (!tx.isTransaction) return 'an instance of Knex'
  if (tx.isCompleted?.()) return 'a transaction that is over'
  // Its connection is in a closure, and handed out by a promise.
  return { run: async (text, values) => base.query(text, values, await tx.client.acquireConnection()) }
}
