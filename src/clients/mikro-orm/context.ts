/**
 * A transaction of MikroORM on a connection that is lent. MikroORM 7 speaks to its database by Kysely, whose controlled
 * transaction is what it keeps as "transaction context": one is made of Kysely's own class, with a connection that is ours.
 */
import { handlerCalled } from '../../postgres/drivers/loan-errors.js'
import { ignore } from '../../postgres/drivers/watch.js'
import { needed } from '../needed.js'

export const VERSIONS = ['MikroORM', '7.2 or newer'] as const

/** A client of pg, or one that is lent. */
export interface Queryable {
  query(text: string, values?: unknown[]): Promise<Answer>
}

interface Answer {
  readonly command?: string
  readonly rowCount?: number | null
  readonly rows?: readonly Record<string, unknown>[]
}

interface Compiled {
  readonly sql: string
  readonly parameters: readonly unknown[]
}

/** Kysely's controlled transaction, as far as it is used here. */
export interface Context {
  readonly isCommitted?: boolean
  readonly isRolledBack?: boolean
  executeQuery(query: object): Promise<{ readonly rows: readonly Record<string, unknown>[] }>
}

interface Executor {
  withConnectionProvider?(provider: object): Executor
}

export interface Kysely {
  getExecutor?(): Executor
  startTransaction?(): { execute(): Promise<Context> }
}

type New<T> = new (props: object) => T

/** A statement of ours, as Kysely has compiled ones. */
export function compiled(sql: string, parameters: readonly unknown[]): object {
  const query = { kind: 'RawNode', sqlFragments: [sql], parameters: [] }
  return { sql, parameters, query, queryId: { queryId: 'oncebox' } }
}

const CHANGES = new Set(['INSERT', 'UPDATE', 'DELETE', 'MERGE'])

/** The client as Kysely sees a connection. Its errors are kept: MikroORM makes errors of its own of them. */
export class Connection {
  readonly failures: unknown[] = []
  readonly #client: Queryable

  constructor(client: Queryable) {
    this.#client = client
  }

  async executeQuery({ sql, parameters }: Compiled): Promise<object> {
    try {
      const {
        command,
        rowCount,
        rows = [],
      } = await this.#client.query(sql, parameters.length > 0 ? [...parameters] : undefined)
      return { rows, ...(CHANGES.has(command ?? '') && { numAffectedRows: BigInt(rowCount ?? 0) }) }
    } catch (error) {
      this.failures.push(error)
      throw error
    }
  }

  // eslint-disable-next-line require-yield -- it is Kysely's form of a stream
  async *streamQuery(): AsyncGenerator<never> {
    throw new Error('em.stream() needs a cursor, which the transaction of a handler does not have: use em.find()')
  }
}

const nothing = async (): Promise<void> => {}
const command = (verb: string) => (connection: Connection, name: string) =>
  connection.executeQuery({ sql: `${verb} "${name.replaceAll('"', '""')}"`, parameters: [] })
const refuse = (method: string) => async (): Promise<never> => {
  throw handlerCalled(method)
}

/** What Kysely's driver would do with a connection: the transaction is not the handler's to end. */
const DRIVER = {
  init: nothing,
  destroy: nothing,
  acquireConnection: nothing,
  releaseConnection: nothing,
  beginTransaction: nothing,
  commitTransaction: refuse('commit'),
  rollbackTransaction: refuse('rollback'),
  savepoint: command('savepoint'),
  rollbackToSavepoint: command('rollback to savepoint'),
  releaseSavepoint: command('release savepoint'),
}

/** What all of them are made of, but for their executor. */
const SHARED = { config: {}, dialect: {}, driver: DRIVER }

export class Contexts {
  readonly #executor: Executor
  readonly #kysely: Kysely
  #Class: New<Context> | undefined

  constructor(kysely: Kysely) {
    this.#kysely = kysely
    needed(kysely.startTransaction, 'Kysely with startTransaction()', VERSIONS)
    this.#executor = needed(kysely.getExecutor?.(), 'Kysely with getExecutor()', VERSIONS)
    needed(this.#executor.withConnectionProvider, 'withConnectionProvider() of Kysely’s executor', VERSIONS)
  }

  /** Learns Kysely's class from a transaction on nothing. */
  async learn(): Promise<void> {
    const Root = this.#kysely.constructor as New<Kysely>
    const executor = this.#executorOn(new Connection({ query: async () => ({}) }))
    const model = await new Root({ ...SHARED, executor }).startTransaction!().execute()
    this.#Class = model.constructor as New<Context>
    const probe = this.on(new Connection({ query: async () => ({ rows: [{ probe: 1 }] }) }))
    const { rows } = await probe.executeQuery(compiled('select 1', []))
    needed(rows[0]?.['probe'], 'transaction that can be put on a connection', VERSIONS)
  }

  on(connection: Connection): Context {
    return new this.#Class!({
      ...SHARED,
      executor: this.#executorOn(connection),
      connection: { connection, release: ignore },
      // Under its name in later versions of Kysely.
      transactionState: { status: 'active' },
    })
  }

  #executorOn(connection: Connection): Executor {
    const provider = { provideConnection: async (use: (on: Connection) => unknown) => use(connection) }
    return this.#executor.withConnectionProvider!(provider)
  }
}
