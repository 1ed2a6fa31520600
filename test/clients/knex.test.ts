/** What Knex keeps beyond what every client does: its events, its settings, its lazy builders, its two kinds of pool. */
import knexBuilder, { type Knex } from 'knex'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createBox, defineMessages, unchecked } from 'oncebox'
import { fromKnex } from 'oncebox/knex'
import { createTestBox, type TestBox } from 'oncebox/testing'
import { type ScratchDatabase, scratchDatabase } from '../support/postgres.js'
import { promisesOf } from './suite.js'

const { knex } = knexBuilder

describe('Knex 3', () => promisesOf({ name: 'knex' }))

const messages = defineMessages({ opened: unchecked<{ id: string }>() })
type Tx = Knex.Transaction

const snake = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
const camel = (row: object): object =>
  Object.fromEntries(Object.entries(row).map(([name, value]) => [name.replace(/_(.)/g, (_, c: string) => c.toUpperCase()), value])) // prettier-ignore

describe('Knex, in a handler', () => {
  let database: ScratchDatabase
  let db: Knex
  let box: TestBox<typeof messages, Tx>
  let act: (tx: Tx) => Promise<unknown>
  let count = 0

  beforeAll(async () => {
    database = await scratchDatabase('knex')
    db = knex({
      ...{ client: 'pg', connection: database.url, pool: { min: 0, max: 5 } },
      log: { warn() {}, error() {} },
      // As objection's knexSnakeCaseMappers do.
      wrapIdentifier: (value, wrap) => wrap(snake(value)),
      postProcessResponse: (result: unknown) =>
        Array.isArray(result) ? result.map((row: object) => camel(row)) : result,
    })
    await db.schema.createTable('account', (table) => {
      table.text('id').primary()
      table.integer('balanceInCents')
    })
    box = await createTestBox({ db: fromKnex(db), messages })
    box.consumer('c', { opened: async (_, { tx }) => void (await act(tx)) }, { retry: { attempts: 1 } })
  })
  afterAll(async () => {
    await box?.[Symbol.asyncDispose]()
    await db?.destroy()
    await database?.close()
  })

  /** What became of a message whose handler does this. */
  async function handling(work: (tx: Tx) => Promise<unknown>) {
    await db('account').truncate()
    act = work
    const id = `m-${(count += 1)}`
    await box.receive({ id, type: 'opened', data: { id } })
    await box.drain()
    const [entry] = await box.admin.message({ id })
    const accounts = await db<{ id: string; balanceInCents: number }>('account').orderBy('id')
    return { ...entry!, accounts: accounts.map(({ id, balanceInCents }) => `${id} ${balanceInCents}`) }
  }
  const ada = { id: 'ada', balanceInCents: 5 }

  test('mappers of names act on its statements, and on none of the box’s', async () => {
    const { state, accounts } = await handling(async (tx) => {
      await tx('account').insert(ada)
      await tx('account').where({ id: 'ada' }).increment('balanceInCents', 2)
      expect(await tx('account').select('balanceInCents')).toEqual([{ balanceInCents: 7 }])
    })
    expect([state, accounts]).toEqual(['handled', ['ada 7']])
  })

  test('builders, fragments, batches and functions are its own', async () => {
    const { state, accounts } = await handling(async (tx) => {
      expect([tx.isTransaction, tx.isCompleted()]).toEqual([true, false])
      await tx.batchInsert('account', [ada, { id: 'bob', balanceInCents: 1 }], 1)
      await tx.insert({ id: 'eve', balanceInCents: tx.raw('?::int', [3]) }).into('account')
      await db('account').transacting(tx).where('id', 'bob').del()
      const known = tx('account').select('id')
      await tx('account').whereIn('id', known).update({ balanceInCents: 9 })
    })
    expect([state, accounts]).toEqual(['handled', ['ada 9', 'eve 9']])
  })

  test('its own functions are of use without it, as those of Knex are', async () => {
    let isCompleted: (() => boolean) | undefined
    const { state, accounts } = await handling(async (tx) => {
      const { savepoint } = tx
      ;({ isCompleted } = tx)
      expect(isCompleted()).toBe(false)
      await savepoint((nested) => nested('account').insert(ada))
    })
    expect([state, accounts, isCompleted!()]).toEqual(['handled', ['ada 5'], true])
  })

  test('listeners of the instance hear its statements, listeners of tx no others, and nobody the box’s', async () => {
    const [ofRoot, ofTx]: [string[], string[]] = [[], []]
    const listen = (heard: string[]) => ({ sql }: { sql: string }) => void heard.push(sql) // prettier-ignore
    const listener = listen(ofRoot)
    await db('account').truncate()
    db.on('query', listener)
    await handling(async (tx) => {
      tx.on('query', listen(ofTx))
      await tx('account').insert(ada)
      await tx.transaction((nested) => nested('account').where({ id: 'ada' }).del())
    })
    await handling((tx) => tx('account').insert(ada))
    db.off('query', listener)
    const writes = ofTx.filter((sql) => /^(insert|delete)/.test(sql))
    expect(writes).toEqual([expect.stringMatching('^insert'), expect.stringMatching('^delete')])
    expect(ofRoot.filter((sql) => sql.startsWith('insert'))).toHaveLength(2)
    expect(ofRoot.filter((sql) => /oncebox|^begin|^commit/i.test(sql))).toEqual([])
  })

  test('transactions within it follow each other, however they are begun', async () => {
    const { state, accounts } = await handling(async (tx) => {
      const inner = await Promise.allSettled([
        tx.transaction(async (nested) => {
          await nested('account').insert(ada)
          throw new Error('of the first')
        }),
        tx.savepoint((nested) => nested('account').insert({ id: 'bob', balanceInCents: 1 })),
      ])
      expect(inner.map(({ status }) => status)).toEqual(['rejected', 'fulfilled'])
      const manual = await tx.transaction()
      await manual('account').insert({ id: 'eve', balanceInCents: 2 })
      await manual.commit()
    })
    expect([state, accounts]).toEqual(['handled', ['bob 1', 'eve 2']])
  })

  test.each(['commit', 'rollback', 'destroy'] as const)('%s() is refused, awaited or not', async (call) => {
    const { state, error, accounts } = await handling(async (tx) => {
      await tx('account').insert(ada)
      void tx[call]()
    })
    expect([state, error?.code, accounts]).toEqual(['dead', 'HANDLER_COMMITTED', []])
    expect(await db('account').count()).toEqual([{ count: '0' }])
  })

  test('a write that nobody awaited is found, sent or not', async () => {
    const FORGOTTEN: ((tx: Tx) => unknown)[] = [
      (tx) => tx('account').insert(ada),
      (tx) => tx('account').where('id', 'ada').update({ balanceInCents: 1 }),
      (tx) => tx.schema.createTable('other', (table) => table.text('id')),
      (tx) =>
        tx('account')
          .insert(ada)
          .catch(() => {}),
    ]
    for (const forget of FORGOTTEN) {
      const { state, error, accounts } = await handling(async (tx) => void forget(tx))
      expect([state, error?.code, accounts]).toEqual(['dead', 'UNAWAITED_QUERY', []])
    }
  })

  test.each<[string, (tx: Tx) => unknown]>([
    ['a transaction', (tx) => tx.transaction((nested) => nested('account').insert(ada))],
    ['a savepoint', (tx) => tx.savepoint((nested) => nested('account').insert(ada))],
    ['a transaction in another function', (tx) => (async () => void (await tx.transaction((nested) => nested('account').insert(ada))))()], // prettier-ignore
    ['a transaction that has failed', (tx) => tx.transaction(() => Promise.reject(new Error('of the nested')))],
    ['a batch', (tx) => tx.batchInsert('account', [ada, { id: 'bob' }], 1)],
  ])('%s within that nobody awaited fails the message, and not the process', async (_, forget) => {
    const { state, error, accounts } = await handling(async (tx) => {
      void forget(tx)
      await tx.raw('select 1')
    })
    // vitest fails for a rejection that nobody handled.
    expect([state, error?.code, accounts]).toEqual(['dead', 'UNAWAITED_QUERY', []])
  })

  test('a write that is part of another statement, or read as text, is not taken for a forgotten one', async () => {
    const { state, accounts } = await handling(async (tx) => {
      const inserted = tx('account').insert(ada).returning('*')
      await tx.with('inserted', inserted).select('*').from('inserted')
      expect(tx('account').del().toQuery()).toContain('delete')
      await tx.schema.createTable('other', (table) => table.text('id')).dropTable('other')
      expect(await tx.schema.hasTable('other')).toBe(false)
      await tx.transaction((nested) => tx('account').insert({ id: 'bob', balanceInCents: 1 }).transacting(nested))
    })
    expect([state, accounts]).toEqual(['handled', ['ada 5', 'bob 1']])
  })

  test('values of a row are in no message of an error', async () => {
    const { error } = await handling((tx) => tx('account').insert([{ id: 'secret-4711' }, { id: 'secret-4711' }]))
    expect(error).toMatchObject({ code: '23505', message: expect.stringContaining('account_pkey') })
    expect(JSON.stringify(error)).not.toContain('secret')
  })

  test('what is no transaction is named, with the call to make', async () => {
    const over = await db.transaction()
    await over.commit()
    for (const handle of [db, over, db('account')]) {
      await expect(box.send(handle as unknown as Tx, 'opened', { id: 'ada' })).rejects.toMatchObject({
        code: 'TRANSACTION_REQUIRED',
        message: expect.stringContaining('knex.transaction()'),
      })
    }
  })

  test('transactions that are begun without a callback, or within others, take part in send', async () => {
    const tx = await db.transaction()
    await box.send(tx, 'opened', { id: 'ada' })
    await tx.transaction((nested) => box.send(nested, 'opened', { id: 'bob' })).then(() => tx.commit())
    expect((await box.sent()).map(({ data }) => data.id)).toEqual(['ada', 'bob'])
  })

  test('a pool of pg that Knex was given is used as it is', async () => {
    const pool = new pg.Pool({ connectionString: database.url, max: 3 })
    const shared = knex({ client: 'pg', connectionPool: pool } as Knex.Config)
    const driver = fromKnex(shared)
    expect(driver.capacity).toBe(3)
    const other = await createTestBox({ db: driver, messages })
    other.consumer('c', { opened: async (_, { tx }) => void (await tx.raw('select 1')) })
    expect(await other.handle({ id: 'a', type: 'opened', data: { id: 'a' } })).toMatchObject({ status: 'handled' })
    await other[Symbol.asyncDispose]()
    await shared.destroy()
    await pool.end()
  })

  test('a box whose instance was destroyed stops, and says why', async () => {
    const other = knex({ client: 'pg', connection: database.url, pool: { min: 0, max: 2 }, log: { warn() {} } })
    const left = createBox({ db: fromKnex(other), messages, schema: box.schema })
    await other.destroy()
    const { ok, reasons } = await left.health()
    expect([ok, reasons?.join()]).toEqual([false, expect.stringContaining('the pool was ended')])
    await left.stop()
  })
})

describe('fromKnex', () => {
  const invalid = (words: string) =>
    expect.objectContaining({ code: 'OPTION_INVALID', message: expect.stringContaining(words) })
  const instance = (): Knex => knex({ client: 'pg', connection: 'postgres://localhost/none', pool: { min: 0 } })
  /** An instance whose client lacks a member. */
  const without = (member: string): unknown => Object.assign(instance(), { client: Object.create(instance().client, { [member]: { value: undefined } }) }) // prettier-ignore

  const WRONG: Record<string, [given: unknown, words: string]> = {
    'a connection string': ['postgres://localhost/none', 'a text'],
    nothing: [undefined, 'undefined'],
    'another ORM’s object': [{ createQueryRunner() {}, manager: {} }, 'fromTypeOrm'],
    'a transaction': [Object.assign(instance(), { isTransaction: true }), 'a transaction'],
    'an instance for another database': [Object.assign(instance(), { client: { dialect: 'mysql' } }), 'mysql'],
    'an instance without a pool': [knex({ client: 'pg' }), 'without a pool'],
    'a version without its driver': [without('driver'), 'client.driver'],
    'a version without its compiler': [without('queryCompiler'), 'client.queryCompiler'],
    'a version without its transactions': [Object.defineProperty(instance(), 'context', { value: { client: instance().client } }), '_transaction'], // prettier-ignore
  }
  test.each(Object.entries(WRONG))('refuses %s in words', (_, [given, words]) => {
    expect(() => fromKnex(given as Knex)).toThrow(invalid(words))
  })
})
