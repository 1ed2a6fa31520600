/** Narrow windows: interleavings, odd input and lifecycles that a careful reading of the flow turned up. */
import pg from 'pg'
import { describe, expect, test, vi } from 'vitest'
import { createBox, RetryLater, type Source, type StandardSchemaV1 } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { NEXT_DUE } from '../../src/postgres/sql/claim.js'
import { keepLease } from '../../src/worker/lease.js'
import { createSources, type WatchSource } from '../../src/worker/sources.js'
import { createTrouble } from '../../src/worker/trouble.js'
import { waitUntil } from '../support/wait.js'
import { gate, note, notes, useServer } from './fixture.js'

const server = useServer('review')
const DAY = 86_400_000
const SILENT = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

describe('what is said of a message that cannot be read', () => {
  test('a NUL in a body that is not JSON', async () => {
    await using box = await server.open()
    box.consumer('a', { note() {} })
    const outcome = await box.receive({ id: '1', type: 'note', body: '\0{"a":1}' })
    expect(outcome).toMatchObject({ status: 'quarantined', reason: 'undecodable', ack: true })
    expect(await box.quarantine()).toMatchObject([{ id: '1', reason: 'undecodable' }])
  })

  test('a schema, or an identity, that throws what cannot be stored', async () => {
    const bad: StandardSchemaV1 = {
      '~standard': {
        version: 1,
        vendor: 'test',
        validate() {
          throw new Error('odd: \0 and \ud800')
        },
      },
    }
    const fine: StandardSchemaV1 = { '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }) } }
    await using box = await server.open({ messages: { bad, fine } })
    box.consumer('a', { bad() {} })
    box.consumer(
      'b',
      { fine() {} },
      {
        identity() {
          throw Object.create(null)
        },
      },
    )
    expect(await box.receive({ id: '1', type: 'bad', data: {} })).toMatchObject({ reason: 'invalid' })
    expect(await box.receive({ id: '2', type: 'fine', data: {} })).toMatchObject({ reason: 'no-id' })
  })
})

describe('redelivered on arrival', () => {
  test('a message beyond the horizon does not run again', async () => {
    await using box = await server.open()
    let runs = 0
    box.consumer('a', { note: () => void runs++ }, { mode: 'inline', retainMs: DAY })
    const message = note('1', { time: new Date() })
    expect(await box.handle(message)).toMatchObject({ status: 'handled' })
    await box.clock.advance(3 * DAY)
    expect(await box.admin.prune()).toBe(1)
    expect(await box.handle({ ...message, redelivered: true } as never)).toMatchObject({
      status: 'quarantined',
      reason: 'too-old',
    })
    expect(runs).toBe(1)
  })

  test('another body under the id burns no attempt of the first', async () => {
    await using box = await server.open()
    box.consumer(
      'a',
      {
        note() {
          throw new Error('not yet')
        },
      },
      { mode: 'inline' },
    )
    await box.handle(note('1'))
    expect(await box.handle(note('1', { data: { other: true }, redelivered: true }))).toMatchObject({
      reason: 'conflict',
    })
    expect(await box.fate('1')).toMatchObject({ state: 'failed', attempts: 1 })
  })

  test('a handler with an effect is counted once', async () => {
    await using box = await server.open()
    const attempts: number[] = []
    box.consumer(
      'a',
      {
        async note(message, { effect }) {
          attempts.push(message.attempt)
          await effect('call', () => 1)
          throw new Error('not yet')
        },
      },
      { mode: 'inline', retry: { attempts: 3, baseMs: 0 } },
    )
    const again = note('1', { redelivered: true })
    expect(await box.handle(again)).toMatchObject({ status: 'failed' })
    expect(await box.fate('1')).toMatchObject({ attempts: 1 })
    expect(await box.handle(again)).toMatchObject({ status: 'failed' })
    expect(await box.fate('1')).toMatchObject({ attempts: 2 })
    expect(await box.handle(again)).toMatchObject({ status: 'dead' })
  })
})

describe('stored and run on arrival', () => {
  test('what the box has acknowledged stays with the box when a run on arrival fails', async () => {
    await using box = await server.open()
    let fails = true
    box.consumer(
      'a',
      {
        note() {
          if (fails) throw new Error('not yet')
        },
      },
      { mode: 'inline', retry: { baseMs: 0 } },
    )
    expect(await box.receive(note('1'))).toMatchObject({ status: 'stored', ack: true })
    expect(await box.handle(note('1'))).toMatchObject({ status: 'failed' })
    expect(await box.fate('1')).toMatchObject({ state: 'pending', attempts: 1 })
    fails = false
    await box.drain()
    expect(await box.fate('1')).toMatchObject({ state: 'handled' })
  })

  test('receive that waits for a failing run on arrival is not undone by it', async () => {
    await using box = await server.open()
    const begun = gate()
    const goOn = gate()
    let runs = 0
    box.consumer(
      'a',
      {
        async note() {
          if (++runs === 2) {
            begun.open()
            await goOn.opened
          }
          if (runs <= 2) throw new Error('not yet')
        },
      },
      { mode: 'inline', retry: { baseMs: 0 } },
    )
    expect(await box.handle(note('1'))).toMatchObject({ status: 'failed', ack: false })
    const second = box.handle(note('1'))
    await begun.opened
    const stored = box.receive(note('1'))
    await waitUntil(async () => {
      const waiting = await box.sql(
        `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      )
      return waiting.length > 0
    })
    goOn.open()
    expect(await second).toMatchObject({ status: 'failed' })
    expect(await stored).toMatchObject({ ack: true })
    await box.drain()
    expect(await box.fate('1')).toMatchObject({ state: 'handled' })
  })
})

test('the answer to an effect finds a message whose lane is gone', async () => {
  await using box = await server.open()
  let known = false
  box.consumer(
    'a',
    {
      async note(message, { tx, effect }) {
        await effect(
          'call',
          () => {
            throw new Error('no answer')
          },
          { onUnknown: 'park' },
        )
        await box.write(tx, 'a', message)
        known = true
      },
    },
    { order: 'key', onDead: 'skip' },
  )
  await box.receive(note('1', { key: 'k' }))
  await box.drain()
  expect(await box.fate('1')).toMatchObject({ state: 'quarantined', reason: 'effect-unknown' })
  await box.admin.prune()
  expect(await box.sql('select key from ob.lane')).toEqual([])
  await box.admin.answer({ consumer: 'a', id: '1', effect: 'call' }, { happened: true })
  await box.drain()
  expect(known).toBe(true)
  expect(await box.fate('1')).toMatchObject({ state: 'handled' })
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
    const ordered = createBox({ db: box.db, schema: box.schema, logger: SILENT })
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
      const box = createBox({ db: fromPg(pool), logger: SILENT })
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

/** Nobody listens to what the sources tell. */
const unheard: WatchSource = () => {
  const silent = { failed: () => undefined, recovered: () => undefined }
  return { broker: createTrouble(silent), deliveries: createTrouble(silent), warn: () => undefined }
}

describe('lifecycle', () => {
  test('stopping sources leaves no timer behind', async () => {
    const sources = createSources(unheard)
    const source: Source = { async start() {}, async stop() {} }
    sources.add(source, async () => [])
    sources.startAll()
    const before = timers()
    await sources.stopAll(60_000)
    expect(timers()).toBeLessThanOrEqual(before)
  })

  test('a source that starts after its stop is stopped', async () => {
    const sources = createSources(unheard)
    const slow = gate()
    const calls: string[] = []
    const source: Source = {
      async start() {
        await slow.opened
        calls.push('started')
      },
      async stop() {
        calls.push('stopped')
      },
    }
    sources.add(source, async () => [])
    sources.startAll()
    await sources.stopAll(1_000)
    slow.open()
    await waitUntil(() => calls.length === 3)
    expect(calls).toEqual(['stopped', 'started', 'stopped'])
  })

  test('stop during start wins', async () => {
    await using box = await server.open()
    let runs = 0
    box.consumer('a', { note: () => void runs++ })
    const starting = box.start()
    await box.stop()
    await starting
    await box.receive(note('1'))
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(runs).toBe(0)
    await box.start()
    await waitUntil(() => runs === 1)
  })

  test('every stop waits for the end, and a start after it starts', async () => {
    await using box = await server.open()
    const begun = gate()
    const goOn = gate()
    let ended = 0
    box.consumer('a', {
      async note() {
        begun.open()
        await goOn.opened
        ended++
      },
    })
    await box.start()
    await box.receive(note('1'))
    await begun.opened
    const first = box.stop()
    const second = box.stop().then(() => ended)
    const restarted = box.start()
    setTimeout(() => goOn.open(), 100)
    expect(await second).toBe(1)
    await first
    await restarted
    await box.receive(note('2'))
    await waitUntil(() => ended === 2)
  })

  test('stop ends consumers that were started on their own', async () => {
    await using box = await server.open()
    let runs = 0
    const consumer = box.consumer('a', { note: () => void runs++ })
    await consumer.start()
    await box.receive(note('1'))
    await waitUntil(() => runs === 1)
    await box.stop()
    await box.receive(note('2'))
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(runs).toBe(1)
  })
})

test('an unrouted message that is released keeps the fingerprint of its source', async () => {
  await using box = await server.open()
  const source: Source & { fingerprint: (message: { data?: unknown }) => unknown; deliver?: never } = {
    push: true,
    fingerprint: ({ data }) => (data as { stable: unknown }).stable,
    async start(deliver) {
      send = deliver
    },
    async stop() {},
  }
  let send: Parameters<Source['start']>[0] | undefined
  box.from(source, { types: 'any' })
  await waitUntil(() => send !== undefined)
  const message = (noise: number) => note('1', { data: { stable: 1, noise } })
  expect(await send!([message(1)])).toMatchObject([{ reason: 'unrouted' }])
  box.consumer('a', { note() {} })
  await box.migrate()
  expect(await send!([message(2)])).toMatchObject([{ status: 'duplicate' }])
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

describe('a handler that asks to be run at an impossible time', () => {
  test.each([
    ['after for ever', { afterMs: Infinity }],
    ['after longer than an interval holds', { afterMs: 1e300 }],
    ['beyond the calendar', { at: new Date(8.64e15) }],
    ['before the calendar', { at: new Date(-8.64e15) }],
  ])('%s', async (_name, when) => {
    await using box = await server.open()
    let runs = 0
    box.consumer('a', {
      note() {
        if (++runs === 1) throw new RetryLater(when)
      },
    })
    await box.receive(note('1'))
    await box.drain()
    expect(await box.fate('1')).toMatchObject({ attempts: 0, state: 'at' in when && runs > 1 ? 'handled' : 'pending' })
  })
})

test('an effect whose worker is told to stop while its intent is written is not called', async () => {
  await using box = await server.open()
  let calls = 0
  let signalled = false
  box.consumer('a', {
    async note(_message, { effect }) {
      await effect('call', ({ signal }) => (calls++, (signalled = signal.aborted)), { onUnknown: 'park' })
    },
  })
  const blocker = await server.pool.connect()
  try {
    await blocker.query('begin')
    await blocker.query(`lock table ${box.schema}.effect in share mode`)
    await box.start()
    await box.receive(note('1'))
    await waitUntil(async () => {
      const waiting = await box.sql(
        `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      )
      return waiting.length > 0
    })
    const stopped = box.stop({ timeoutMs: 50 })
    await new Promise((resolve) => setTimeout(resolve, 200))
    await blocker.query('commit')
    await stopped
  } finally {
    blocker.release()
  }
  expect(calls).toBe(0)
  await box.start()
  await waitUntil(async () => (await box.fate('1')).state === 'handled', { what: 'the message' })
  expect({ calls, signalled }).toEqual({ calls: 1, signalled: false })
})

test('what the box has acknowledged stays with the box when a run on arrival fails after an effect', async () => {
  await using box = await server.open()
  let fails = true
  box.consumer(
    'a',
    {
      async note(_message, { effect }) {
        await effect('call', () => 1)
        if (fails) throw new Error('not yet')
      },
    },
    { mode: 'inline', retry: { baseMs: 0 } },
  )
  await box.receive(note('1'))
  expect(await box.handle(note('1'))).toMatchObject({ status: 'failed', ack: true })
  expect(await box.fate('1')).toMatchObject({ state: 'pending', attempts: 1 })
  fails = false
  await box.drain()
  expect(await box.fate('1')).toMatchObject({ state: 'handled' })
})

test('once for a message that retention takes at this very moment is busy, not too old', async () => {
  await using box = await server.open()
  const { db } = box
  const watched: typeof db = {
    transaction: (work, options) => db.transaction(work, options),
    async query(text, values, tx) {
      // Between the mark, which finds it known, and the look at what is known of it.
      if (text.includes('with ordinality k(x, ord)')) await box.sql('delete from ob.message')
      return db.query(text, values, tx)
    },
  }
  const other = createBox({ db: watched, schema: box.schema, logger: SILENT })
  const once = (): Promise<unknown> => db.transaction((tx) => other.once(tx, 'a', { id: '1' }, () => 1))
  expect(await once()).toMatchObject({ status: 'handled' })
  await expect(once()).rejects.toMatchObject({ code: 'BUSY' })
  expect(await once()).toMatchObject({ status: 'handled' })
  expect(await box.quarantine()).toEqual([])
})

describe('a lease', () => {
  test('that could not be extended once is not lost yet', async () => {
    let tries = 0
    let lost: string | undefined
    const extend = async (): Promise<boolean> => {
      if (++tries === 1)
        throw Object.assign(new Error('canceling statement due to statement timeout'), { code: '57014' })
      return true
    }
    const end = keepLease({ extend }, 300, (why) => (lost ??= why))
    await waitUntil(() => tries >= 4)
    end()
    expect(lost).toBeUndefined()
  })

  test('that can never be extended is lost when it runs out', async () => {
    let lost: string | undefined
    const begun = performance.now()
    const end = keepLease({ extend: () => Promise.reject(new Error('no')) }, 150, (why) => (lost ??= why))
    await waitUntil(() => lost !== undefined)
    end()
    expect(lost).toContain('no')
    expect(performance.now() - begun).toBeGreaterThan(150)
  })
})

test('a database that is away for longer than the lease burns no attempt', { timeout: 240_000 }, async () => {
  // Several at once: whether a claim is given back or claimed again first is a matter of milliseconds.
  await Promise.all(Array.from({ length: 8 }, loseForAWhile))
})

async function loseForAWhile(): Promise<void> {
  await using box = await server.open()
  const { db } = box
  let away = false
  const flaky: typeof db = {
    lend: (tx) => db.lend!(tx),
    transaction: (work, options) => db.transaction(work, options),
    async query(text, values, tx) {
      if (away && tx === undefined) throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
      return db.query(text, values, tx)
    },
  }
  const other = createBox({ db: flaky, schema: box.schema, logger: SILENT })
  let runs = 0
  other.consumer(
    'a',
    {
      async note(message, { tx, signal }) {
        if (++runs > 2) return box.write(tx, 'a', message)
        away = true
        setTimeout(() => (away = false), 3_000)
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))
      },
    },
    { leaseMs: 1_000, retry: { attempts: 1 } },
  )
  await other.start()
  try {
    await other.receive(note('1'))
    const settled = async () => ['handled', 'dead'].includes((await box.fate('1')).state)
    await waitUntil(settled, { what: 'the message', timeoutMs: 90_000 })
    expect(await box.fate('1')).toMatchObject({ state: 'handled' })
  } finally {
    away = false
    await other.stop()
  }
}

test('health answers though the database does not', async () => {
  vi.useFakeTimers()
  try {
    const db = { query: () => new Promise<never>(() => {}), transaction: () => new Promise<never>(() => {}) }
    const health = createBox({ db, logger: SILENT }).health()
    await vi.advanceTimersByTimeAsync(5_000)
    expect(await health).toMatchObject({ ok: false, database: false })
  } finally {
    vi.useRealTimers()
  }
})

function timers(): number {
  return process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
}
