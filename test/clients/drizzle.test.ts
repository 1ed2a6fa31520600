/** What is Drizzle's own: which databases are taken, settings of the user's, statements that nobody awaited. */
import { setTimeout as sleep } from 'node:timers/promises'
import { PGlite } from '@electric-sql/pglite'
import { drizzle as onPg } from 'drizzle-orm/node-postgres'
import { integer, pgTable, text, withReplicas } from 'drizzle-orm/pg-core'
import { drizzle as onPglite } from 'drizzle-orm/pglite'
import { drizzle as onProxy } from 'drizzle-orm/pg-proxy'
import { drizzle as onPostgres } from 'drizzle-orm/postgres-js'
import { eq, sql } from 'drizzle-orm'
import pg from 'pg'
import postgres from 'postgres'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Handler, MessageMap } from 'oncebox'
import { fromDrizzle } from 'oncebox/drizzle'
import { fromPg } from 'oncebox/pg'
import { createTestBox, type TestBox } from 'oncebox/testing'
import { type ScratchDatabase, scratchDatabase } from '../support/postgres.js'
import { ALL } from './all.js'
import { promisesOf } from './suite.js'

describe('Drizzle on pg', () => promisesOf({ name: 'drizzle-pg' }))
describe.runIf(ALL)('Drizzle on postgres.js', () => promisesOf({ name: 'drizzle-postgres' }))

const stock = pgTable('stock', { sku: text().primaryKey(), perBox: integer().notNull() })
const schema = { stock }

let database: ScratchDatabase
let pool: pg.Pool
/** What Drizzle's logger heard. */
const logged: string[] = []
const open = () =>
  onPg({ client: pool, schema, casing: 'snake_case', logger: { logQuery: (query) => void logged.push(query) } })
type Db = ReturnType<typeof open>
type Tx = Parameters<Parameters<Db['transaction']>[0]>[0]
let db: Db
let box: TestBox<MessageMap, Tx>
/** That of the n-th message. */
const handlers: ((tx: Tx) => Promise<unknown>)[] = []

beforeAll(async () => {
  database = await scratchDatabase('drizzle')
  pool = new pg.Pool({ connectionString: database.url, max: 6 })
  await pool.query('create table stock (sku text primary key, per_box int not null)')
  db = open()
  box = await createTestBox({ db: fromDrizzle(db) })
  const put: Handler<MessageMap, string, Tx> = async ({ id }, { tx }) => void (await handlers[Number(id.slice(2))]!(tx))
  box.consumer('c', { put }, { retry: { attempts: 1 } })
})
beforeEach(async () => {
  await pool.query('truncate stock')
  logged.length = 0
})
afterAll(async () => {
  await box.stop()
  await pool.end()
  await database.close()
})

const skus = async () =>
  (await pool.query<{ sku: string }>('select sku from stock order by sku')).rows.map((r) => r.sku)

/** Handles one message, which may have but one attempt. */
async function handled(handler: (tx: Tx) => Promise<unknown>): Promise<unknown> {
  const id = `m-${(handlers.push(handler) - 1).toString()}`
  await box.deliver({ id, source: 'test', type: 'put', body: '{}' })
  await box.drain()
  const [entry] = await box.admin.message({ id, consumer: 'c' })
  return entry!.state === 'dead' ? entry!.error : entry!.state
}

describe('a handler of Drizzle', () => {
  test('has relational queries, and settings such as casing and the logger, in its transaction', async () => {
    const seen: unknown[] = []
    const state = await handled(async (tx) => {
      await tx.insert(stock).values({ sku: 'a', perBox: 6 })
      seen.push(await tx.query.stock.findFirst({ where: eq(stock.sku, 'a') }), await tx.$count(stock))
      await tx.transaction(async (inner) => void seen.push(await inner.query.stock.findMany()))
    })
    expect(state).toBe('handled')
    const row = { sku: 'a', perBox: 6 }
    expect(seen).toEqual([row, 1, [row]])
    // Of oncebox's own statements it hears nothing.
    expect(logged.some((text) => text.startsWith('insert into "stock" ("sku", "per_box")'))).toBe(true)
    expect(logged.filter((text) => /oncebox|begin|commit/.test(text))).toEqual([])
  })

  test.each<[string, (tx: Tx) => unknown]>([
    ['insert', (tx) => tx.insert(stock).values({ sku: 'a', perBox: 1 })],
    [
      'insert … on conflict',
      (tx) => tx.insert(stock).values({ sku: 'a', perBox: 1 }).onConflictDoNothing().returning(),
    ],
    ['insert … select', (tx) => tx.insert(stock).select(tx.select().from(stock))],
    ['update', (tx) => tx.update(stock).set({ perBox: 2 }).where(eq(stock.sku, 'a'))],
    ['delete', (tx) => tx.delete(stock)],
    ['execute', (tx) => tx.execute(sql`delete from stock`)],
    ['with … delete', (tx) => tx.with(tx.$with('all_of_it').as(tx.select().from(stock))).delete(stock)],
    [
      'insert in a transaction within',
      (tx) => tx.transaction(async (inner) => void inner.insert(stock).values({ sku: 'a', perBox: 1 })),
    ],
  ])('is told of a statement that it made and did not await: %s', async (_, forget) => {
    const failure = await handled(async (tx) => {
      const made = forget(tx)
      if (made instanceof Promise) await made
    })
    expect(failure).toMatchObject({ code: 'UNAWAITED_QUERY' })
    expect(await skus()).toEqual([])
  })

  test.each<[string, (tx: Tx) => Promise<unknown>]>([
    ['under way', (tx) => tx.transaction((inner) => inner.insert(stock).values({ sku: 'a', perBox: 1 }))],
    ['waiting', (tx) => tx.transaction(async (inner) => (await sleep(30), inner.insert(stock).values({ sku: 'a', perBox: 1 })))], // prettier-ignore
    ['that fails', (tx) => tx.transaction(() => Promise.reject(new Error('of the transaction within')))],
  ])('that did not await a transaction within fails, and the process does not: %s', async (_, forget) => {
    // vitest fails for a rejection that nobody handled.
    expect(await handled(async (tx) => void forget(tx))).toMatchObject({ code: 'UNAWAITED_QUERY' })
    expect(await skus()).toEqual([])
  })

  test('may use statements as parts of others, prepare them, and send them by execute() or then()', async () => {
    const state = await handled(async (tx) => {
      const put = tx.$with('put').as(tx.insert(stock).values({ sku: 'a', perBox: 1 }).returning())
      await tx.with(put).select().from(put)
      const prepared = tx
        .insert(stock)
        .values({ sku: sql.placeholder('sku'), perBox: 1 })
        .prepare('put')
      await prepared.execute({ sku: 'b' })
      await tx.insert(stock).values({ sku: 'c', perBox: 1 }).execute()
      await Promise.all([tx.insert(stock).values({ sku: 'd', perBox: 1 }), tx.execute(sql`select 1`)])
    })
    expect(state).toBe('handled')
    expect(await skus()).toEqual(['a', 'b', 'c', 'd'])
  })

  test('rolls back by throwing: rollback() says so, and of a transaction within it takes back that one', async () => {
    expect(await handled(async (tx) => tx.rollback())).toMatchObject({ code: 'HANDLER_COMMITTED' })
    const state = await handled(async (tx) => {
      await tx.insert(stock).values({ sku: 'a', perBox: 1 })
      const inner = tx.transaction(async (nested) => {
        await nested.insert(stock).values({ sku: 'b', perBox: 1 })
        nested.rollback()
      })
      await expect(inner).rejects.toThrow('Rollback')
    })
    expect(state).toBe('handled')
    expect(await skus()).toEqual(['a'])
  })

  test('cannot use its transaction once it has returned', async () => {
    let kept: Tx | undefined
    await handled(async (tx) => void (kept = tx))
    const late = kept!.insert(stock).values({ sku: 'a', perBox: 1 })
    await expect(late).rejects.toMatchObject({ cause: { code: 'TRANSACTION_CLOSED' } })
    await expect(kept!.query.stock.findMany()).rejects.toMatchObject({ cause: { code: 'TRANSACTION_CLOSED' } })
    await expect(kept!.transaction(async () => {})).rejects.toMatchObject({ cause: { code: 'TRANSACTION_CLOSED' } })
  })
})

test('what is sent in a transaction within the user’s own goes with it', async () => {
  await db.transaction(async (tx) => {
    await tx.transaction((inner) => box.send(inner, 'kept', {}))
    const failing = tx.transaction(async (inner) => {
      await box.send(inner, 'lost', {})
      inner.rollback()
    })
    await expect(failing).rejects.toThrow()
  })
  expect(await pool.query(`select type from ${box.schema}.outbox`)).toMatchObject({ rows: [{ type: 'kept' }] })
})

describe('fromDrizzle', () => {
  test('takes a database on a pool of pg, on postgres.js and on PGlite, and one with replicas', () => {
    // They are looked at, and not connected.
    const lite = Object.create(PGlite.prototype) as PGlite
    const others = [onPostgres({ client: postgres('postgres://localhost/none') }), onPglite({ client: lite })]
    for (const given of [db, withReplicas(db, [open()]), ...others]) {
      expect(() => fromDrizzle(given as never)).not.toThrow()
    }
  })

  const wrong: Record<string, () => unknown> = {
    'a connection string': () => 'postgres://localhost/none',
    undefined: () => undefined,
    'a pool of pg': () => pool,
    'a Kysely instance': () => ({ getExecutor: () => {}, transaction: () => {}, selectFrom: () => {} }),
    'a database on a single client': () => onPg({ client: new pg.Client(database.url) }),
    'a database on nothing': () => onPg.mock(),
    'a database of SQLite': () => Object.assign(Object.create(onPg.mock()), sqlite()),
  }
  test.each(Object.keys(wrong))('refuses %s in words', (what) => {
    expect(() => fromDrizzle(wrong[what]!() as never)).toThrow(
      expect.objectContaining({
        code: 'OPTION_INVALID',
        message: expect.stringMatching(/^fromDrizzle takes a Drizzle/),
      }),
    )
  })

  test('refuses a transaction in words', async () => {
    await db.transaction(async (tx) => {
      expect(() => fromDrizzle(tx as never)).toThrow(/pass the database that it was begun on/)
    })
  })

  test('refuses a database on a proxy as one on another client', () => {
    const given = onProxy(() => Promise.resolve({ rows: [] }))
    expect(() => fromDrizzle(given as never)).toThrow(/got one on another client/)
  })

  test('refuses options that its client does not have', () => {
    const given = onPostgres({ client: postgres('postgres://localhost/none') })
    expect(() => fromDrizzle(given, { prepare: false })).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
    expect(() => fromDrizzle(db, { prepare: false })).not.toThrow()
  })

  test.each(['session', 'client', 'transaction'])('says in words that a version has no %s', (member) => {
    const session = Object.create((db as unknown as { session: object }).session, {
      [member]: { value: undefined },
    }) as object
    const other = Object.create(db, { session: { value: member === 'session' ? undefined : session } }) as Db
    expect(() => fromDrizzle(other)).toThrow(/^this version of drizzle-orm has no db\.session.*use drizzle-orm 0\.45/)
  })

  test('a Drizzle database elsewhere is sent here', () => {
    expect(() => fromPg(db as never)).toThrow(/use fromDrizzle of oncebox\/drizzle/)
  })
})

/** A client with the methods of PGlite, and a dialect that is not PostgreSQL's. */
function sqlite(): object {
  const constructor = { [Symbol.for('drizzle:entityKind')]: 'SQLiteSyncDialect' }
  return { $client: { transaction: () => {}, query: () => {}, exec: () => {} }, dialect: { constructor } }
}
