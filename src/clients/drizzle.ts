/**
 * Drizzle on pg, postgres.js or PGlite, 0.45 and 1.0. Handlers get Drizzle's own transaction, with the user's schema.
 *
 * Its classes are never constructed, since their constructors differ from version to version: one transaction that ran on
 * nothing is the model of all others, which differ from it by the client of their session.
 */
import { OnceboxError } from '../errors.js'
import type { Driver } from '../postgres/driver.js'
import { type Expected, refuse, transactionRequired } from '../postgres/drivers/loan-errors.js'
import { fromPg, type PgOptions } from '../postgres/drivers/pg.js'
import { fromPglite } from '../postgres/drivers/pglite.js'
import { fromPostgres } from '../postgres/drivers/postgres.js'
import { isPglite, isPgPool, isPostgres, unfit, wrongClient } from '../postgres/drivers/wrong-client.js'
import { type Begun, bound } from './bound.js'
import { Unsent, watching } from './drizzle/unsent.js'
import { refusingForgotten } from './forgotten.js'
import { needed } from './needed.js'

/** A database of Drizzle. `T` is inferred from `transaction`, so it is the transaction of the user's schema. */
export interface DrizzleDb<T> {
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  transaction(work: (tx: T) => Promise<any>, ...config: any[]): Promise<any>
  readonly $client: unknown
}

/** Where Drizzle keeps the client. */
interface Session {
  client: object
  logger?: object
  transaction(work: (tx: Tx) => Promise<void>): Promise<void>
}

interface Tx {
  session: Session
  readonly _?: object
  readonly query?: Readonly<Record<string, object>>
}

const VERSIONS = ['drizzle-orm', '0.45 or 1.0'] as const

const EXPECTED: Expected = [
  'the transaction that db.transaction() of Drizzle hands to its callback',
  'call it inside db.transaction(async (tx) => …)',
]

/**
 * Runs oncebox on a Drizzle database whose client is a pool of pg, postgres.js or PGlite. Handlers, `send` and `once` get and
 * take what `db.transaction` hands to its callback. `options` are those of `fromPg`, for a pool of pg.
 */
export function fromDrizzle<T extends object>(db: DrizzleDb<T>, options?: PgOptions): Driver<T> {
  const base = driverOf(db, options) as unknown as Driver<never>
  const root = needed((db as unknown as Partial<Tx>).session, 'db.session', VERSIONS)
  needed(root.client, 'db.session.client', VERSIONS)
  needed(root.transaction, 'db.session.transaction()', VERSIONS)
  let model: object | undefined
  return bound<Tx, T>(base, {
    expected: EXPECTED,
    async prepare() {
      let made: Tx | undefined
      await on(Object.assign(on(root, NOTHING), { logger: SILENT }), NOTHING).transaction(
        async (tx) => void (made = tx),
      )
      model = lentBy(needed(made?.session && made, 'session in its transactions', VERSIONS))
    },
    bind(client) {
      const unsent = new Unsent()
      const tx = unsent.watch(Object.create(model!) as Tx)
      tx.session = on(root, client)
      return {
        tx,
        run: refusingForgotten(() => unsent.count),
        leave: () => unsent.within.leave(),
        close: () => unsent.within.close(),
      }
    },
    begunBy: (tx) => begun(base, (tx as Partial<Tx>).session?.client),
  }) as unknown as Driver<T>
}

/** The session, on another client. */
function on(session: Session, client: object): Session {
  const other = Object.create(session) as Session
  other.client = client
  return other
}

/** What the transactions that are lent have in common. Relational queries are made when they are asked for. */
function lentBy(model: Tx): object {
  const queries = new WeakMap<Tx, object>()
  return Object.create(watching(model), {
    _: {
      get(this: Tx) {
        return { ...model._, session: this.session }
      },
    },
    query: {
      get(this: Tx) {
        const made = queries.get(this) ?? queriesOf(model, this.session)
        queries.set(this, made)
        return made
      },
    },
    // Of a nested transaction it rolls back to the savepoint; of the handler's there is none.
    rollback: { value: refuse('rollback') },
  }) as object
}

function queriesOf({ query = {} }: Tx, session: Session): object {
  return new Proxy(query, {
    get: (target, key) => {
      const builder = Reflect.get(target, key) as object | undefined
      return builder && (Object.create(builder, { session: { value: session } }) as object)
    },
  })
}

/** Stands in for each of the three clients while the model is made. */
const NOTHING: object = {
  query: () => Promise.resolve({ rows: [] }),
  begin: (work: (tx: object) => unknown) => work(NOTHING),
  transaction: (work: (tx: object) => unknown) => work(NOTHING),
}
/** The user's logger need not hear of it. */
const SILENT = { logQuery: () => undefined }

function begun(base: Driver<never>, client: object | undefined): Begun | string | undefined {
  if (!client) return undefined
  if (isRoot(client)) return 'the database itself'
  return {
    run: (text, values) =>
      base.query(text, values, client as never).catch((error: unknown) => {
        // In the words of the client underneath.
        if (!(error instanceof OnceboxError) || error.code !== 'TRANSACTION_REQUIRED') throw error
        throw transactionRequired('a transaction that is over', EXPECTED)
      }),
  }
}

function isRoot(client: unknown): boolean {
  return isPostgres(client) || isPglite(client) || isPgPool(client)
}

const DATABASE = 'a Drizzle database, such as drizzle({ client: pool })'

function driverOf(db: DrizzleDb<unknown>, options: PgOptions | undefined): Driver<object> {
  const { $client: client, session } = (db ?? {}) as DrizzleDb<unknown> & Partial<Tx>
  if (typeof db !== 'object' || (client === undefined && session === undefined)) {
    throw wrongClient('fromDrizzle', db, DATABASE)
  }
  if (client === undefined) {
    const isTransaction = typeof (db as { rollback?: unknown }).rollback === 'function'
    throw unusable(isTransaction ? 'a transaction: pass the database that it was begun on' : 'one on another client')
  }
  if (!isRoot(client) || !isPostgresDialect(db)) {
    const { escapeIdentifier } = (client ?? {}) as { escapeIdentifier?: unknown }
    const single = typeof escapeIdentifier === 'function'
    throw unusable(single ? 'one on a single client of pg: give drizzle() a pool' : 'one on another client')
  }
  if (isPgPool(client)) return fromPg(client as never, options)
  if (options !== undefined) throw unusable('options, which only a pool of pg has')
  return isPostgres(client) ? fromPostgres(client as never) : fromPglite(client as never)
}

const unusable = (got: string) => unfit('fromDrizzle', `${DATABASE}, on a pool of pg, on postgres.js or on PGlite`, got)

/** SQLite has clients with the same methods as PGlite. Drizzle names its classes by a symbol, since minifiers rename them. */
function isPostgresDialect(db: object): boolean {
  const { dialect } = db as { dialect?: { constructor: { [KIND]?: unknown } } }
  const kind = dialect?.constructor[KIND]
  return typeof kind !== 'string' || kind.startsWith('Pg')
}

const KIND = Symbol.for('drizzle:entityKind')
