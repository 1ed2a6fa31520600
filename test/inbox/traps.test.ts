/**
 * The traps: behaviours of PostgreSQL and its clients that have cost other systems messages, each shown to do no harm
 * here. Those that need a second server, a full disk or a killed process are tested elsewhere.
 */
import { randomBytes } from 'node:crypto'
import { createBox, type Incoming, type Message } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import type pg from 'pg'
import { describe, expect, test } from 'vitest'
import { waitUntil } from '../support/wait.js'
import { type Bench, gate, note, notes, recorder, useServer } from './fixture.js'

const server = useServer('traps', { max: 20 })
const MODES = ['stored', 'inline'] as const

/** Ends the transaction by a command that looks like part of a string, which PostgreSQL alone can tell. */
async function hidden(tx: pg.PoolClient, command: string): Promise<void> {
  await tx.query('SET LOCAL standard_conforming_strings = off')
  await tx.query(`select 'a\\'';${command};--'`)
}

/** The connection under a handler's transaction, broken as a network would. */
function cut(tx: pg.PoolClient): void {
  ;(tx as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy()
}

test('trap 1: after a swallowed SQL error COMMIT answers ROLLBACK; the message is not acknowledged', async () => {
  await using box = await server.open()
  box.consumer(
    'a',
    {
      async note(message, { tx }) {
        await box.write(tx, 'a', message)
        await tx.query('select 1/0').catch(() => undefined)
      },
    },
    { mode: 'inline' },
  )
  expect(await box.handle(note('1'))).toMatchObject({ status: 'failed', ack: false })
  expect(await box.effects()).toEqual([])
})

test.for(MODES)(
  'trap 2: COMMIT; BEGIN in a handler leaves the transaction status as it was; it is found out: %s',
  async (mode) => {
    await using box = await server.open()
    let runs = 0
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          runs++
          await box.write(tx, 'a', message, 'before')
          await hidden(tx, 'ROLLBACK; BEGIN')
          await box.write(tx, 'a', message, 'after')
        },
      },
      { mode, retry: { attempts: 2, baseMs: 0 } },
    )
    await box.receive(note('1'))
    await box.drain()
    expect(runs).toBe(2)
    expect(await box.effects()).toEqual([])
    expect(await box.fate('1')).toMatchObject({ state: 'dead', error: { code: 'HANDLER_COMMITTED' } })
  },
)

test('trap 3: ids that only differ in lone surrogates are not taken for one another', async () => {
  await using box = await server.open()
  box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) })
  const outcomes = await box.handle([note('a\ud800b'), note('a\ud801b'), note('a\ufffdb')])
  expect(outcomes.map(({ status }) => status)).toEqual(['quarantined', 'quarantined', 'handled'])
  expect(await box.quarantine()).toHaveLength(2)
})

test.for(MODES)(
  'trap 4: a connection lost in mid-COMMIT: the message runs once, however late the commit shows: %s',
  async (mode) => {
    await using box = await server.open()
    await box.sql(
      `create function ob.late() returns trigger language plpgsql as $$ begin perform pg_sleep(0.7); return null; end $$`,
    )
    await box.sql(
      'create constraint trigger late after insert on ob.test_ledger deferrable initially deferred for each row execute function ob.late()',
    )
    let runs = 0
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          runs++
          await box.write(tx, 'a', message)
          // By then COMMIT is under way, and the server goes on with it.
          setTimeout(() => cut(tx), 250)
          return 'result'
        },
      },
      { mode, group: { messages: 1 } },
    )
    if (mode === 'inline') expect(await box.handle(note('1'))).toMatchObject({ status: 'handled', result: 'result' })
    else {
      await box.receive(note('1'))
      await box.waitUntilHandled('1')
    }
    expect(runs).toBe(1)
    expect(await box.ids()).toEqual(['1'])
    expect(await box.handle(note('1'))).toMatchObject({ status: 'duplicate', result: 'result' })
  },
)

test.for(MODES)(
  'trap 4: a connection lost before COMMIT arrived: nothing is there, and it runs again: %s',
  async (mode) => {
    await using box = await server.open()
    let runs = 0
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          await box.write(tx, 'a', message)
          if (++runs === 1) cut(tx)
        },
      },
      { mode, group: { messages: 1 }, retry: { attempts: 1 } },
    )
    if (mode === 'inline') {
      await box.handle(note('1')).catch(() => undefined)
      await waitUntil(async () => ['handled', 'duplicate'].includes((await box.handle(note('1'))).status))
    } else {
      await box.receive(note('1'))
      await box.drain().catch(() => undefined)
      await box.waitUntilHandled('1')
    }
    expect(runs).toBe(2)
    expect(await box.ids()).toEqual(['1'])
  },
)

describe('trap 5: a cancelled wait for a synchronous standby is only a warning, and a failover may take the row away', () => {
  /** Warns at COMMIT, as the server does then; committed it is all the same. */
  const warnAtCommit = async (box: Bench, table: string): Promise<void> => {
    await box.sql(
      `create function ob.warn() returns trigger language plpgsql as $$ begin raise warning 'canceling wait'; return null; end $$`,
    )
    await box.sql(
      `create constraint trigger warn after insert on ob.${table} deferrable initially deferred for each row execute function ob.warn()`,
    )
  }

  test.for([1, 3])(
    'what was handled so is not acknowledged; delivered again, it is a duplicate: %i at once',
    async (count) => {
      await using box = await server.open()
      let runs = 0
      box.consumer('a', {
        async note(message, { tx }) {
          runs++
          await box.write(tx, 'a', message)
          return 'result'
        },
      })
      await warnAtCommit(box, 'test_ledger')
      for (const outcome of await box.handle(notes(count))) {
        expect(outcome).toMatchObject({ status: 'handled', ack: false, result: 'result' })
      }
      for (const outcome of await box.handle(notes(count))) {
        expect(outcome).toMatchObject({ status: 'duplicate', ack: true, result: 'result' })
      }
      expect(runs).toBe(count)
    },
  )

  test('what was stored so is not acknowledged either', async () => {
    await using box = await server.open()
    box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) })
    await warnAtCommit(box, 'message')
    await expect(box.receive(note('1'))).rejects.toMatchObject({ code: 'COMMIT_UNCERTAIN' })
    expect(await box.receive(note('1'))).toMatchObject({ status: 'duplicate', ack: true })
    await box.drain()
    expect(await box.ids()).toEqual(['1'])
  })

  test('nor what was quarantined so', async () => {
    await using box = await server.open()
    await warnAtCommit(box, 'quarantine')
    await expect(box.receive(note('1'))).rejects.toMatchObject({ code: 'COMMIT_UNCERTAIN' })
    expect(await box.receive(note('1'))).toMatchObject({ status: 'quarantined', ack: true })
  })
})

test('trap 6: a redelivery after its row was pruned does not run again', async () => {
  await using box = await server.open()
  box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) }, { retainMs: 3_600_000 })
  const time = new Date()
  await box.handle(note('1', { time }))
  await box.clock.advance(4 * 3_600_000)
  const [pruned, outcome] = await Promise.all([box.admin.prune(), box.handle(note('1', { time }))])
  expect(pruned).toBe(1)
  expect(outcome.status === 'duplicate' || (outcome.status === 'quarantined' && outcome.reason === 'too-old')).toBe(
    true,
  )
  expect(await box.handle(note('1', { time }))).toMatchObject({ reason: 'too-old', ack: true })
  expect(await box.ids()).toEqual(['1'])
})

test('trap 7: the copy of a message in flight waits for a bounded time, holds no connection for long, and is busy', async () => {
  await using box = await server.open()
  const started = gate()
  const finish = gate()
  box.consumer('a', {
    async note(message, { tx }) {
      started.open()
      await finish.opened
      await box.write(tx, 'a', message)
    },
  })
  const first = box.handle(note('1'))
  await started.opened
  // More copies than there are connections in the pool.
  const copies = Promise.all(Array.from({ length: 60 }, () => box.handle(note('1'))))
  const other = box.handle(note('2', { type: 'other' }))
  expect(await other).toMatchObject({ reason: 'unrouted' })
  for (const { status, ack } of await copies) expect([status, ack]).toEqual(['busy', false])
  finish.open()
  expect(await first).toMatchObject({ status: 'handled' })
  expect(await box.ids()).toEqual(['1'])
})

test('trap 7: receive does not wait for a message that is being handled on arrival either, and stores the others', async () => {
  await using box = await server.open()
  const started = gate()
  const finish = gate()
  box.consumer('a', {
    async note(message, { tx }) {
      if (message.id === 'n2') {
        started.open()
        await finish.opened
      }
      await box.write(tx, 'a', message)
    },
  })
  const handling = box.handle(note('n2'))
  await started.opened
  const outcomes = await box.receive(notes(3))
  expect(outcomes).toMatchObject([
    { id: 'n1', status: 'stored', ack: true },
    { id: 'n2', status: 'busy', ack: false, consumers: [{ consumer: 'a', status: 'busy' }] },
    { id: 'n3', status: 'stored', ack: true },
  ])
  finish.open()
  expect(await handling).toMatchObject({ status: 'handled' })
  expect(await box.receive(note('n2'))).toMatchObject({ status: 'duplicate', ack: true })
  await box.drain()
  expect((await box.ids()).sort()).toEqual(['n1', 'n2', 'n3'])
})

test('trap 8: what jsonb refuses or changes comes through unchanged, or is kept as bytes', async () => {
  await using box = await server.open()
  const bodies = [
    '"\\u0000"',
    '"\\ud800"',
    '{"a":1,"a":2}',
    '1e999',
    '12345678901234567890123',
    '[1.0, 1.10, 1e2]',
    '{"b":1,"a":2}',
    `${'['.repeat(400)}${']'.repeat(400)}`,
    `${'['.repeat(100_000)}${']'.repeat(100_000)}`,
    Buffer.from([0xc3, 0x28]),
  ]
  box.consumer('a', { note: () => undefined })
  const outcomes = await box.receive(bodies.map((body, at): Incoming => ({ id: `b${at}`, type: 'note', body })))
  expect(outcomes.map(({ status }) => status)).toEqual([...Array(8).fill('stored'), 'quarantined', 'quarantined'])
  const stored = await box.sql('select id, body from ob.message')
  const kept = await box.quarantine()
  bodies.forEach((body, at) => {
    const row = stored.find(({ id }) => id === `b${at}`) ?? kept.find(({ id }) => id === `b${at}`)
    const bytes = (row as { bytes?: Buffer | null }).bytes ?? Buffer.from(row!.body as string)
    expect(Buffer.compare(bytes, Buffer.from(body as string))).toBe(0)
  })
  await box.drain()
  expect(await box.sql('select 1 from ob.work')).toEqual([])
})

test('trap 9: ids beyond 512 bytes are refused, whether an index would take them or not', async () => {
  await using box = await server.open()
  box.consumer('a', { note: () => undefined })
  const ids = [randomBytes(2_500).toString('hex'), 'x'.repeat(100_000), randomBytes(256).toString('hex')]
  const outcomes = await box.receive(ids.map((id) => note(id)))
  expect(outcomes.map(({ status }) => status)).toEqual(['quarantined', 'quarantined', 'stored'])
})

test.for(['none', 'key'] as const)(
  'trap 11: a zombie’s effects do not commit behind a settlement that matched no row: order %s',
  async (order) => {
    await using box = await server.open()
    const next = createBox({ db: fromPg(server.pool), schema: box.schema, logger: recorder() })
    const started = gate()
    const finish = gate()
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          await box.write(tx, 'zombie', message)
          started.open()
          await finish.opened
        },
      },
      { order, leaseMs: 60_000, concurrency: 1 },
    )
    next.consumer('a', { note: (message, { tx }) => box.write(tx, 'next', message) }, { order })
    await box.receive(notes(3, { key: 'k' }))
    const zombie = box.drain()
    await started.opened
    await box.clock.advance(61_000)
    await next.drain()
    finish.open()
    await zombie
    const effects = (await box.effects()).map(({ consumer, id }) => `${consumer} ${id}`)
    expect(order === 'none' ? effects.sort() : effects).toEqual(['next n1', 'next n2', 'next n3'])
  },
)

test.for(['COMMIT', 'ROLLBACK', 'COMMIT; BEGIN', 'ROLLBACK; BEGIN'])(
  'trap 12: %s in the middle of a group neither loses nor doubles a neighbour',
  async (command) => {
    await using box = await server.open()
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          await box.write(tx, 'a', message)
          if (message.id === 'n2') await hidden(tx, command).catch(() => undefined)
        },
      },
      { retry: { attempts: 1 } },
    )
    await box.receive(notes(3))
    await box.drain()
    expect((await box.ids()).sort()).toEqual(['n1', 'n3'])
    expect(await box.fate('n2')).toMatchObject({ state: 'dead', attempts: 1 })
  },
)

test('trap 13: a message that kills its worker dead-letters none of its neighbours', async () => {
  await using box = await server.open()
  box.consumer(
    'a',
    {
      note(message, { tx }) {
        if (message.id === 'n50') box.crashAt('handled')
        return box.write(tx, 'a', message)
      },
    },
    { retry: { attempts: 2 } },
  )
  await box.receive(notes(100))
  for (let time = 0; time < 6; time++) {
    await box.drain()
    await box.clock.advance(31_000)
  }
  expect(new Set(await box.ids()).size).toBe(99)
  expect(await box.ids()).toHaveLength(99)
  const { consumers } = await box.admin.status()
  expect(consumers['a']).toMatchObject({ handled: 99, dead: 1, pending: 0, processing: 0 })
})

test('trap 14: groups that update shared rows get through at speed, and burn no attempt', async () => {
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

describe('trap 15: within one statement a row that was waited for is invisible', () => {
  test.for(['receive', 'handle'] as const)(
    'two bodies under one id at one instant: one is new, the other a conflict: %s',
    async (door) => {
      await using box = await server.open()
      box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) })
      for (let round = 0; round < 10; round++) {
        const both = await Promise.all([1, 2].map((data) => box[door](note(`r${round}`, { data }))))
        expect(both.map(({ status }) => status).sort()).toEqual(
          ['quarantined', door === 'receive' ? 'stored' : 'handled'].sort(),
        )
      }
      await box.drain()
      expect(await box.ids()).toHaveLength(10)
    },
  )

  test('a failure recorded while a copy waited is not taken for a duplicate', async () => {
    await using box = await server.open()
    const started = gate()
    const finish = gate()
    let runs = 0
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          if (++runs > 1) return box.write(tx, 'a', message)
          started.open()
          await finish.opened
          throw new Error('no')
        },
      },
      { mode: 'inline' },
    )
    const first = box.handle(note('1'))
    await started.opened
    const received = box.receive(note('1'))
    finish.open()
    // If the copy is stored before the failure is recorded, there is nothing left to say but that it is under way.
    const { status, ack } = await first
    expect(['failed', 'busy']).toContain(status)
    expect(ack).toBe(false)
    // It was told that it may forget the message, so the box has it now, and runs it: at once, or after a backoff.
    expect(await received).toMatchObject({ ack: true })
    await waitUntil(async () => {
      await box.drain()
      return (await box.ids()).length > 0
    })
    expect(await box.ids()).toEqual(['1'])
  })
})

test('trap 16: a copy of an uncommitted message is never taken for a new one', async () => {
  await using box = await server.open()
  const started = gate()
  const finish = gate()
  box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) })
  const client = await server.pool.connect()
  await client.query('begin')
  const once = box.once(client, 'a', { id: '1', type: 'note', data: { text: '1' } }, async () => {
    started.open()
    await finish.opened
    await box.write(client, 'once', { id: '1' })
  })
  await started.opened
  expect(await box.handle(note('1'))).toMatchObject({ status: 'busy' })
  finish.open()
  await once
  expect(await box.handle(note('1'))).toMatchObject({ status: 'busy' })
  await client.query('commit')
  client.release()
  expect(await box.handle(note('1'))).toMatchObject({ status: 'duplicate' })
  expect(await box.effects()).toHaveLength(1)
})

test('trap 17: one contended id fails no batch, and batches in any order do not deadlock', async () => {
  await using box = await server.open()
  const started = gate()
  const finish = gate()
  box.consumer('a', {
    async note(message, { tx }) {
      if (message.id === 'held') {
        started.open()
        await finish.opened
      }
      await box.write(tx, 'a', message)
    },
  })
  const held = box.handle(note('held'))
  await started.opened
  const all = notes(30)
  const batches = await Promise.all([
    box.handle([...all.slice(0, 15), note('held'), ...all.slice(15)]),
    box.handle([...all].reverse()),
    box.handle(all),
  ])
  expect(batches[0][15]).toMatchObject({ id: 'held', status: 'busy', ack: false })
  for (const outcome of batches.flat()) {
    if (outcome.id !== 'held') expect(['handled', 'duplicate', 'busy']).toContain(outcome.status)
  }
  finish.open()
  expect(await held).toMatchObject({ status: 'handled' })
  const rest = await box.handle(all)
  expect(rest.every(({ status }) => status === 'handled' || status === 'duplicate')).toBe(true)
  expect((await box.ids()).sort()).toEqual([...all.map(({ id }) => id!), 'held'].sort())
})

test('trap 18: a producer that commits late neither inverts the order of a key nor hides its message', async () => {
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

describe('a handler that takes another role', () => {
  const takeRole = (tx: pg.PoolClient) => tx.query('set local role pg_monitor')

  test.for(MODES)('cannot be settled under it, and is told so: %s', async (mode) => {
    await using box = await server.open()
    box.consumer(
      'a',
      {
        async note(message, { tx, send }) {
          await box.write(tx, 'a', message)
          if (message.id === 'sends') await send('done', null)
          await takeRole(tx)
          return message.id === 'answers' ? 1 : undefined
        },
      },
      { mode, retry: { attempts: 1 } },
    )
    const ids = ['plain', 'sends', 'answers']
    await box[mode === 'stored' ? 'receive' : 'handle'](ids.map((id) => note(id)))
    await box.drain()
    for (const id of ids) {
      expect(await box.fate(id)).toMatchObject({ state: 'dead', error: { code: 'SESSION_CHANGED' } })
    }
    expect(await box.effects()).toEqual([])
  })

  test.for(MODES)('and puts it back is handled: %s', async (mode) => {
    await using box = await server.open()
    const roles: unknown[] = []
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          await box.write(tx, 'a', message)
          await takeRole(tx)
          roles.push((await tx.query<{ role: string }>('select current_user::text as role')).rows[0]!.role)
          await tx.query('set local role none')
        },
      },
      { mode },
    )
    await box[mode === 'stored' ? 'receive' : 'handle'](notes(3))
    await box.waitUntilHandled('n1', 'n2', 'n3')
    expect(roles).toEqual(['pg_monitor', 'pg_monitor', 'pg_monitor'])
    expect((await box.ids()).sort()).toEqual(['n1', 'n2', 'n3'])
  })

  test('and may not do what it tries there has an error of its own', async () => {
    await using box = await server.open()
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          await takeRole(tx)
          await box.write(tx, 'a', message)
        },
      },
      { retry: { attempts: 1 } },
    )
    await box.receive(note('1'))
    await box.drain()
    expect(await box.fate('1')).toMatchObject({ state: 'dead', error: { code: '42501' } })
  })
})

describe('mistakes that other systems shipped', () => {
  test('a full page of messages that cannot run hides none behind it', async () => {
    await using box = await server.open()
    const old = createBox({ db: fromPg(server.pool), schema: box.schema, logger: recorder() })
    box.consumer('a', { note: () => undefined, unknown: () => undefined })
    old.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) }, { group: { messages: 10 } })
    await box.receive([...notes(40, { type: 'unknown' }), note('good')])
    await old.drain()
    expect(await box.ids()).toEqual(['good'])
  })

  test('a full page of unrouted messages hides none behind it from a new consumer', async () => {
    await using box = await server.open()
    await box.receive([...notes(600, { type: 'other' }), note('mine')])
    box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) })
    await box.migrate()
    await box.drain()
    expect(await box.ids()).toEqual(['mine'])
    expect(await box.quarantine()).toHaveLength(600)
  })

  test('a message that puts itself off under its own id is not dropped as its own duplicate', async () => {
    await using box = await server.open()
    const runs: Message[] = []
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          runs.push(message)
          expect(await box.receive(note('1'))).toMatchObject({ status: 'duplicate' })
          if (message.attempt === 1) throw new Error('again')
          await box.write(tx, 'a', message)
        },
      },
      { retry: { baseMs: 0 } },
    )
    await box.receive(note('1'))
    await box.drain()
    expect(runs).toHaveLength(2)
    expect(await box.ids()).toEqual(['1'])
  })

  test('a delay and a result of zero are a delay and a result', async () => {
    await using box = await server.open()
    box.consumer(
      'a',
      {
        note(message) {
          if (message.attempt === 1) throw new Error('again')
          return 0
        },
      },
      { retry: () => 0 },
    )
    await box.receive(note('1'))
    await box.drain()
    expect(await box.receive(note('1'))).toMatchObject({ status: 'duplicate', result: 0 })
  })

  test('what is received while a worker falls asleep is not overlooked', async () => {
    await using box = await server.open()
    box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) }, { concurrency: 1 })
    await box.start()
    for (let n = 1; n <= 30; n++) {
      await box.receive(note(`n${n}`))
      await waitUntil(async () => (await box.ids()).length === n, { everyMs: 1 })
    }
    await box.stop()
  })
})
