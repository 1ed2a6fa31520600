/**
 * TypeORM. A query runner of the data source is put on the client that is lent, as if it had begun the transaction there;
 * the handler gets its EntityManager. Its class is the same in and out of a transaction, so a root handle is found at run
 * time only.
 */
import type { Driver } from '../postgres/driver.js'
import { fromPg } from '../postgres/drivers/pg.js'
import type { PgPool } from '../postgres/drivers/pg.js'
import { handlerCalled, refuse } from '../postgres/drivers/loan-errors.js'
import { isPgPool, unfit, wrongClient } from '../postgres/drivers/wrong-client.js'
import { type Begun, bound } from './bound.js'
import { Heeded } from './heeded.js'
import { needed } from './needed.js'
import { heed } from './typeorm/heeding.js'

/** A data source of TypeORM, as `fromTypeOrm` takes it. `M` is its EntityManager. */
export interface TypeOrmDataSource<M extends object> {
  readonly manager: M
  readonly isInitialized: boolean
  readonly options: { readonly type: string }
  createQueryRunner(): object
}

/** What the binding needs of a query runner of PostgreSQL; `transactionDepth` and `databaseConnection` are not public. */
interface QueryRunner {
  readonly manager: object
  readonly broadcaster?: object
  databaseConnection: object | undefined
  isTransactionActive: boolean
  readonly isReleased: boolean
  transactionDepth: number
  connect(): Promise<unknown>
  release(): Promise<void>
  commitTransaction(): Promise<void>
  rollbackTransaction(): Promise<void>
}

const VERSIONS = ['TypeORM', '0.3.12 to 1.x'] as const
const TAKES = 'an initialised DataSource of TypeORM, such as await new DataSource({ type: "postgres" }).initialize()'

/**
 * Runs oncebox on the pool of an initialised data source. Handlers get an `EntityManager`; `send` and `once` take the one
 * that `dataSource.transaction()` hands out. The data source stays yours: oncebox never destroys it.
 */
export function fromTypeOrm<M extends object>(dataSource: TypeOrmDataSource<M>): Driver<M> {
  const pool = poolOf(dataSource)
  const open = (): QueryRunner => dataSource.createQueryRunner() as QueryRunner
  const found = open()
  needed(found.manager, 'queryRunner.manager', VERSIONS)
  needed(found.transactionDepth, 'queryRunner.transactionDepth', VERSIONS)
  return bound<M, M>(fromPg(pool), {
    expected: [
      'the EntityManager of a transaction',
      'pass the one that dataSource.transaction() hands to its callback',
    ],
    // Its statements pass its subscribers first.
    late: true,
    async prepare() {
      const client = {}
      const isTaken = (await on(open(), client).connect()) === client
      needed(isTaken || undefined, 'queryRunner.databaseConnection', VERSIONS)
    },
    bind(client) {
      const runner = on(open(), client)
      const within = new Heeded()
      heed(runner, within)
      return {
        tx: runner.manager as M,
        leave: () => within.leave(),
        close: () => within.close(),
      }
    },
    begunBy,
  })
}

function poolOf(dataSource: unknown): PgPool<never> {
  const { createQueryRunner, options, isInitialized, driver } = (dataSource ?? {}) as Partial<
    TypeOrmDataSource<object>
  > & {
    readonly driver?: { readonly master?: unknown }
  }
  if (typeof createQueryRunner !== 'function' || !options) throw wrongClient('fromTypeOrm', dataSource, TAKES)
  if (options.type !== 'postgres') throw refused(`one of type ${options.type}, which is not PostgreSQL`)
  if (isInitialized !== true) throw refused('one that is not initialised: await dataSource.initialize() first')
  const pool = needed(driver?.master, 'dataSource.driver.master', VERSIONS)
  if (!isPgPool(pool)) throw refused('one without a pool of pg')
  return pool as PgPool<never>
}

const refused = (got: string) => unfit('fromTypeOrm', TAKES, got)

/** The runner, in a transaction on this client. A transaction inside it is a savepoint. */
function on(runner: QueryRunner, client: object): QueryRunner {
  runner.databaseConnection = client
  runner.isTransactionActive = true
  runner.transactionDepth = 1
  runner.release = refuse('release')
  for (const end of ['commitTransaction', 'rollbackTransaction'] as const) {
    const inner = runner[end]
    // At once, rather than by a promise that a handler may not look at. Those within it are savepoints.
    runner[end] = () => {
      if (runner.transactionDepth <= 1) throw handlerCalled(end)
      return inner.call(runner)
    }
  }
  return runner
}

function begunBy(tx: object): Begun | string {
  const { queryRunner, manager, createQueryRunner } = tx as {
    readonly queryRunner?: QueryRunner
    readonly manager?: unknown
    readonly createQueryRunner?: unknown
  }
  if (typeof createQueryRunner === 'function') return 'a data source'
  if (!queryRunner) return manager ? 'an object that has a manager' : 'an EntityManager outside of transactions'
  if (queryRunner.isReleased) return 'an EntityManager whose transaction is over'
  const { isTransactionActive, databaseConnection } = queryRunner
  return isTransactionActive && databaseConnection
    ? { client: databaseConnection }
    : 'an EntityManager without a transaction'
}
