/**
 * The driver for MikroORM 7. Handlers get an EntityManager of their own in the transaction. What they persisted is flushed
 * when they have returned, within their time, as `em.transactional()` does; EntityManagers and repositories that were
 * injected take part, for MikroORM is told which one is current (its option `context`).
 */
import { sharedByCopies } from '../copies.js'
import { AsyncLocalStorage } from 'node:async_hooks'
import { invalid } from '../options.js'
import type { Driver } from '../postgres/driver.js'
import type { Expected } from '../postgres/drivers/loan-errors.js'
import { fromPg } from '../postgres/drivers/pg.js'
import { unfit, wrongClient } from '../postgres/drivers/wrong-client.js'
import { type Begun, type Binding, bound, type Bound } from './bound.js'
import { withCauses } from './causes.js'
import {
  compiled,
  Connection,
  type Context,
  Contexts,
  type Kysely,
  type Queryable,
  VERSIONS,
} from './mikro-orm/context.js'
import { guarded } from './mikro-orm/guard.js'
import { lazyPool, type LazyPool } from './mikro-orm/pool.js'
import { needed } from './needed.js'

/** A MikroORM. `Em` is its EntityManager. */
export interface MikroOrmLike<Em> {
  readonly em: Em
  readonly config: object
}

/**
 * Runs oncebox on the pool of a MikroORM. Handlers get an `EntityManager`; `send` and `once` take one that is in a
 * transaction, such as `em.transactional(async (em) => …)` hands over. The ORM stays yours: oncebox never closes it.
 */
export function fromMikroOrm<Em extends object>(orm: MikroOrmLike<Em>): Driver<Em> {
  const { em, config } = checked(orm)
  const connection = em.getConnection()
  const pool = lazyPool(() => connection.getNativeClient!())
  const parts = { em, config, pool, contexts: new Contexts(connection.getClient!()) }
  return bound<Em>(fromPg(pool.pool), new MikroBinding(parts) as unknown as Binding<Em>)
}

const EXPECTED: Expected = [
  'an EntityManager in a transaction',
  'pass what em.transactional(async (em) => …) hands to its function',
]

interface Manager {
  fork(options?: object): Manager
  flush(): Promise<void>
  getConnection(type?: string): { getClient?(): Kysely; getNativeClient?(): Promise<unknown>; getKnex?: unknown }
  getPlatform?(): { getDefaultSchemaName?(): string | undefined }
  getTransactionContext?(): Context | undefined
  setTransactionContext?(context: Context): void
  readonly global?: boolean
}

interface Config {
  get(name: string): unknown
  set(name: string, value: unknown): void
}

interface Parts {
  readonly em: Manager
  readonly config: Config
  readonly pool: LazyPool
  readonly contexts: Contexts
}

class MikroBinding implements Binding<Manager> {
  readonly expected = EXPECTED
  readonly late = true
  readonly #parts: Parts
  readonly #current: AsyncLocalStorage<Current>

  constructor(parts: Parts) {
    this.#parts = parts
    this.#current = currentOf(parts.config)
  }

  isKnown(): boolean {
    return this.#parts.pool.isKnown()
  }

  async prepare(): Promise<void> {
    await this.#parts.pool.ready()
    await this.#parts.contexts.learn()
  }

  bind(client: object): Bound<Manager> {
    const { em, contexts } = this.#parts
    const connection = new Connection(client as Queryable)
    const tx = em.fork({ disableContextResolution: true })
    tx.setTransactionContext!(contexts.on(connection))
    guarded(tx)
    const current: Current = { tx, isOpen: true }
    return {
      tx,
      close: () => void (current.isOpen = false),
      run: (handler) =>
        this.#current.run(current, async () => {
          try {
            const result = await handler()
            await tx.flush()
            return result
          } catch (error) {
            throw withCauses(error, connection.failures, isOf)
          }
        }),
    }
  }

  begunBy(tx: object): Begun | string | undefined {
    const { getTransactionContext } = tx as Partial<Manager>
    if (typeof getTransactionContext !== 'function') return undefined
    const context = getTransactionContext.call(tx)
    if (!context) return 'an EntityManager that is in no transaction'
    if (context.isCommitted || context.isRolledBack) return 'a transaction that is over'
    return { run: async (text, values) => (await context.executeQuery(compiled(text, values))).rows }
  }

  check(schema: string): void {
    this.#checkContext()
    this.#checkGenerator(schema)
  }

  /** Its variables would be those of the previous user of the connection: it sets them when it takes one itself. */
  #checkContext(): void {
    if (this.#parts.config.get('sessionContext') !== 'connection') return
    throw invalid(
      `with sessionContext: 'connection' MikroORM sets the variables of a session when it takes a connection from the pool, ` +
        `which it does not do for handlers: they would run with those of somebody else; say sessionContext: 'transaction', ` +
        `and set what a handler needs in it, await tx.execute("select set_config('app.tenant', ?, true)", [tenant])`,
    )
  }

  /** MikroORM's schema generator, and so its migrations, drop every table of the database that no entity is of. */
  #checkGenerator(schema: string): void {
    // Of a test box: made by it, and dropped by it.
    if (schema.startsWith('oncebox_test_')) return
    const { ignoreSchema } = (this.#parts.config.get('schemaGenerator') ?? {}) as { ignoreSchema?: unknown }
    if (Array.isArray(ignoreSchema) && ignoreSchema.includes(schema)) return
    throw invalid(
      `MikroORM's schema generator would drop the tables of oncebox: tell it to leave their schema alone, ` +
        `MikroORM.init({ …, schemaGenerator: { ignoreSchema: ['${schema}'] } })`,
    )
  }
}

/** The EntityManager of a handler; open until the handler has returned. */
interface Current {
  readonly tx: Manager
  isOpen: boolean
}

const currents = sharedByCopies('mikro-orm-currents', () => new WeakMap<Config, AsyncLocalStorage<Current>>())

/** Which EntityManager is current, for one ORM. Outside of handlers it is whichever it was before. */
function currentOf(config: Config): AsyncLocalStorage<Current> {
  let current = currents.get(config)
  if (!current) {
    const storage = (current = new AsyncLocalStorage<Current>())
    const before = needed(config.get('context'), 'option `context`', VERSIONS) as (name: string) => unknown
    config.set('context', (name: string) => {
      const { tx, isOpen } = storage.getStore() ?? {}
      if (isOpen) return tx
      // A timer that a handler has started outlives it, in its context. Late work of the handler itself is refused by its tx.
      return before(name) ?? tx
    })
    currents.set(config, current)
  }
  return current
}

/** MikroORM keeps the message of the client's own error in the one that it makes of it. */
function isOf(wrapper: Error, failure: unknown): boolean {
  return wrapper.message === (failure as Error).message
}

function checked(orm: unknown): { readonly em: Manager; readonly config: Config } {
  const expected = 'a MikroORM for PostgreSQL, such as MikroORM.init() of @mikro-orm/postgresql answers'
  const { em, config } = (orm ?? {}) as { readonly em?: Manager; readonly config?: Config }
  if (typeof em?.fork !== 'function' || typeof config?.get !== 'function')
    throw wrongClient('fromMikroOrm', orm, expected)
  const refused = (got: string) => unfit('fromMikroOrm', expected, got)
  if (em.getPlatform?.().getDefaultSchemaName?.() !== 'public') throw refused('one for another database')
  const connection = em.getConnection()
  if (typeof connection.getKnex === 'function')
    throw refused('one of MikroORM 6 or older: oncebox needs MikroORM 7.2 or newer')
  needed(connection.getClient, 'getClient() of its connection', VERSIONS)
  needed(connection.getNativeClient, 'getNativeClient() of its connection', VERSIONS)
  needed(em.setTransactionContext, 'em.setTransactionContext()', VERSIONS)
  needed(em.getTransactionContext, 'em.getTransactionContext()', VERSIONS)
  return { em, config }
}
