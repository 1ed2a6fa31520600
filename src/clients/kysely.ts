/**
 * Kysely on a pool of pg, 0.28 and 0.29. Handlers get a ControlledTransaction of the user's database type, so that they have
 * savepoints; its plugins act on what they send. Of the pool in its dialect Kysely tells nobody, so it is given too.
 */
import type { Driver } from '../postgres/driver.js'
import { type Expected, transactionRequired } from '../postgres/drivers/loan-errors.js'
import { fromPg, type PgClient, type PgOptions, type PgPool } from '../postgres/drivers/pg.js'
import { isPgPool, unfit, wrongClient } from '../postgres/drivers/wrong-client.js'
import { type Begun, bound } from './bound.js'
import { type Connection, connectionOn, type CursorClass, type PgConnection, query } from './kysely/connection.js'
import { type Executor, type Instance, type LogConfig, Lender, type Transaction } from './kysely/lender.js'
import { needed } from './needed.js'

/* eslint-disable @typescript-eslint/no-explicit-any -- with any other type `T` and `C` would not be inferred */
/** An instance of Kysely. `T` is what its `transaction()` hands out, `C` what its `startTransaction()` does. */
export interface KyselyDb<T, C> {
  transaction(): { execute(work: (tx: T) => Promise<any>): Promise<any> }
  startTransaction(): { execute(): Promise<C> }
}
/* eslint-enable @typescript-eslint/no-explicit-any */

export interface KyselyOptions extends PgOptions {
  /** The class of pg-cursor that its dialect has, for `.stream()` in handlers. */
  cursor?: CursorClass
  /** What the instance was given as `log`, for the statements of handlers. */
  log?: LogConfig
}

const VERSIONS = ['kysely', '0.28 or 0.29'] as const

const EXPECTED: Expected = [
  'a transaction of Kysely',
  'call it inside db.transaction().execute(async (tx) => …), or pass what db.startTransaction().execute() answers',
]

/**
 * Runs oncebox on Kysely, and on the pool of pg that its dialect was made with. Handlers get a `ControlledTransaction`, which
 * is not theirs to end; `send` and `once` take any transaction of the instance.
 */
export function fromKysely<T extends { readonly isTransaction: true }, C extends object>(
  db: KyselyDb<T, C>,
  pool: PgPool<PgClient>,
  { cursor, log, ...options }: KyselyOptions = {},
): Driver<C, T> {
  const instance = checked(db, pool)
  const base = fromPg(pool, options) as unknown as Driver<never>
  const lender = new Lender(instance, log)
  return bound<Transaction>(base, {
    expected: EXPECTED,
    late: true,
    async prepare() {
      await lender
        .learn()
        .catch((error: unknown) => needed(undefined, `transaction that can be made (${String(error)})`, VERSIONS))
    },
    bind: (client) => lender.lend(connectionOn(client as PgConnection, cursor)),
    begunBy: begun,
  }) as unknown as Driver<C, T>
}

/** What `send` and `once` were given. Its connection is its executor's, which refuses once the transaction is over. */
function begun(tx: object): Begun | string | undefined {
  const { isTransaction, getExecutor } = tx as Partial<Instance>
  if (typeof getExecutor !== 'function') return undefined
  if (isTransaction !== true) return 'the instance itself'
  const executor = getExecutor.call(tx)
  return { run: (text, values) => runIn(executor, text, values) }
}

async function runIn(executor: Executor, text: string, values: readonly unknown[]) {
  let isOpen = false
  const run = async (connection: Connection) => {
    isOpen = true
    // Not its own, which tells the user's log.
    const { executeQuery } = Object.getPrototypeOf(connection) as Partial<Connection>
    const { rows } = await (executeQuery ?? connection.executeQuery).call(connection, query(text, values))
    return rows as readonly Record<string, unknown>[]
  }
  try {
    return await executor.provideConnection(run)
  } catch (error) {
    throw isOpen ? error : transactionRequired('a transaction that is over', EXPECTED)
  }
}

const INSTANCE = 'an instance of Kysely and the pool of its dialect: fromKysely(db, pool)'

function checked(db: unknown, pool: unknown): Instance {
  const { selectFrom, transaction, isTransaction } = (db ?? {}) as Partial<Instance>
  if (typeof db !== 'object' || typeof selectFrom !== 'function' || typeof transaction !== 'function') {
    throw wrongClient('fromKysely', db, INSTANCE)
  }
  const instance = db as Instance
  if (isTransaction === true) throw unusable('a transaction: pass the instance that it was begun on')
  needed(instance.getExecutor, 'db.getExecutor()', VERSIONS)
  needed(instance.startTransaction, 'db.startTransaction()', VERSIONS)
  const { withConnectionProvider, withPluginAtFront } = instance.getExecutor()
  needed(withConnectionProvider, 'withConnectionProvider() of its executor', VERSIONS)
  needed(withPluginAtFront, 'withPluginAtFront() of its executor', VERSIONS)
  // As PostgreSQL alone writes a parameter.
  const { sql } = instance.withoutPlugins().selectFrom('t').where('c', '=', 1).compile()
  if (!sql.includes('$1')) throw unusable('an instance whose dialect is not that of PostgreSQL')
  if (pool === undefined) throw unusable('the instance alone: Kysely keeps its pool to itself')
  if (!isPgPool(pool)) throw wrongClient('fromKysely', pool, INSTANCE)
  return instance
}

const unusable = (got: string) => unfit('fromKysely', INSTANCE, got)
