/** Knex keeps connections of pg in a pool of its own, tarn's. Here it has the shape of pg's. */
import { poolEnded } from '../../postgres/errors.js'
import type { Client, Pool, PoolOptions } from '../../postgres/drivers/pg/client.js'
import { ignore } from '../../postgres/drivers/watch.js'
import { isPgPool } from '../../postgres/drivers/wrong-client.js'
import { needed } from '../needed.js'
import { type KnexClient, type KnexConnection, VERSIONS } from './client.js'

export function poolOf(client: KnexClient): Pool {
  const given = client.config?.connectionPool
  // From 3.3 on Knex takes a pool of pg in place of its own.
  if (given !== undefined && isPgPool(given)) return given as Pool
  needed(client.pool?.numUsed, 'client.pool of tarn', VERSIONS)
  return new TarnPool(client)
}

class TarnPool implements Pool {
  readonly #client: KnexClient
  readonly Client: NonNullable<Pool['Client']>

  constructor(client: KnexClient) {
    this.#client = client
    this.Client = needed(client.driver?.Client, 'client.driver.Client', VERSIONS)
  }

  async connect(): Promise<Client> {
    if (this.ending) throw poolEnded()
    const connection = await this.#client.acquireConnection()
    connection.release = (error) => this.#release(connection, error)
    return connection as Client
  }

  #release(connection: KnexConnection, error: unknown): void {
    connection.release = undefined
    if (error) {
      connection.__knex__disposed ??= error
      connection.end?.().catch(ignore)
    }
    this.#client.releaseConnection(connection).catch(ignore)
  }

  on(event: string, listener: (connection: never) => void): void {
    if (event === 'connect') this.#client.pool?.on?.('createSuccess', (_, connection) => listener(connection as never))
  }

  /** Of connections beside the pool, too. A function that gives settings was asked by then. */
  get options(): PoolOptions {
    const { connectionSettings, pool } = this.#client
    const { password } = connectionSettings ?? {}
    return {
      ...connectionSettings,
      // Knex hides it from those who copy the settings.
      ...(password === undefined ? {} : { password }),
      ...(pool?.max === undefined ? {} : { max: pool.max }),
    }
  }

  get ending(): boolean {
    const { pool } = this.#client
    return pool === undefined || pool.destroyed === true
  }

  get totalCount(): number {
    const { pool } = this.#client
    return pool ? pool.numUsed() + pool.numFree() + pool.numPendingCreates() : 0
  }

  get idleCount(): number {
    return this.#client.pool?.numFree() ?? 0
  }

  get waitingCount(): number {
    return this.#client.pool?.numPendingAcquires() ?? 0
  }
}
