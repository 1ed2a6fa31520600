/**
 * Who is blamed: a run that ends for a reason that is not its message's leaves no failed attempt behind, whichever way the
 * message came. Killed processes are in `test/crash/killers.test.ts`.
 */
import { createBox, RetryLater, type Driver, type Message } from 'oncebox'
import { fromPg, type PgClient } from 'oncebox/pg'
import pg from 'pg'
import { afterEach, describe, expect, test } from 'vitest'
import { bindTo } from '../../src/postgres/database.js'
import { FORGET_EFFECT, INTEND } from '../../src/postgres/sql/effects.js'
import { COUNT_ATTEMPT } from '../../src/postgres/sql/settle.js'
import { startProxy } from '../support/proxy.js'
import { waitUntil } from '../support/wait.js'
import { gate, note, notes, recorder, useServer, type Bench, type Ctx } from './fixture.js'

const server = useServer('blame', { max: 16 })
const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

/** Where a transaction fails: before anything was sent, or at its first, second or third statement of ours. */
type Place = 'connect' | 1 | 2 | 3

/** A driver whose transactions fail so many times, as a server or a client would make them fail. */
function faulty(place: Place, error: () => Error): Driver<pg.PoolClient, PgClient> & { times: number } {
  const driver = fromPg(server.pool)
  const sent = new WeakMap<object, number>()
  const own = {
    times: 0,
    pipelines: driver.pipelines,
    lend: (tx: pg.PoolClient) => driver.lend!(tx),
    query(text: string, values: readonly unknown[], tx?: pg.PoolClient | PgClient) {
      const at = tx ? (sent.get(tx) ?? 0) + 1 : 0
      if (tx) sent.set(tx, at)
      if (at === place && own.times-- > 0) {
        // As the server would say it, with the transaction aborted, or as the client does.
        const state = String((error() as { code?: unknown }).code)
        if (!/^[0-9X][0-9A-Z]{4}$/.test(state)) return Promise.reject(error())
        return driver.query(`do $$ begin raise exception using errcode = '${state}'; end $$`, [], tx)
      }
      return driver.query(text, values, tx)
    },
    transaction<R>(work: (tx: pg.PoolClient) => Promise<R>, options?: object) {
      if (place === 'connect' && own.times-- > 0) return Promise.reject(error())
      return driver.transaction((tx) => {
        sent.set(tx, 0)
        return work(tx)
      }, options)
    },
  }
  return own
}

/** What a client says: an SQLSTATE if it is the server's word, else the system's. */
function failure(code: string): () => Error {
  return () => Object.assign(new Error(`injected ${code}`), { code })
}

async function open(db: Driver<pg.PoolClient, PgClient>): Promise<Bench> {
  return server.open({ logger: recorder(), db } as never)
}

async function isSpotless(box: Bench): Promise<void> {
  expect(await box.sql('select id, error from ob.attempt')).toEqual([])
  expect(await box.sql('select id, attempts, parked from ob.work where attempts > 0 or parked is not null')).toEqual([])
}

describe('no call, no verdict', () => {
  const CODES = ['28P01', 'EMFILE', '26000', '57014', 'EPIPE', '25006']

  test.for((['connect', 1] as Place[]).flatMap((place) => CODES.map((code) => [place, code] as const)))(
    'stored: a transaction that fails at %s with %s counts for nobody, and the message runs once it can',
    async ([place, code]) => {
      const db = faulty(place, failure(code))
      await using box = await open(db)
      const attempts: number[] = []
      box.consumer('a', { note: ({ attempt }) => void attempts.push(attempt) }, { retry: { attempts: 1 } })
      await box.receive(note('1'))
      db.times = 3
      await waitUntil(async () => {
        await box.drain().catch(() => undefined)
        return db.times <= 0
      })
      await box.waitUntilHandled('1')
      expect(attempts).toEqual([1])
      await isSpotless(box)
    },
  )

  test.for((['connect', 1, 2] as Place[]).flatMap((place) => CODES.map((code) => [place, code] as const)))(
    'on arrival: a transaction that fails at %s with %s is no failure of the message',
    async ([place, code]) => {
      const db = faulty(place, failure(code))
      await using box = await open(db)
      let runs = 0
      box.consumer('a', { note: () => void runs++ }, { mode: 'inline', retry: { attempts: 1 } })
      for (const batch of [notes(1), notes(3)]) {
        db.times = 1
        await expect(box.handle(batch)).rejects.toMatchObject({ code })
        expect(runs).toBe(0)
        expect(await box.sql('select id from ob.work')).toEqual([])
      }
      expect(await box.handle(note('n1'))).toMatchObject({ status: 'handled' })
    },
  )

  test.for(['connect', 1] as Place[])(
    'directly: a transaction that fails at %s is no failure of the message',
    async (place) => {
      const db = faulty(place, failure('28P01'))
      await using box = await open(db)
      box.consumer('a', { note: () => 'done' }, { mode: 'direct' })
      db.times = 1
      await expect(box.handle(note('1'))).rejects.toMatchObject({ code: '28P01' })
      expect(await box.handle(note('1'))).toMatchObject({ status: 'handled' })
    },
  )

  test('attempts that found no handler do not make a message dead that never ran', async () => {
    await using box = await server.open()
    const logger = recorder()
    const before = createBox({ db: fromPg(server.pool), schema: box.schema, logger })
    before.consumer('a', { other: () => undefined })
    const attempts: number[] = []
    box.consumer('a', { note: ({ attempt }) => void attempts.push(attempt) }, { retry: { attempts: 2 } })
    await box.receive(note('1'))
    const missed = await miss(box, before, 3)
    expect(await box.fate('1')).toMatchObject({ attempts: missed, error: { code: 'HANDLER_MISSING' } })
    // A worker dies before it has called anybody.
    box.crashAt('claimed')
    await box.drain()
    await box.clock.advance(31_000)
    await box.drain()
    expect(await box.fate('1')).toMatchObject({ state: 'handled' })
    expect(attempts).toEqual([missed + 1])
  })

  test.for([1, 3])('nor do %i of them leave it more attempts after a retry by a person', async (misses) => {
    await using box = await server.open()
    const before = createBox({ db: fromPg(server.pool), schema: box.schema, logger: recorder() })
    before.consumer('a', { other: () => undefined })
    let runs = 0
    const fail = (): never => {
      runs++
      throw new Error('no')
    }
    box.consumer('a', { note: fail }, { retry: { attempts: 2, baseMs: 0 } })
    await box.receive(note('1'))
    const missed = await miss(box, before, misses)
    expect(await box.fate('1')).toMatchObject({ attempts: missed, error: { code: 'HANDLER_MISSING' } })
    expect(await box.admin.discard({ id: '1', state: 'pending' }, { reason: 'no handler' })).toBe(1)
    for (let time = 1; time <= 2; time++) {
      expect(await box.admin.retry({ id: '1' })).toBe(1)
      await box.drain()
      expect(await box.fate('1')).toMatchObject({ state: 'dead', attempts: 2 })
      expect(runs).toBe(2 * time)
    }
  })

  test('nor do they leave a message fewer attempts than its policy says', async () => {
    await using box = await server.open()
    const before = createBox({ db: fromPg(server.pool), schema: box.schema, logger: recorder() })
    before.consumer('a', { other: () => undefined })
    let runs = 0
    const fail = (): never => {
      runs++
      throw new Error('no')
    }
    box.consumer('a', { note: fail }, { retry: { attempts: 2, baseMs: 0 } })
    await box.receive(note('1'))
    await miss(box, before, 3)
    await waitUntil(async () => {
      await box.drain()
      return (await box.fate('1')).state === 'dead'
    })
    expect(runs).toBe(2)
  })
})

/** Attempts that find no handler, at least so many: on a busy machine the next is due while one still runs. Answers how many. */
async function miss(box: Bench, before: { drain(): Promise<void> }, least: number): Promise<number> {
  for (;;) {
    await before.drain()
    await box.clock.advance(3_600_000)
    const { attempts } = await box.fate('1')
    if (attempts >= least) return attempts
  }
}

/** A driver on which one statement, outside of transactions, fails so many times. */
function faultyAt(statement: string, error: () => Error): Driver<pg.PoolClient, PgClient> & { times: number } {
  const driver = fromPg(server.pool)
  // Its schema differs from box to box, and its first part does not.
  const [begins] = statement.split('ob.') as [string]
  const own = {
    times: 0,
    pipelines: driver.pipelines,
    lend: (tx: pg.PoolClient) => driver.lend!(tx),
    query(text: string, values: readonly unknown[], tx?: pg.PoolClient | PgClient, options?: object) {
      if (text.startsWith(begins) && text.includes(statement.slice(-40)) && own.times-- > 0) throw error()
      return driver.query(text, values, tx, options)
    },
    transaction: <R>(work: (tx: pg.PoolClient) => Promise<R>, options?: object) => driver.transaction(work, options),
  }
  return own
}

describe('an effect whose journal cannot be written', () => {
  const CODES = ['28P01', 'EMFILE', '53100', '57014', '25006', 'XX000', 'EPIPE']

  test.for((['stored', 'on arrival'] as const).flatMap((way) => CODES.map((code) => [way, code] as const)))(
    '%s: an intent that fails with %s is no attempt, and nothing is called for it',
    async ([way, code]) => {
      const db = faultyAt(INTEND, failure(code))
      await using box = await open(db)
      let calls = 0
      const mode = way === 'stored' ? {} : ({ mode: 'inline' } as const)
      box.consumer(
        'a',
        { note: async (_, { effect }) => void (await effect('call', () => void calls++)) },
        {
          ...mode,
          retry: { attempts: 1 },
          // Another slot could call before the drain is through.
          concurrency: 1,
        },
      )
      db.times = 4
      if (way === 'stored') await box.receive(note('1'))
      await waitUntil(async () => {
        if (way === 'stored') await box.drain().catch(() => undefined)
        else await expect(box.handle(note('1'))).rejects.toMatchObject({ code })
        return db.times <= 0
      })
      expect(calls).toBe(0)
      await box.clock.advance(5_000)
      if (way === 'stored') await box.waitUntilHandled('1')
      else expect(await box.handle(note('1'))).toMatchObject({ status: 'handled' })
      expect(calls).toBe(1)
      await isSpotless(box)
    },
  )

  test.for(['stored', 'on arrival'])(
    '%s: an intent whose answer is lost is taken back, for nothing was called, and nobody has to say so',
    async (way) => {
      await using proxy = await startProxy(server.url)
      const pool = new pg.Pool({ connectionString: proxy.url, max: 4 })
      pool.on('error', () => undefined)
      closing.push(() => pool.end())
      await using box = await open(fromPg(pool))
      const attempts: number[] = []
      const handle = async ({ attempt }: Message, { effect }: Ctx): Promise<void> =>
        void (await effect('call', () => void attempts.push(attempt), { onUnknown: 'park' }))
      const mode = way === 'stored' ? {} : ({ mode: 'inline' } as const)
      box.consumer('a', { note: handle }, { ...mode, retry: { attempts: 1 }, concurrency: 1 })
      const lost = proxy
        .intercept({ at: 'after', statement: /insert into \S+\.effect as e .*'intent'/s })
        .then((held) => held.cut())
      if (way === 'stored') {
        await box.receive(note('1'))
        await box.drain().catch(() => undefined)
        await lost
        await box.waitUntilHandled('1')
      } else {
        await box.handle(note('1')).catch(() => undefined)
        await lost
        expect(await box.handle(note('1'))).toMatchObject({ status: 'handled' })
      }
      expect(attempts).toEqual([1])
      await isSpotless(box)
    },
  )

  test.for(CODES)('an intent that could not be taken back, for %s, is taken back later', async (code) => {
    const db = faultyAt(FORGET_EFFECT, failure(code))
    await using box = await open(db)
    const attempts: number[] = []
    box.consumer(
      'a',
      {
        note: async ({ attempt }, { effect }) => {
          await effect(
            'call',
            () => {
              attempts.push(attempt)
              if (attempts.length === 1) throw new RetryLater({ afterMs: 1 })
            },
            // Parked, were the intent still there.
            { onUnknown: 'park' },
          )
        },
      },
      { retry: { attempts: 1 } },
    )
    db.times = 2
    await box.receive(note('1'))
    await waitUntil(async () => {
      await box.drain().catch(() => undefined)
      return db.times <= 0
    })
    await box.clock.advance(5_000)
    await box.waitUntilHandled('1')
    expect(attempts).toEqual([1, 1])
    await isSpotless(box)
  })
})

describe('what fails after the handler has returned', () => {
  // Short of disk or memory, a system error, a standby by now, cancelled by somebody, a plan that is gone.
  test.for(['53100', '53200', '58030', '25006', '57014', '26000', 'XX000'])(
    'stored: %s in the settlement is the server’s, and is no attempt',
    async (code) => {
      const db = faulty(2, failure(code))
      await using box = await open(db)
      box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) }, { retry: { attempts: 1 } })
      await box.receive(note('1'))
      db.times = 2
      await waitUntil(async () => {
        await box.drain().catch(() => undefined)
        await box.clock.advance(5_000)
        return db.times <= 0
      })
      await isSpotless(box)
      await box.waitUntilHandled('1')
      expect(await box.ids()).toEqual(['1'])
    },
  )

  test('on arrival: the delivery is refused, nothing is recorded', async () => {
    const db = faulty(3, failure('53100'))
    await using box = await open(db)
    box.consumer(
      'a',
      { note: (message, { tx }) => box.write(tx, 'a', message) },
      { mode: 'inline', retry: { attempts: 1 } },
    )
    db.times = 1
    await expect(box.handle(note('1'))).rejects.toMatchObject({ code: '53100' })
    expect(await box.sql('select id from ob.work')).toEqual([])
    expect(await box.handle(note('1'))).toMatchObject({ status: 'handled' })
    expect(await box.ids()).toEqual(['1'])
  })

  test('a right that was taken from the box is no attempt of whoever needs it', async () => {
    await using box = await server.open({ logger: recorder() })
    const role = `limited_${box.schema}`
    const all = `grant all on all tables in schema ${box.schema} to ${role}`
    await box.sql(`create role ${role} login`)
    closing.push(async () => void (await server.pool.query(`drop owned by ${role}; drop role ${role}`)))
    await box.sql(
      `grant usage on schema ${box.schema} to ${role}; grant all on all sequences in schema ${box.schema} to ${role}; ${all}`,
    )
    const url = new URL(server.url)
    url.username = role
    const pool = new pg.Pool({ connectionString: url.href, max: 4 })
    closing.unshift(() => pool.end())
    const limited = createBox({ db: fromPg(pool), schema: box.schema, logger: recorder() })
    limited.consumer('a', { note: () => 'a result' }, { retry: { attempts: 1 } })
    await limited.receive(note('1'))
    await box.sql(`revoke update on ob.message from ${role}`)
    await expect(limited.drain()).rejects.toMatchObject({ code: '42501' })
    await isSpotless(box)
    await box.sql(all)
    await box.clock.advance(5_000)
    await limited.drain()
    expect(await box.fate('1')).toMatchObject({ state: 'handled' })
  })
})

describe('after an outage', () => {
  test.for([false, true])(
    'what a worker that may live held is not taken from it on arrival, redelivered: %s',
    async (redelivered) => {
      const db = faulty('connect', failure('EPIPE'))
      await using box = await open(db)
      const attempts: number[] = []
      const options = { mode: 'inline', leaseMs: 60_000 } as const
      box.consumer('a', { note: ({ attempt }) => void attempts.push(attempt) }, options)
      await box.receive(note('1'))
      // What another process held when the database went away: its lease ran out meanwhile.
      await box.sql(`update ob.work set token = gen_random_uuid(), due_at = ob.now() - interval '1 s'`)
      db.times = 1
      await expect(box.handle(note('2'))).rejects.toMatchObject({ code: 'EPIPE' })
      expect(await box.handle(note('1', { redelivered }))).toMatchObject({ status: 'busy', ack: false })
      expect(attempts).toEqual([])
      // The other one gives it back.
      await box.sql(`update ob.work set token = null`)
      expect(await box.handle(note('1', { redelivered }))).toMatchObject({ status: 'handled' })
      expect(attempts).toEqual([1])
      await isSpotless(box)
    },
  )

  test.for([false, true])('what a dead worker held is taken over on arrival, redelivered: %s', async (redelivered) => {
    const db = faulty('connect', failure('EPIPE'))
    await using box = await open(db)
    box.consumer('a', { note: () => undefined }, { mode: 'inline' })
    await box.receive(note('1'))
    await box.sql(`update ob.work set token = gen_random_uuid(), due_at = ob.now() - interval '1 s'`)
    db.times = 1
    await expect(box.handle(note('2'))).rejects.toMatchObject({ code: 'EPIPE' })
    await waitUntil(async () => (await box.handle(note('1', { redelivered }))).status === 'handled')
  })
})

describe('suspects', () => {
  test('of a process run one at a time, whichever consumer they belong to', async () => {
    await using box = await server.open()
    let running = 0
    const seen: number[] = []
    const handler = async (): Promise<void> => {
      seen.push(++running)
      await new Promise((resolve) => setTimeout(resolve, 5))
      running--
    }
    box.consumer('a', { note: handler }, { group: { messages: 1 } })
    box.consumer('b', { note: handler }, { group: { messages: 1 } })
    await box.receive(notes(6))
    // Two consumers with four slots each, all of which die.
    box.crashAt('claimed', { times: 12 })
    await waitUntil(async () => {
      await box.drain()
      return (await box.sql('select 1 from ob.work where token is null')).length === 0
    })
    expect(seen).toEqual([])
    await box.clock.advance(31_000)
    await box.drain()
    await box.waitUntilHandled(...notes(6).map(({ id }) => id!))
    expect(seen).toHaveLength(12)
    expect(Math.max(...seen)).toBe(1)
  })

  test('a count whose answer is lost is not counted twice, nor does it stay', async () => {
    const driver = fromPg(server.pool)
    let lost = 0
    let counting = ''
    const db: typeof driver = {
      lend: (tx: pg.PoolClient) => driver.lend!(tx),
      transaction: (work, options) => driver.transaction(work, options),
      async query(text, values, tx) {
        const rows = await driver.query(text, values, tx)
        if (text !== counting || lost++ >= 4) return rows
        throw failure('ECONNRESET')()
      },
      pipelines: driver.pipelines,
    }
    await using box = await open(db)
    counting = bindTo(box.schema)(COUNT_ATTEMPT)
    const attempts: number[] = []
    // One slot: what one of several has given back, another might take before it hears of the failure.
    const options = { retry: { attempts: 2 }, concurrency: 1 }
    box.consumer('a', { note: ({ attempt }) => void attempts.push(attempt) }, options)
    await box.receive(note('1'))
    for (let time = 0; time < 4; time++) {
      box.crashAt('claimed')
      await box.drain()
      await box.clock.advance(31_000)
      await expect(box.drain()).rejects.toMatchObject({ code: 'ECONNRESET' })
      await waitUntil(async () => (await box.fate('1')).state === 'pending')
      expect(await box.fate('1')).toMatchObject({ attempts: 0 })
    }
    await box.drain()
    expect(lost).toBe(4)
    expect(attempts).toEqual([1])
    expect(await box.fate('1')).toMatchObject({ state: 'handled' })
  })
})

describe('redelivered on arrival', () => {
  const again = note('1', { redelivered: true })

  test('a graceful stop burns no attempt, however often', async () => {
    await using box = await server.open({ logger: recorder() })
    let started = gate()
    let waits = true
    box.consumer(
      'a',
      {
        async note(message, { tx, signal }) {
          started.open()
          if (waits) await new Promise((resolve) => signal.addEventListener('abort', resolve))
          await box.write(tx, 'a', message)
        },
      },
      { mode: 'inline', retry: { attempts: 2 } },
    )
    for (let time = 0; time < 4; time++) {
      started = gate()
      const handling = box.handle(again)
      handling.catch(() => undefined)
      await started.opened
      await box.stop({ timeoutMs: 0 })
      await expect(handling).rejects.toMatchObject({ code: 'STOPPED' })
      expect(await box.fate('1')).toMatchObject({ state: 'failed', attempts: 0 })
    }
    waits = false
    expect(await box.handle(again)).toMatchObject({ status: 'handled' })
    expect(await box.ids()).toEqual(['1'])
  })

  test('a row that others hold burns no attempt, however long', async () => {
    await using box = await server.open({ logger: recorder() })
    await box.sql('create table ob.stock (n int)')
    await box.sql('insert into ob.stock values (0)')
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          await tx.query(`set local lock_timeout = '2ms'`)
          await tx.query(`update ${box.schema}.stock set n = n + 1`)
          await box.write(tx, 'a', message)
        },
      },
      { mode: 'inline', retry: { attempts: 2 } },
    )
    const holder = await server.pool.connect()
    await holder.query(`begin; update ${box.schema}.stock set n = n`)
    for (let time = 0; time < 5; time++) {
      expect(await box.handle(again)).toMatchObject({ status: 'busy', ack: false })
      expect(await box.fate('1')).toMatchObject({ state: 'failed', attempts: 0 })
    }
    await holder.query('rollback')
    holder.release()
    expect(await box.handle(again)).toMatchObject({ status: 'handled' })
  })

  test('a database that goes away during its run burns no attempt, however often', async () => {
    const proxy = await startProxy(server.url)
    closing.push(() => proxy.close())
    const pool = new pg.Pool({ connectionString: proxy.url, max: 4 })
    pool.on('error', () => {})
    closing.unshift(() => pool.end())
    await using box = await open(fromPg(pool))
    let started = gate()
    let waits = true
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          started.open()
          if (waits) await tx.query('select pg_sleep(60)')
          await box.write(tx, 'a', message)
        },
      },
      { mode: 'inline', retry: { attempts: 2 } },
    )
    for (let time = 0; time < 4; time++) {
      started = gate()
      const handling = box.handle(again)
      handling.catch(() => undefined)
      await started.opened
      await proxy.refuse()
      proxy.cutAll()
      await expect(handling).rejects.toThrow()
      await proxy.accept()
      await waitUntil(async () => (await box.fate('1')).state === 'failed', { what: 'it to be given back' })
      expect(await box.fate('1')).toMatchObject({ attempts: 0 })
    }
    waits = false
    expect(await box.handle(again)).toMatchObject({ status: 'handled' })
  })
})

describe('a group on arrival', () => {
  test('does not call a handler a second time that exceeded its deadline', async () => {
    await using box = await server.open({ logger: recorder() })
    const runs: string[] = []
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          runs.push(message.id)
          if (message.id === 'n2') await new Promise(() => {})
          await box.write(tx, 'a', message)
        },
      },
      { mode: 'inline', timeoutMs: 200, group: { ms: 10_000 } },
    )
    const outcomes = await box.handle(notes(3))
    expect(outcomes).toMatchObject([
      { status: 'handled' },
      { status: 'failed', error: { code: 'HANDLER_TIMEOUT' } },
      { status: 'handled' },
    ])
    expect(runs.filter((id) => id === 'n2')).toEqual(['n2'])
    expect(await box.fate('n2')).toMatchObject({ attempts: 1 })
    expect((await box.ids()).sort()).toEqual(['n1', 'n3'])
  })

  test('is tried once more together after a collision', async () => {
    await using box = await server.open({ logger: recorder() })
    let collisions = 1
    const transactions = new Set<string>()
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          const { rows } = await tx.query('select pg_current_xact_id()::text xid')
          await box.write(tx, 'a', message)
          if (message.id === 'n3' && collisions-- > 0) {
            transactions.clear()
            await tx.query(`do $$ begin raise exception using errcode = '40P01'; end $$`)
          }
          transactions.add(rows[0].xid as string)
        },
      },
      { mode: 'inline', group: { ms: 10_000 } },
    )
    const outcomes = await box.handle(notes(3))
    expect(outcomes.map(({ status }) => status)).toEqual(['handled', 'handled', 'handled'])
    expect(transactions.size).toBe(1)
    expect(await box.ids()).toEqual(['n1', 'n2', 'n3'])
  })
})

describe('a handler that kills its own connection', () => {
  const kill = 'select pg_terminate_backend(pg_backend_pid())'

  test('does not take its neighbours with it', async () => {
    await using box = await server.open()
    box.consumer(
      'a',
      {
        async note(message, { tx }) {
          await box.write(tx, 'a', message)
          if (message.id === 'm2') await tx.query(kill)
        },
      },
      { concurrency: 1, retry: { attempts: 1 } },
    )
    await box.receive(notes(5).map((one, at) => ({ ...one, id: `m${at}` }) as never))
    await box.start()
    await waitUntil(async () => (await box.ids()).length === 4, { what: 'the neighbours' })
    await waitUntil(async () => (await box.fate('m2')).state === 'dead', { what: 'the killer to be found' })
  })
})
