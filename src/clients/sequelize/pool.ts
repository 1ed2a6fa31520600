/** Sequelize keeps connections of pg in a pool of its own. Here it has the shape of pg's. */
import { poolEnded } from '../../postgres/errors.js'
import type { Client, Pool, PoolOptions } from '../../postgres/drivers/pg/client.js'
import { ignore } from '../../postgres/drivers/watch.js'
import { needed } from '../needed.js'
import { type ConnectionManager, type SequelizePool, VERSIONS } from './instance.js'

const CLOSED = /after the connection manager was closed/

type Connection = Client & { release?: ((error?: unknown) => void) | undefined }

export class ManagedPool implements Pool {
  readonly #manager: ConnectionManager
  readonly #pool: SequelizePool
  readonly #known = new WeakSet<object>()
  readonly #listeners: ((connection: Client) => void)[] = []
  readonly Client: NonNullable<Pool['Client']>

  constructor(manager: ConnectionManager) {
    this.#manager = manager
    const pool = needed(manager.pool, 'connectionManager.pool', VERSIONS)
    this.#pool = pool.write ?? pool
    this.Client = needed(manager.lib?.Client, 'connectionManager.lib.Client', VERSIONS)
  }

  async connect(): Promise<Client> {
    const connection = await this.#acquire()
    connection.release = (error?: unknown) => {
      connection.release = undefined
      if (error) this.#pool.destroy(connection).catch(ignore)
      else this.#manager.releaseConnection(connection)
    }
    if (!this.#known.has(connection)) for (const listener of this.#listeners) listener(connection)
    this.#known.add(connection)
    return connection
  }

  /** Its errors wrap those of pg, by whose codes an unreachable server is known. */
  async #acquire(): Promise<Connection> {
    try {
      return (await this.#manager.getConnection({ type: 'write' })) as Connection
    } catch (error) {
      const { message, parent } = error as { readonly message?: unknown; readonly parent?: unknown }
      if (CLOSED.test(String(message))) throw poolEnded(error)
      throw parent instanceof Error ? parent : error
    }
  }

  on(event: string, listener: (connection: never) => void): void {
    if (event === 'connect') this.#listeners.push(listener as (connection: Client) => void)
  }

  get options(): PoolOptions {
    const { config } = this.#manager
    const { host, port, database, username, password, dialectOptions } =
      (config?.replication && config.replication.write) || config || {}
    return {
      ...dialectOptions,
      ...{ host, port: port === undefined ? undefined : Number(port), database, user: username },
      ...(password === undefined || password === null ? {} : { password }),
      max: this.#pool.maxSize,
    }
  }

  get totalCount(): number {
    return this.#pool.size
  }

  get idleCount(): number {
    return this.#pool.available
  }

  get waitingCount(): number {
    return this.#pool.waiting
  }
}
