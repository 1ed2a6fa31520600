/** `order: 'key'`: strict order per key, by order of receive commits, across retries, crashes and workers. */
import fc from 'fast-check'
import { batch, createBox, OnceboxError, Reject, RetryLater, type Incoming } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { NEXT_DUE } from '../../src/postgres/sql/claim.js'
import { waitUntil } from '../support/wait.js'
import { type Bench, gate, note, notes, recorder, useServer } from './fixture.js'

const server = useServer('order', { max: 20 })

/** `keyed('k', 3)` are k1, k2 and k3, of key k. */
function keyed(key: string, count: number): Incoming[] {
  return Array.from({ length: count }, (_, at) => note(`${key}${at + 1}`, { key }))
}

async function byKey(box: Bench): Promise<Record<string, string[]>> {
  const lanes: Record<string, string[]> = {}
  for (const id of await box.ids()) (lanes[id.replace(/\d+$/, '')] ??= []).push(id)
  return lanes
}

const ids = (messages: readonly Incoming[]): string[] => messages.map(({ id }) => id!)

describe('a failed message', () => {
  test('keeps those behind it waiting until it is handled, and the other keys do not wait', async () => {
    await using box = await server.open()
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          await box.write(tx, 'a', message)
          if (message.id === 'k2' && message.attempt <= 2) throw new Error('not yet')
        },
      },
      { order: 'key', retry: { baseMs: 10_000, jitter: 'none' } },
    )
    await box.receive([...keyed('k', 4), ...keyed('l', 3)])
    await box.drain()
    expect(await byKey(box)).toEqual({ k: ['k1'], l: ['l1', 'l2', 'l3'] })
    await box.clock.advance(10_001)
    await box.drain()
    expect((await byKey(box))['k']).toEqual(['k1'])
    await box.clock.advance(20_001)
    await box.drain()
    expect((await byKey(box))['k']).toEqual(['k1', 'k2', 'k3', 'k4'])
  })

  test('arrivals during its delay do not overtake it', async () => {
    await using box = await server.open()
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          if (message.id === 'k1' && message.attempt === 1) throw new Error('not yet')
          await box.write(tx, 'a', message)
        },
      },
      { order: 'key', retry: { baseMs: 10_000, jitter: 'none' } },
    )
    await box.receive(note('k1', { key: 'k' }))
    await box.drain()
    await box.receive(note('k2', { key: 'k' }))
    await box.drain()
    expect(await box.ids()).toEqual([])
    await box.clock.advance(10_001)
    await box.drain()
    expect(await box.ids()).toEqual(['k1', 'k2'])
  })

  test('RetryLater and a deadline keep the order too', async () => {
    await using box = await server.open()
    const troubles = [() => Promise.reject(new RetryLater({ afterMs: 5_000 })), () => new Promise(() => {})]
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          if (message.id === 'k2') await troubles.shift()?.()
          await box.write(tx, 'a', message)
        },
      },
      { order: 'key', timeoutMs: 300, retry: { baseMs: 5_000, jitter: 'none' } },
    )
    await box.receive(keyed('k', 3))
    for (let time = 0; time < 3; time++) {
      await box.drain()
      await box.clock.advance(5_001)
    }
    expect(await box.ids()).toEqual(['k1', 'k2', 'k3'])
  })
})

describe('a dead message', () => {
  const rejectSecond = (box: Bench, onDead?: 'block' | 'skip') => {
    let rejects = true
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          if (message.id === 'k2' && rejects) throw new Reject('no')
          await box.write(tx, 'a', message)
        },
      },
      { order: 'key', ...(onDead && { onDead }) },
    )
    return { accept: () => (rejects = false) }
  }

  test.for([undefined, 'block'] as const)(
    'blocks its key and no other, also for later arrivals: %s',
    async (onDead) => {
      await using box = await server.open()
      rejectSecond(box, onDead)
      await box.receive([...keyed('k', 3), ...keyed('l', 2)])
      await box.drain()
      await box.receive([note('k4', { key: 'k' }), note('l3', { key: 'l' })])
      await box.drain()
      await box.clock.advance(86_400_000)
      await box.drain()
      expect(await byKey(box)).toEqual({ k: ['k1'], l: ['l1', 'l2', 'l3'] })
      expect(await box.fate('k2')).toMatchObject({ state: 'dead' })
      expect(await box.fate('k3')).toMatchObject({ state: 'pending', attempts: 0 })
    },
  )

  test('that blocks lets its key go on, in order, once it is retried', async () => {
    await using box = await server.open()
    const { accept } = rejectSecond(box)
    await box.receive(keyed('k', 4))
    await box.drain()
    accept()
    expect(await box.admin.retry({ id: 'k2' })).toBe(1)
    await box.drain()
    expect(await box.ids()).toEqual(['k1', 'k2', 'k3', 'k4'])
  })

  test('that blocks lets its key go on once it is discarded', async () => {
    await using box = await server.open()
    rejectSecond(box)
    await box.receive(keyed('k', 4))
    await box.drain()
    expect(await box.admin.discard({ id: 'k2' }, { reason: 'test' })).toBe(1)
    await box.drain()
    expect(await box.ids()).toEqual(['k1', 'k3', 'k4'])
  })

  test('is skipped where onDead says so', async () => {
    await using box = await server.open()
    rejectSecond(box, 'skip')
    await box.receive(keyed('k', 4))
    await box.drain()
    expect(await box.ids()).toEqual(['k1', 'k3', 'k4'])
    expect(await box.fate('k2')).toMatchObject({ state: 'dead' })
  })

  test('of one consumer does not block the same key of another', async () => {
    await using box = await server.open()
    rejectSecond(box)
    box.consumer('b', { note: (message, { tx }) => box.write(tx, 'b', message) }, { order: 'key' })
    await box.receive(keyed('k', 3))
    await box.drain()
    const effects = await box.effects()
    expect(effects.filter(({ consumer }) => consumer === 'b').map(({ id }) => id)).toEqual(['k1', 'k2', 'k3'])
    expect(effects.filter(({ consumer }) => consumer === 'a').map(({ id }) => id)).toEqual(['k1'])
  })
})

describe('among keys', () => {
  test('a hot key does not stop the others', async () => {
    await using box = await server.open()
    const stuck = gate()
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          if (message.key === 'hot') await stuck.opened
          await box.write(tx, 'a', message)
        },
      },
      { order: 'key', concurrency: 2, group: { messages: 10 } },
    )
    await box.start()
    await box.receive(keyed('hot', 50))
    for (const key of ['k', 'l', 'm']) await box.receive(keyed(key, 5))
    await waitUntil(async () => (await box.ids()).length === 15)
    stuck.open()
    await waitUntil(async () => (await box.ids()).length === 65)
    await box.stop()
    const lanes = await byKey(box)
    expect(lanes['hot']).toEqual(ids(keyed('hot', 50)))
    for (const key of ['k', 'l', 'm']) expect(lanes[key]).toEqual(ids(keyed(key, 5)))
  })

  test('messages without a key run too, neither starving the others nor starved by them', async () => {
    await using box = await server.open()
    box.consumer(
      'a',
      { note: (message, { tx }) => box.write(tx, 'a', message) },
      { order: 'key', concurrency: 1, group: { messages: 2 } },
    )
    await box.receive([...keyed('k', 30), ...Array.from({ length: 30 }, (_, at) => note(`u${at + 1}`))])
    await box.drain()
    const order = await box.ids()
    expect(order).toHaveLength(60)
    expect(order.filter((id) => id.startsWith('k'))).toEqual(ids(keyed('k', 30)))
    // Both kinds were under way in the first half.
    const half = order.slice(0, 30)
    expect(half.some((id) => id.startsWith('k'))).toBe(true)
    expect(half.some((id) => id.startsWith('u'))).toBe(true)
  })

  test('a dead message without a key blocks nothing', async () => {
    await using box = await server.open()
    box.consumer(
      'a',
      {
        note(message, { tx }) {
          if (message.id === 'u1') throw new Reject('no')
          return box.write(tx, 'a', message)
        },
      },
      { order: 'key' },
    )
    await box.receive([note('u1'), note('u2'), note('u3')])
    await box.drain()
    expect((await box.ids()).sort()).toEqual(['u2', 'u3'])
  })

  test('a batch handler gets the messages of a key in order, and one that fails holds back those behind it', async () => {
    await using box = await server.open()
    let fails = true
    box.consumer(
      'a',
      {
        note: batch(async (messages, { tx }) => {
          for (const message of messages) {
            if (message.id === 'k3' && fails) throw new Error('not yet')
            await box.write(tx, 'a', message)
          }
        }),
      },
      { order: 'key', retry: { baseMs: 5_000, jitter: 'none' } },
    )
    await box.receive([...keyed('k', 5), ...keyed('l', 5)])
    await box.drain()
    expect(await byKey(box)).toEqual({ k: ['k1', 'k2'], l: ids(keyed('l', 5)) })
    fails = false
    await box.clock.advance(5_001)
    await box.drain()
    expect((await byKey(box))['k']).toEqual(ids(keyed('k', 5)))
  })
})

describe('across workers and crashes', () => {
  test.for(['claimed', 'opened', 'handled', 'settled', 'committed'] as const)(
    'a worker that dies at %s leaves the order as it was, and each message handled once',
    async (point) => {
      await using box = await server.open()
      box.consumer(
        'a',
        { note: (message, { tx }) => box.write(tx, 'a', message) },
        { order: 'key', group: { messages: 3 }, concurrency: 2 },
      )
      await box.receive([...keyed('k', 10), ...keyed('l', 10)])
      for (let time = 0; time < 4; time++) {
        box.crashAt(point)
        await box.drain()
        await box.receive([note(`k1${time + 1}`, { key: 'k' })])
        await box.clock.advance(31_000)
      }
      await box.drain()
      await box.clock.advance(31_000)
      await box.drain()
      expect(await byKey(box)).toEqual({ k: ids(keyed('k', 14)), l: ids(keyed('l', 10)) })
    },
  )

  test('two workers and two producers: every producer finds its messages handled once, in its order', async () => {
    await using box = await server.open()
    const other = createBox({ db: fromPg(server.pool), schema: box.schema, logger: recorder() })
    const options = { order: 'key', group: { messages: 5 }, retry: { baseMs: 1, jitter: 'none' } } as const
    for (const [worker, each] of [box, other].entries()) {
      each.consumer(
        'a',
        {
          async note(message, { tx }) {
            await box.write(tx, `w${worker}`, message)
            // Every fifth fails once.
            const n = Number(message.id.split('-')[2])
            if (n % 5 === 0 && message.attempt === 1) throw new Error('once')
          },
        },
        options,
      )
    }
    await box.start()
    await other.start()
    const perProducer = 40
    const keys = ['x', 'y', 'z']
    const produce = async (producer: string, door: typeof box.receive): Promise<void> => {
      for (let n = 0; n < perProducer; n++) {
        await door(keys.map((key) => note(`${key}-${producer}-${n}`, { key })))
      }
    }
    await Promise.all([produce('p', box.receive), produce('q', other.receive)])
    const total = perProducer * keys.length * 2
    await waitUntil(async () => (await box.ids()).length >= total, { timeoutMs: 90_000 })
    await other.stop()
    await box.stop()
    const effects = await box.ids()
    expect(effects).toHaveLength(total)
    for (const key of keys) {
      for (const producer of ['p', 'q']) {
        const own = effects.filter((id) => id.startsWith(`${key}-${producer}-`)).map((id) => Number(id.split('-')[2]))
        expect(own).toEqual(Array.from({ length: perProducer }, (_, n) => n))
      }
    }
  })

  test('whatever fails, and however often, a key is handled once and in order', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.constantFrom('k', 'l', 'm', ''), fc.integer({ min: 0, max: 3 })), {
          minLength: 1,
          maxLength: 25,
        }),
        fc.constantFrom(1, 3, 10),
        async (plan, messages) => {
          await using box = await server.open()
          const failures = new Map<string, number>()
          const all = plan.map(([key, fails], at) => {
            failures.set(`${key || 'u'}-${at}`, fails)
            return note(`${key || 'u'}-${at}`, key ? { key } : {})
          })
          box.consumer(
            'a',
            {
              async note(message, { tx }) {
                await box.write(tx, 'a', message)
                if (message.attempt <= failures.get(message.id)!) throw new Error('not yet')
              },
            },
            { order: 'key', group: { messages }, retry: { attempts: 100, baseMs: 0 } },
          )
          await box.receive(all)
          await box.waitUntilHandled(...ids(all))
          const order = await box.ids()
          expect([...order].sort()).toEqual(ids(all).sort())
          for (const key of ['k', 'l', 'm']) {
            const wanted = ids(all).filter((id) => id.startsWith(key))
            expect(order.filter((id) => id.startsWith(key))).toEqual(wanted)
          }
        },
      ),
      { numRuns: 10 },
    )
  })
})

describe('the option', () => {
  test.for(['inline', 'direct'] as const)('is refused together with mode %s', async (mode) => {
    await using box = await server.open()
    expect(() => box.consumer('a', { note: () => 1 }, { order: 'key', mode })).toThrow(
      expect.objectContaining({ code: 'OPTION_INVALID' }),
    )
    expect(() => box.consumer('a', { note: () => 1 }, { order: 'key', mode })).toThrow(OnceboxError)
  })

  test('may be changed: what was stored before is still found', async () => {
    await using box = await server.open()
    const reopen = () => createBox({ db: fromPg(server.pool), schema: box.schema, logger: recorder() })
    box.consumer('a', { note: () => undefined }, { order: 'key' })
    await box.receive(keyed('k', 3))
    const unordered = reopen()
    unordered.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) })
    await unordered.receive(keyed('l', 3))
    await unordered.drain()
    const ran = await byKey(box)
    // Nobody keeps the order of what was stored without one.
    expect({ ...ran, l: ran['l']!.sort() }).toEqual({ k: ['k1', 'k2', 'k3'], l: ['l1', 'l2', 'l3'] })
    await unordered.receive(keyed('m', 3))
    const ordered = reopen()
    ordered.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) }, { order: 'key' })
    await ordered.drain()
    expect((await byKey(box))['m']!.sort()).toEqual(['m1', 'm2', 'm3'])
  })
})

describe('looking for work', () => {
  test('an idle consumer has nothing that falls due', async () => {
    await using box = await server.open()
    box.consumer('a', { note() {} })
    await box.migrate()
    const due = async (): Promise<unknown> => (await box.sql(NEXT_DUE, [JSON.stringify({ consumer: 'a' })]))[0]?.['ms']
    expect(await due()).toBeNull()
    await box.receive(note('1'))
    expect(await due()).toBe('0')
  })

  test('lanes of a consumer that no longer keeps order are worked off at once', async () => {
    await using box = await server.open()
    const ordered = createBox({ db: box.db, schema: box.schema, logger: recorder() })
    ordered.consumer('a', { note() {} }, { order: 'key' })
    for (let key = 0; key < 12; key++) await ordered.receive(notes(1, { id: `m${key}`, key: `k${key}` }))
    let runs = 0
    box.consumer('a', { note: () => void runs++ }, { group: { messages: 2 }, concurrency: 1 })
    await box.start()
    const begun = performance.now()
    await waitUntil(() => runs === 12, { what: '12 messages' })
    expect(performance.now() - begun).toBeLessThan(4_000)
  })

  test('a receiver and a settlement lock lanes in the same order, whatever the database’s collation', async (context) => {
    const plain = new pg.Pool({ connectionString: server.url, max: 1 })
    const name = `review_icu_${process.pid}`
    try {
      await plain.query(
        `create database ${name} template template0 locale_provider icu icu_locale 'en' lc_collate 'C' lc_ctype 'C'`,
      )
    } catch {
      await plain.end()
      return context.skip()
    }
    const url = new URL(server.url)
    url.pathname = `/${name}`
    const pool = new pg.Pool({ connectionString: url.href, max: 5 })
    try {
      const box = createBox({ db: fromPg(pool), logger: recorder() })
      box.consumer('a', { note() {} }, { order: 'key' })
      await box.migrate()
      await box.receive([note('1', { key: 'a' }), note('2', { key: 'B' })])
      const settlement = await pool.connect()
      await settlement.query('begin')
      await settlement.query(`select 1 from oncebox.lane where key = 'B' for update`)
      const received = box.receive([note('3', { key: 'a' }), note('4', { key: 'B' })])
      await waitUntil(async () => {
        const { rowCount } = await pool.query(
          `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
        )
        return rowCount === 1
      })
      await settlement.query(`select 1 from oncebox.lane where key = 'a' for update`)
      await settlement.query('commit')
      settlement.release()
      expect(await received).toMatchObject([{ status: 'stored' }, { status: 'stored' }])
    } finally {
      await pool.end()
      await plain.query(`drop database ${name} with (force)`)
      await plain.end()
    }
  })
})

test('a key that keeps getting messages is settled under repeatable read', async () => {
  await using box = await server.open()
  let runs = 0
  box.consumer(
    'a',
    {
      async note(message, { tx }) {
        // Whatever commits to the lane during the transaction must not fail its settlement every time.
        await box.receive(note(`more-${++runs}`, { key: 'k' }))
        if (message.id === 'n1') await box.write(tx, 'a', message)
        if (runs > 200) throw new Error('it never ends')
      },
    },
    { order: 'key', isolation: 'repeatable read', concurrency: 1, group: { messages: 1 } },
  )
  await box.receive(note('n1', { key: 'k' }))
  await box.start()
  await waitUntil(async () => (await box.ids()).length === 1, { what: 'the first message', timeoutMs: 3_000 })
})

test('a producer that commits late neither inverts the order of a key nor hides its message', async () => {
  await using box = await server.open()
  box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) }, { order: 'key' })
  await box.receive(note('k0', { key: 'k' }))
  await box.drain()
  const holder = await server.pool.connect()
  await holder.query('begin')
  await holder.query(`select 1 from ${box.schema}.lane where key = 'k' for update`)
  const waiting = async (count: number): Promise<boolean> => {
    const rows = await box.sql(
      `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
    return rows.length >= count
  }
  // They queue up for the lane, in this order, with the journal rows written and nothing committed.
  const receives: Promise<unknown>[] = []
  for (let n = 1; n <= 3; n++) {
    receives.push(box.receive(note(`k${n}`, { key: 'k' })))
    await waitUntil(() => waiting(n))
  }
  // Others are not held up.
  await box.receive(note('l1', { key: 'l' }))
  await box.drain()
  expect(await box.ids()).toEqual(['k0', 'l1'])
  await holder.query('commit')
  holder.release()
  await Promise.all(receives)
  // A receive that has waited too long tries again, behind the others: their order is that in which they were stored.
  const stored = (await box.sql('select id from ob.work order by seq')).map(({ id }) => id)
  expect([...stored].sort()).toEqual(['k1', 'k2', 'k3'])
  await box.drain()
  expect(await box.ids()).toEqual(['k0', 'l1', ...stored])
})
