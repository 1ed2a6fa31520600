/** The test kit keeps its word on PGlite and on a server: a clock, crashes, what was sent, and nothing left behind. */
import { PGlite } from '@electric-sql/pglite'
import { defineMessages, Reject, unchecked, type Driver, type OnceboxError } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { fromPglite } from 'oncebox/pglite'
import { createTestBox, crashAt, SimulatedCrash, type TestBox } from 'oncebox/testing'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { type ScratchDatabase, scratchDatabase } from '../support/postgres.js'

const messages = defineMessages({
  'order.placed': z.object({ order: z.string(), at: z.iso.datetime().transform((text) => new Date(text)) }),
  'stock.reserved': unchecked<{ order: string }>(),
})
type M = typeof messages
/** What both kinds of box have in common: a transaction that takes a statement. */
interface Tx {
  query(text: string, values?: unknown[]): Promise<{ rows: Record<string, unknown>[] }>
}
type AnyBox = TestBox<M, Tx>

let database: ScratchDatabase
let pool: pg.Pool
let pglite: PGlite
beforeAll(async () => {
  // Opening one takes a second or more, so the tests share it, a schema each. By default each box has its own.
  pglite = await PGlite.create()
  database = await scratchDatabase('test_box')
  pool = new pg.Pool({ connectionString: database.url, max: 10 })
})
afterAll(async () => {
  await pool.end()
  await database.close()
  await pglite.close()
})

const kinds: [name: string, open: (options?: object) => Promise<AnyBox>][] = [
  ['PGlite', async (options) => await createTestBox({ db: fromPglite(pglite), messages, ...options })],
  ['a server', async (options) => await createTestBox({ db: fromPg(pool), messages, ...options })],
]

const placed = (id: string, order = id) => ({
  id,
  type: 'order.placed',
  data: { order, at: '2020-01-01T00:00:00.000Z' },
})

/** A table of effects in the box's schema, written by handlers. */
async function ledger(box: AnyBox) {
  const table = `"${box.schema}".test_ledger`
  await box.db.query(`create table ${table} (n serial, id text)`, [])
  return {
    write: (tx: Tx, id: string) => tx.query(`insert into ${table} (id) values ($1)`, [id]),
    ids: async () => (await box.db.query(`select id from ${table} order by n`, [])).map((row) => row['id'] as string),
  }
}

describe.for(kinds)('on %s', ([, open]) => {
  test('a message delivered several times is stored once and runs its handler once', async () => {
    await using box = await open()
    const { write, ids } = await ledger(box)
    box.consumer('reserve', { 'order.placed': (message, { tx }) => write(tx, message.id) })
    const outcomes = await box.deliver(placed('1'), { times: 3 })
    expect(outcomes.map(({ status }) => status)).toEqual(['stored', 'duplicate', 'duplicate'])
    expect(await ids()).toEqual([])
    await box.drain()
    expect(await ids()).toEqual(['1'])
    expect(await box.deliver(placed('1'))).toMatchObject([{ status: 'duplicate', ack: true }])
  })

  test('sent() shows what handlers sent, in order, as its consumer would get it', async () => {
    await using box = await open({ source: 'shop' })
    box.consumer('reserve', {
      async 'order.placed'(message, { send }) {
        await send('stock.reserved', { order: message.data.order }, { key: 'k' })
        await send('order.placed', { order: 'next', at: message.data.at.toISOString() })
        if (message.id === 'bad') throw new Reject('no')
      },
    })
    expect(await box.sent()).toEqual([])
    await box.deliver(placed('bad'))
    await box.deliver(placed('1', 'o1'))
    await box.drain()
    expect(await box.sent()).toMatchObject([
      { type: 'stock.reserved', source: 'shop', key: 'k', data: { order: 'o1' }, causationId: '1', correlationId: '1' },
      { type: 'order.placed', data: { order: 'next', at: new Date('2020-01-01T00:00:00.000Z') } },
    ])
  })

  test('clock.advance() makes retries fall due, and messages grow old', async () => {
    await using box = await open()
    let runs = 0
    box.consumer(
      'reserve',
      {
        'order.placed'() {
          if (++runs === 1) throw new Error('not yet')
        },
      },
      { retry: { baseMs: 3_600_000, jitter: 'none' } },
    )
    await box.deliver({ ...placed('1'), time: new Date() })
    await box.drain()
    await box.clock.advance(1_800_000)
    await box.drain()
    expect(runs).toBe(1)
    await box.clock.advance(1_800_001)
    await box.drain()
    expect(runs).toBe(2)
    await box.clock.advance(40 * 86_400_000)
    expect(await box.deliver({ ...placed('2'), time: new Date() })).toMatchObject([{ reason: 'too-old' }])
  })

  test('waitFor() runs what is due until the message is there, and says what it is if it never is', async () => {
    await using box = await open()
    box.consumer(
      'reserve',
      {
        'order.placed'(message) {
          if (message.id === 'dead') throw new Reject('no')
          if (message.attempt < 3) throw new Error('not yet')
        },
      },
      { retry: { baseMs: 20, jitter: 'none' } },
    )
    await box.deliver(placed('1'))
    await box.waitFor('1', 'handled')
    await box.deliver(placed('dead'))
    await box.waitFor('dead', 'dead')
    await box.deliver({ id: 'odd', type: 'order.placed', data: 1 })
    await box.waitFor('odd', 'quarantined')
    await expect(box.waitFor('dead', 'handled', { timeoutMs: 50 })).rejects.toThrow('reserve: dead (Reject: no)')
    await expect(box.waitFor('nowhere', 'handled', { timeoutMs: 50 })).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test.for(['received', 'claimed', 'opened', 'handled', 'settled', 'committed'] as const)(
    'a crash at %s: delivered again and taken over, the effects are there once',
    async (point) => {
      await using box = await open()
      const { write, ids } = await ledger(box)
      box.consumer('reserve', {
        async 'order.placed'(message, { tx, send }) {
          await write(tx, message.id)
          await send('stock.reserved', { order: message.id })
        },
      })
      box.crashAt(point)
      const deliver = () => Promise.all(['1', '2', '3'].map((id) => box.deliver(placed(id)).catch(() => undefined)))
      await deliver()
      await box.drain()
      await deliver()
      // Whoever held them is dead; after their lease they are somebody else's.
      await box.clock.advance(31_000)
      await box.drain()
      expect((await ids()).sort()).toEqual(['1', '2', '3'])
      const sent = (await box.sent()).map(({ data }) => data.order)
      expect(sent.sort()).toEqual(['1', '2', '3'])
    },
  )

  test.for(['opened', 'handled', 'settled', 'committed'] as const)(
    'a crash at %s of handle() rejects, and the next call settles it',
    async (point) => {
      await using box = await open()
      const { write, ids } = await ledger(box)
      box.consumer('reserve', { 'order.placed': (message, { tx }) => write(tx, message.id).then(() => 'done') })
      box.crashAt(point)
      await expect(box.handle(placed('1'))).rejects.toThrow(SimulatedCrash)
      const again = await box.handle(placed('1'))
      expect(again).toMatchObject({
        status: point === 'committed' ? 'duplicate' : 'handled',
        result: 'done',
        ack: true,
      })
      expect(await ids()).toEqual(['1'])
    },
  )

  test.for(['intended', 'called'] as const)(
    'a crash at %s of an effect: called again with the same key, the message handled once',
    async (point) => {
      await using box = await open()
      const { write, ids } = await ledger(box)
      const keys: string[] = []
      box.consumer('charge', {
        async 'order.placed'(message, { tx, effect }) {
          const charge = await effect('charge', ({ idempotencyKey }) => {
            keys.push(idempotencyKey)
            return { charged: true }
          })
          expect(charge).toEqual({ charged: true })
          await write(tx, message.id)
        },
      })
      box.crashAt(point)
      await box.deliver(placed('1'))
      await box.drain()
      await box.clock.advance(31_000)
      await box.drain()
      expect(await ids()).toEqual(['1'])
      expect(new Set(keys).size).toBe(1)
      expect(keys).toHaveLength(point === 'called' ? 2 : 1)
    },
  )

  test('a point fires as often as it was told, and not once it is disarmed', async () => {
    await using box = await open()
    box.consumer('reserve', { 'order.placed': () => undefined })
    box.crashAt('received', { times: 2 })
    await expect(box.deliver(placed('1'))).rejects.toThrow("simulated crash at 'received'")
    await expect(box.deliver(placed('1'))).rejects.toThrow(SimulatedCrash)
    expect(await box.deliver(placed('1'))).toMatchObject([{ status: 'duplicate' }])
    const disarm = box.crashAt('received')
    disarm()
    expect(await box.deliver(placed('2'))).toMatchObject([{ status: 'stored' }])
  })

  test('disposing disarms the points that are left', async () => {
    {
      await using box = await open()
      box.crashAt('received')
    }
    await using box = await open()
    box.consumer('reserve', { 'order.placed': () => undefined })
    expect(await box.deliver(placed('1'))).toMatchObject([{ status: 'stored' }])
  })

  test.for(['received', 'claimed', 'opened', 'handled', 'settled', 'committed', 'intended', 'called'] as const)(
    'a crash at %s does not happen in another box of the process',
    async (point) => {
      await using armed = await open()
      await using other = await open()
      other.consumer('charge', { 'order.placed': (_message, { effect }) => effect('charge', () => 'done') })
      armed.crashAt(point)
      expect(await other.deliver(placed('1'))).toMatchObject([{ status: 'stored' }])
      await other.drain()
      expect(await other.admin.message({ id: '1' })).toMatchObject([{ state: 'handled' }])
    },
  )

  test('crashAt of the module is for every box', async () => {
    await using box = await open()
    box.consumer('reserve', { 'order.placed': () => undefined })
    const disarm = crashAt('received')
    await expect(box.deliver(placed('1'))).rejects.toThrow(SimulatedCrash)
    disarm()
  })

  test('it is a whole box: it starts, stops, and takes the options of one', async () => {
    const dead: string[] = []
    await using box = await open({
      hooks: { dead: (entry: { message: { id: string } }) => void dead.push(entry.message.id) },
    })
    box.consumer('reserve', {
      'order.placed'() {
        throw new Reject('no')
      },
    })
    await box.start()
    await box.deliver(placed('1'))
    await expect.poll(() => dead, { timeout: 10_000 }).toEqual(['1'])
    await box.stop()
    expect(await box.health()).toMatchObject({ database: true })
  })

  test('two boxes at once know nothing of each other', async () => {
    await using one = await open()
    await using two = await open()
    const seen: string[] = []
    one.consumer('reserve', { 'order.placed': () => void seen.push('one') })
    two.consumer('reserve', { 'order.placed': () => void seen.push('two') })
    await one.deliver(placed('1'))
    await two.clock.advance(1_000_000)
    await two.drain()
    expect(seen).toEqual([])
    await one.drain()
    expect(seen).toEqual(['one'])
  })
})

test('a point that does not exist is refused', () => {
  expect(() => crashAt('nowhere' as never)).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
})

test('on a server: await using drops the schema, and a box that still runs is stopped first', async () => {
  let schema: string
  const count = async (): Promise<number> => {
    const { rows } = await pool.query('select 1 from pg_namespace where nspname = $1', [schema])
    return rows.length
  }
  {
    await using box = await createTestBox({ db: fromPg(pool), messages })
    ;({ schema } = box)
    box.consumer('reserve', { 'order.placed': () => undefined })
    await box.start()
    expect(await count()).toBe(1)
  }
  expect(await count()).toBe(0)
  const { rows } = await pool.query(`select 1 from pg_namespace where nspname like 'oncebox_test_%'`)
  expect(rows).toEqual([])
})

test('by default: a PGlite of its own, which await using closes', { timeout: 240_000 }, async () => {
  const seen: unknown[] = []
  let db: Driver<unknown>
  {
    await using box = await createTestBox()
    db = box.db
    box.consumer('any', {
      anything: async ({ data }, { tx }) => void seen.push(data, (await tx.query('select 1 one')).rows),
    })
    await box.deliver({ id: '1', type: 'anything', data: 7 }, { times: 2 })
    await box.drain()
  }
  expect(seen).toEqual([7, [{ one: 1 }]])
  await expect(db.query('select 1 one', [])).rejects.toThrow()
})

test('a PGlite that cannot be opened is not called one that is not installed', async () => {
  const full = new Error('no memory left')
  const create = vi.spyOn(PGlite, 'create').mockRejectedValueOnce(full)
  onTestFinished(() => create.mockRestore())
  const { code, cause, message } = await createTestBox().then(
    () => expect.unreachable('it was opened'),
    (error: unknown) => error as OnceboxError,
  )
  expect({ code, cause }).toEqual({ code: 'OPTION_INVALID', cause: full })
  expect(message).toContain('no memory left')
  expect(message).not.toContain('npm install')
})

test('a PGlite of your own is yours: it stays open', async () => {
  {
    await using box = await createTestBox({ db: fromPglite(pglite) })
    expect(await box.health()).toMatchObject({ ok: true })
  }
  const { rows } = await pglite.query(`select 1 from pg_namespace where nspname like 'oncebox_test_%'`)
  expect(rows).toEqual([])
})
