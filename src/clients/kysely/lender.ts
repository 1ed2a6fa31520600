/**
 * Makes the transactions that handlers get: of Kysely's own class, on a connection that was lent, with the plugins of the
 * user's instance. Kysely exports the class but oncebox imports no client, so it is learnt from a transaction on nothing.
 */
import { handlerCalled } from '../../postgres/drivers/loan-errors.js'
import { type Connection, connectionOn, query } from './connection.js'
import { refuseForgotten, Writes } from './unsent.js'

export interface Provider {
  provideConnection<R>(use: (connection: Connection) => Promise<R>): Promise<R>
}

export interface Executor extends Provider {
  withConnectionProvider(provider: Provider): Executor
  withPluginAtFront(plugin: object): Executor
}

/** What an instance and its transactions are made of. */
interface Props {
  readonly config: object
  readonly dialect: object
  readonly driver: object
  readonly executor: Executor
}

export interface Transaction {
  readonly isTransaction: true
  getExecutor(): Executor
}

type TransactionClass = new (props: object) => Transaction

export interface Instance {
  readonly isTransaction: boolean
  readonly introspection: object
  getExecutor(): Executor
  transaction(): unknown
  startTransaction(): { execute(): Promise<Transaction> }
  withoutPlugins(): Instance
  selectFrom(table: string): { where(...condition: unknown[]): { compile(): { readonly sql: string } } }
}

/** As Kysely's own `log`. */
export type LogConfig = readonly ('query' | 'error')[] | ((event: never) => unknown)

export class Lender {
  readonly #instance: Instance
  readonly #executor: Executor
  readonly #Kysely: new (props: object) => Instance
  readonly #logging: Logging | undefined
  readonly #writes = new Writes()
  #Transaction: TransactionClass | undefined

  constructor(instance: Instance, log: LogConfig | undefined) {
    this.#instance = instance
    this.#executor = instance.getExecutor().withPluginAtFront(this.#writes.plugin)
    this.#Kysely = classOf(instance)
    this.#logging = log && new Logging(this.#Kysely, log)
  }

  /** Rejects if this version makes its transactions from something else. */
  async learn(): Promise<void> {
    const nothing = connectionOn({ query: () => Promise.resolve({}) } as never, undefined)
    const props = { ...this.#props(nothing), driver: { beginTransaction: () => Promise.resolve() } }
    const model = await new this.#Kysely(props).startTransaction().execute()
    this.#Transaction = this.#writes.counted(model.constructor as TransactionClass)
    await this.#logging?.begin()
    const { tx } = this.lend(nothing)
    if (tx.isTransaction !== true) throw new Error('it is none')
    await tx.getExecutor().provideConnection((connection) => connection.executeQuery(query('', [])))
  }

  lend(connection: Connection): { tx: Transaction; run: <R>(handler: () => Promise<R>) => Promise<R> } {
    const tx = new this.#Transaction!({
      ...this.#props(connection),
      connection: { connection, release: () => undefined },
      // Under its names in 0.28 and 0.29.
      state: { isCommitted: false, isRolledBack: false },
      transactionState: { status: 'active' },
    })
    return { tx, run: refuseForgotten(tx) }
  }

  #props(connection: Connection): Props {
    const provider = this.#logging?.around(connection) ?? new Lent(connection)
    return {
      config: {},
      dialect: { createIntrospector: () => this.#instance.introspection },
      driver: NOT_THEIRS,
      executor: this.#executor.withConnectionProvider(provider),
    }
  }
}

class Lent implements Provider {
  readonly #connection: Connection

  constructor(connection: Connection) {
    this.#connection = connection
  }

  async provideConnection<R>(use: (connection: Connection) => Promise<R>): Promise<R> {
    return use(this.#connection)
  }
}

/** The class that has the methods, and not one that the user has derived from it. */
function classOf(instance: Instance): new (props: object) => Instance {
  let prototype = instance as object
  while (!Object.hasOwn(prototype, 'startTransaction')) prototype = Object.getPrototypeOf(prototype) as object
  return prototype.constructor as new (props: object) => Instance
}

const command = (verb: string) => (connection: Connection, name: string) =>
  connection.executeQuery(query(`${verb} "${name.replaceAll('"', '""')}"`, []))

const refuse = (method: string) => () => Promise.reject(handlerCalled(method))

/** What ends a transaction is oncebox's; savepoints are statements. */
const NOT_THEIRS = {
  beginTransaction: refuse('startTransaction'),
  commitTransaction: refuse('commit'),
  rollbackTransaction: refuse('rollback'),
  savepoint: command('savepoint'),
  rollbackToSavepoint: command('rollback to savepoint'),
  releaseSavepoint: command('release savepoint'),
}

/** Kysely logs what runs on the connections of a dialect: so the connections that are lent are those of one. */
class Logging {
  readonly #executor: Executor
  #next: Connection | undefined

  constructor(Kysely: new (config: object) => Instance, log: LogConfig) {
    const none = (): Promise<void> => Promise.resolve()
    const driver = {
      ...{ init: none, destroy: none, releaseConnection: none },
      acquireConnection: () => Promise.resolve(this.#next!),
    }
    const dialect = {
      createDriver: () => driver,
      createQueryCompiler: () => ({}),
      createAdapter: () => ({ supportsMultipleConnections: true }),
    }
    this.#executor = new Kysely({ dialect, log }).getExecutor()
  }

  /** From then on a connection is acquired before the call that asks for it returns. */
  begin(): Promise<void> {
    return this.#executor.provideConnection(() => Promise.resolve())
  }

  around(connection: Connection): Provider {
    return {
      provideConnection: (use) => {
        this.#next = connection
        return this.#executor.provideConnection(use)
      },
    }
  }
}
