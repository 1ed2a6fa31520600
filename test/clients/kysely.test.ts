/** What is Kysely's own: which instances are taken, plugins and logs of the user's, statements that nobody executed. */
import { execFile } from 'node:child_process'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import path from 'node:path'
import {
  CamelCasePlugin,
  Kysely,
  MysqlDialect,
  PostgresDialect,
  sql,
  type ControlledTransaction,
  type Transaction,
} from 'kysely'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Handler, MessageMap } from 'oncebox'
import { fromKysely, type KyselyOptions } from 'oncebox/kysely'
import { fromPg } from 'oncebox/pg'
import { createTestBox, type TestBox } from 'oncebox/testing'
import { type ScratchDatabase, scratchDatabase } from '../support/postgres.js'
import { promisesOf } from './suite.js'
import { installed, newerNode } from './versions.js'

describe('Kysely 0.28', () => promisesOf({ name: 'kysely' }))

interface Database {
  stock: { sku: string; perBox: number }
}
type Tx = ControlledTransaction<Database>

let database: ScratchDatabase
let pool: pg.Pool
let db: Kysely<Database>
let box: TestBox<MessageMap, Tx, Transaction<Database>>
const handlers: ((tx: Tx) => Promise<unknown>)[] = []
/** What Kysely's log heard. */
const logged: string[] = []

beforeAll(async () => {
  database = await scratchDatabase('kysely')
  pool = new pg.Pool({ connectionString: database.url, max: 6 })
  await pool.query('create table stock (sku text primary key, per_box int not null)')
  const log = ({ query }: { query: { sql: string } }): void => void logged.push(query.sql)
  db = new Kysely({ dialect: new PostgresDialect({ pool }), plugins: [new CamelCasePlugin()], log })
  const directory = await installed('pg-cursor@2.22.0')
  const cursor = createRequire(path.join(directory, 'load.mjs'))('pg-cursor') as KyselyOptions['cursor'] & object
  box = await createTestBox({ db: fromKysely(db, pool, { cursor, log }) })
  const put: Handler<MessageMap, string, Tx> = async ({ id }, { tx }) => void (await handlers[Number(id.slice(2))]!(tx))
  box.consumer('c', { put }, { retry: { attempts: 1 } })
})
beforeEach(async () => {
  await pool.query('truncate stock')
  logged.length = 0
})
afterAll(async () => {
  await box?.stop()
  await pool?.end()
  await database?.close()
})

const row = (sku: string) => ({ sku, perBox: 6 })
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

describe('a handler of Kysely', () => {
  test('has the plugins and the log of its instance, which touch nothing of oncebox’s', async () => {
    const seen: unknown[] = []
    const state = await handled(async (tx) => {
      const { numInsertedOrUpdatedRows } = await tx.insertInto('stock').values(row('a')).executeTakeFirstOrThrow()
      seen.push(numInsertedOrUpdatedRows, await tx.selectFrom('stock').selectAll().execute())
    })
    expect(state).toBe('handled')
    expect(seen).toEqual([1n, [row('a')]])
    expect(logged).toEqual(['insert into "stock" ("sku", "per_box") values ($1, $2)', 'select * from "stock"'])
    logged.length = 0
    await db.transaction().execute((tx) => box.send(tx, 'sent', {}))
    expect(logged).toEqual(['begin', 'commit'])
  })

  test('can stream', async () => {
    const seen: string[] = []
    const state = await handled(async (tx) => {
      await tx.insertInto('stock').values(['a', 'b', 'c'].map(row)).execute()
      for await (const { sku } of tx.selectFrom('stock').select('sku').orderBy('sku').stream(2)) seen.push(sku)
      await tx.deleteFrom('stock').execute()
    })
    expect([state, seen]).toEqual(['handled', ['a', 'b', 'c']])
  })

  test.each<[string, (tx: Tx) => unknown]>([
    ['insertInto', (tx) => tx.insertInto('stock').values(row('a'))],
    ['updateTable', (tx) => tx.updateTable('stock').set({ perBox: 1 })],
    ['deleteFrom', (tx) => tx.deleteFrom('stock').where('sku', '=', 'a')],
    ['mergeInto', (tx) => tx.mergeInto('stock').using('stock as other', 'other.sku', 'stock.sku')],
  ])('is told of a statement that it made and did not execute: %s', async (_, forget) => {
    expect(await handled(async (tx) => void forget(tx))).toMatchObject({ code: 'UNAWAITED_QUERY' })
  })

  test('can merge', async () => {
    await pool.query(`insert into stock values ('a', 1)`)
    const state = await handled((tx) =>
      tx
        .mergeInto('stock')
        .using('stock as other', 'other.sku', 'stock.sku')
        .whenMatched()
        .thenUpdateSet((eb) => ({ perBox: eb('stock.perBox', '+', eb.ref('other.perBox')) }))
        .execute(),
    )
    expect(state).toBe('handled')
    expect((await pool.query('select per_box from stock')).rows).toEqual([{ per_box: 2 }])
  })

  test('is told of a statement that it did not await', async () => {
    const failure = await handled(async (tx) => void tx.insertInto('stock').values(row('a')).execute())
    expect(failure).toMatchObject({ code: 'UNAWAITED_QUERY' })
    expect(await skus()).toEqual([])
  })

  test('may use statements as parts of others, and compile them', async () => {
    const state = await handled(async (tx) => {
      const put = tx.insertInto('stock').values(row('a')).returning('sku')
      await tx
        .with('put', () => put)
        .selectFrom('put')
        .selectAll()
        .execute()
      await tx.executeQuery(tx.insertInto('stock').values(row('b')).compile())
    })
    expect(state).toBe('handled')
    expect(await skus()).toEqual(['a', 'b'])
  })

  test.each<[string, (tx: Tx) => Promise<unknown>]>([
    ['commit', (tx) => tx.commit().execute()],
    ['rollback', (tx) => tx.rollback().execute()],
    ['startTransaction', (tx) => (tx as unknown as Kysely<Database>).startTransaction().execute()],
  ])('cannot end or begin a transaction: %s', async (_, end) => {
    expect(await handled(end)).toMatchObject({ code: 'HANDLER_COMMITTED' })
  })

  test('cannot use its transaction once it has returned', async () => {
    let kept: Tx | undefined
    await handled(async (tx) => void (kept = tx))
    await expect(kept!.insertInto('stock').values(row('a')).execute()).rejects.toMatchObject({
      code: 'TRANSACTION_CLOSED',
    })
  })
})

test('send takes a controlled transaction, and a savepoint of one, until it is over', async () => {
  const tx = await db.startTransaction().execute()
  await box.send(tx, 'kept', {})
  const inner = await tx.savepoint('inner').execute()
  await box.send(inner, 'lost', {})
  await inner.rollbackToSavepoint('inner').execute()
  await tx.commit().execute()
  const sent = await pool.query(`select type from ${box.schema}.outbox where type in ('kept', 'lost')`)
  expect(sent.rows).toEqual([{ type: 'kept' }])
  await expect(box.send(tx, 'late', {})).rejects.toMatchObject({ code: 'TRANSACTION_REQUIRED' })
})

describe('fromKysely', () => {
  const wrong: Record<string, () => readonly [unknown, unknown]> = {
    'a connection string': () => ['postgres://localhost/none', pool],
    undefined: () => [undefined, pool],
    'a pool of pg alone': () => [pool, undefined],
    'an instance alone': () => [db, undefined],
    'a client in place of the pool': () => [db, new pg.Client(database.url)],
    'a dialect of another database': () => [new Kysely({ dialect: new MysqlDialect({ pool: {} as never }) }), pool],
    'a Drizzle database': () => [{ $client: pool, session: {}, transaction: () => {} }, pool],
  }
  test.each(Object.keys(wrong))('refuses %s in words', (what) => {
    const [given, beside] = wrong[what]!()
    expect(() => fromKysely(given as never, beside as never)).toThrow(
      expect.objectContaining({ code: 'OPTION_INVALID', message: expect.stringMatching(/^fromKysely takes an inst/) }),
    )
  })

  test('refuses a transaction in words', async () => {
    await db.transaction().execute(async (tx) => {
      expect(() => fromKysely(tx as never, pool)).toThrow(/pass the instance that it was begun on/)
    })
  })

  test.each(['getExecutor', 'startTransaction'])('says in words that a version has no %s()', (member) => {
    const other = Object.create(db, { [member]: { value: undefined } }) as typeof db
    expect(() => fromKysely(other, pool)).toThrow(/^this version of kysely has no db\..*use kysely 0\.28/)
  })

  test('says in words that a version makes its transactions in another way', async () => {
    const other = new Kysely<Database>({ dialect: new PostgresDialect({ pool }) })
    const executor = { withConnectionProvider: () => ({}), withPluginAtFront: () => executor }
    Object.assign(other, { getExecutor: () => executor })
    const driver = fromKysely(other, pool)
    await expect(driver.transaction(async () => {})).rejects.toThrow(/^this version of kysely has no transaction/)
  })

  test('a Kysely instance elsewhere is sent here', () => {
    expect(() => fromPg(db as never)).toThrow(/use fromKysely of oncebox\/kysely/)
  })
})

test('Kysely 0.29 keeps what every driver must, on the Node.js that it needs', { timeout: 600_000 }, async () => {
  const child = fileURLToPath(new URL('./children/conformance.mjs', import.meta.url))
  const [node, from] = [await newerNode(), await installed('kysely@0.29.8')]
  const { stdout } = await promisify(execFile)(node, [child, 'kysely', from, database.url], { timeout: 300_000 })
  const { cases, failures, unhandled } = JSON.parse(stdout) as Record<string, unknown>
  expect([failures, unhandled]).toEqual([[], []])
  expect(cases).toBeGreaterThan(30)
})

test('a statement of sql`…` belongs to the transaction that executes it', async () => {
  const state = await handled((tx) => sql`insert into stock values ('raw', 1)`.execute(tx))
  expect([state, await skus()]).toEqual(['handled', ['raw']])
})
