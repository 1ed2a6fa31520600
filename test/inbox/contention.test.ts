/** Rows that others hold, and levels of isolation: nobody is to blame, and everybody gets through. */
import { describe, expect, test } from 'vitest'
import { waitUntil } from '../support/wait.js'
import { note, notes, useServer } from './fixture.js'

const server = useServer('contention', { max: 20 })

describe('locks', () => {
  test('a row that somebody holds costs no attempt, and the neighbours do not wait for it', async () => {
    await using box = await server.open()
    await box.sql('create table ob.stock (sku text primary key, n int)')
    await box.sql(`insert into ob.stock values ('n1', 0), ('n2', 0), ('n3', 0)`)
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          await tx.query(`update ${box.schema}.stock set n = n + 1 where sku = $1`, [message.id])
        },
      },
      { retry: { attempts: 1 } },
    )
    await box.receive(notes(3))
    const holder = await server.pool.connect()
    await holder.query('begin')
    await holder.query(`update ${box.schema}.stock set n = n where sku = 'n2'`)
    const drained = box.drain()
    await waitUntil(async () => (await box.fate('n1')).state === 'handled')
    expect((await box.fate('n2')).state).not.toBe('handled')
    await holder.query('commit')
    holder.release()
    await drained
    await box.waitUntilHandled('n1', 'n2', 'n3')
    const rows = await box.sql('select n from ob.stock')
    expect(rows.map(({ n }) => n)).toEqual([1, 1, 1])
  })

  test('groups that update shared rows in opposite order all get through, once, with no attempt burnt', async () => {
    await using box = await server.open()
    await box.sql('create table ob.account (id int primary key, n int)')
    await box.sql('insert into ob.account select i, 0 from generate_series(0, 4) i')
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          const n = Number(message.id.slice(1))
          for (const id of n % 2 ? [n % 5, (n + 2) % 5] : [(n + 2) % 5, n % 5]) {
            await tx.query(`update ${box.schema}.account set n = n + 1 where id = $1`, [id])
          }
        },
      },
      { retry: { attempts: 1 }, group: { messages: 10 } },
    )
    await box.receive(notes(100))
    await box.waitUntilHandled(...notes(100).map(({ id }) => id!))
    expect(await box.sql('select sum(n)::int total from ob.account')).toEqual([{ total: 200 }])
  })
})

describe('isolation', () => {
  const LEVELS = ['read committed', 'repeatable read', 'serializable'] as const

  test.for(LEVELS.flatMap((level) => (['stored', 'inline', 'direct'] as const).map((mode) => [level, mode] as const)))(
    '%s is what the handler gets: %s',
    async ([isolation, mode]) => {
      await using box = await server.open()
      const seen: unknown[] = []
      box.consumer(
        'a',
        {
          async note(_message, { tx }) {
            seen.push((await tx.query('show transaction_isolation')).rows[0].transaction_isolation)
          },
        },
        { isolation, mode },
      )
      if (mode === 'stored') {
        await box.receive(notes(2))
        await box.drain()
      } else await box.handle(notes(2))
      expect(seen).toEqual([isolation, isolation])
    },
  )

  test.for(['repeatable read', 'serializable'] as const)(
    'a serialization failure is tried again and burns no attempt: %s',
    async (isolation) => {
      await using box = await server.open()
      await box.sql('create table ob.counter (n int)')
      await box.sql('insert into ob.counter values (0)')
      const counter = `${box.schema}.counter`
      box.consumer(
        'a',
        {
          async note(_message, { tx }) {
            const { rows } = await tx.query(`select n from ${counter}`)
            await tx.query(`update ${counter} set n = $1`, [rows[0].n + 1])
          },
        },
        { isolation, retry: { attempts: 1 }, group: { messages: 1 }, concurrency: 4 },
      )
      await box.receive(notes(20))
      await box.waitUntilHandled(...notes(20).map(({ id }) => id!))
      expect(await box.sql('select n from ob.counter')).toEqual([{ n: 20 }])
    },
  )

  test.for(LEVELS.flatMap((level) => (['none', 'key'] as const).map((order) => [level, order] as const)))(
    'a handler longer than its lease settles under %s, order %s',
    async ([isolation, order]) => {
      await using box = await server.open()
      let runs = 0
      box.consumer(
        'a',
        {
          async note(message, { tx }) {
            runs++
            await tx.query('select pg_sleep(1.3)')
            await box.write(tx, 'a', message)
          },
        },
        { isolation, order, leaseMs: 1_000, timeoutMs: 10_000, retry: { attempts: 1 } },
      )
      await box.receive(note('1', { key: 'k' }))
      await box.drain()
      expect(await box.fate('1')).toMatchObject({ state: 'handled' })
      expect(await box.ids()).toEqual(['1'])
      expect(runs).toBe(1)
    },
  )
})

test('groups that update shared rows get through at speed, and burn no attempt', async () => {
  await using box = await server.open()
  await box.sql('create table ob.stock (sku int primary key, n int not null)')
  await box.sql('insert into ob.stock select i, 0 from generate_series(0, 9) i')
  box.consumer(
    'a',
    {
      async note(message, { tx }) {
        const sku = Number(message.id.slice(1)) % 10
        await tx.query(`update ${box.schema}.stock set n = n + 1 where sku = $1`, [sku])
      },
    },
    { retry: { attempts: 1 }, concurrency: 4 },
  )
  await box.receive(notes(600))
  await box.start()
  // At the 13 messages per second of deadlock after deadlock this would take 46 s.
  await waitUntil(async () => (await box.sql('select 1 from ob.work limit 1')).length === 0, { timeoutMs: 90_000 })
  await box.stop()
  expect(await box.sql('select sum(n)::int total from ob.stock')).toEqual([{ total: 600 }])
})
