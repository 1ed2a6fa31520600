/** What `health()` notices: workers that are stuck or failing, consumers that nothing runs, a database that takes no writes. */
import pg from 'pg'
import { createBox, type Source } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { expect, test, vi } from 'vitest'
import { startPostgres } from '../support/postgres.js'
import { inTransaction } from '../support/transaction.js'
import { waitUntil } from '../support/wait.js'
import { gate, note, recorder, useServer } from './fixture.js'

const server = useServer('health')

test.for([
  ['without order', {}, {}],
  ['in a lane', { order: 'key' }, { key: 'k' }],
] as const)('a message that a stuck worker holds counts for the lag: %s', async ([, options, rest]) => {
  await using box = await server.open()
  const started = gate()
  const finish = gate()
  box.consumer(
    'a',
    {
      async note() {
        started.open()
        await finish.opened
      },
    },
    options,
  )
  await box.start()
  await box.receive(note('1', rest))
  await started.opened
  await box.clock.advance(20_000)
  expect((await box.health()).lagMs).toBeGreaterThanOrEqual(20_000)
  expect(await box.health({ maxLagMs: 10_000 })).toMatchObject({
    ok: false,
    reasons: [expect.stringContaining('lagMs')],
  })
  // Something works on it, so it is not unattended.
  expect(await box.health()).toMatchObject({ ok: true })
  finish.open()
  await waitUntil(async () => (await box.health()).lagMs === 0)
})

test('a message that is tried again is as old as its delay is over', async () => {
  await using box = await server.open()
  box.consumer('a', { note: () => Promise.reject(new Error('no')) }, { retry: { baseMs: 600_000, jitter: 'none' } })
  await box.receive(note('1'))
  await box.drain()
  await box.clock.advance(605_000)
  const { lagMs } = await box.health()
  expect(lagMs).toBeGreaterThanOrEqual(5_000)
  expect(lagMs).toBeLessThan(300_000)
})

test('messages that are due and that nothing runs are not ok, registered or not, unless paused', async () => {
  await using box = await server.open()
  // Declared after migrate(), so the database has not heard of it.
  box.consumer('a', { note: () => undefined })
  await box.receive(note('1'))
  expect(await box.health()).toMatchObject({ ok: true })
  await box.clock.advance(60_000)
  const forgotten = { ok: false, database: true, reasons: [expect.stringMatching(/consumer a .*nothing runs it/)] }
  expect(await box.health()).toMatchObject(forgotten)
  await box.migrate()
  expect(await box.health()).toMatchObject(forgotten)
  expect(await box.health({ maxLagMs: Infinity })).toMatchObject({ ok: true })
  await box.admin.pause('a')
  expect(await box.health()).toEqual({ ok: true, database: true, sources: true, lagMs: 0 })
  await box.admin.resume('a')
  await box.drain()
  expect(await box.health()).toEqual({ ok: true, database: true, sources: true, lagMs: 0 })
})

/** Messages of a consumer that runs elsewhere: one is due, one is held for a while, and many are to be tried before that. */
const RETRIES_BEFORE_LEASE = `
with stored as (
  insert into ob.message (consumer, source, id, type, key, body, received_at)
  select 'a', 's', i::text, 'note', i::text, '1', ob.now() - interval '1 hour' from generate_series(1, 1500) i returning id
),
waiting as (
  insert into ob.work (consumer, source, id, lane, due_at, attempts, token)
  select 'a', 's', id, case when $1 = 'lanes' then id end, due_at, (id <> '1')::int, case when $1 = 'loose' then token end
  from stored, lateral (select case id when '1' then ob.now() - interval '1 minute' when '2' then ob.now() + interval '1 hour'
    else ob.now() + interval '1 minute' end due_at, case id when '2' then gen_random_uuid() end token) x
  returning lane, due_at, id
)
insert into ob.lane (consumer, key, due_at, token)
select 'a', lane, due_at, case id when '2' then gen_random_uuid() end from waiting where lane is not null`

test.for(['loose', 'lanes'])(
  'a consumer with many retries before the end of a lease is run by its holder: %s',
  async (how) => {
    await using box = await server.open()
    box.consumer('a', { note: () => undefined }, how === 'lanes' ? { order: 'key' } : {})
    await box.migrate()
    await box.sql(RETRIES_BEFORE_LEASE, [how])
    expect(await box.health()).toMatchObject({ ok: true })
    await box.sql(`update ob.${how === 'lanes' ? 'lane' : 'work'} set token = null`)
    expect(await box.health()).toMatchObject({
      ok: false,
      reasons: [expect.stringMatching(/consumer a .*nothing runs it/)],
    })
  },
)

test('a forgotten start() is warned of once, some seconds after something was stored', async () => {
  const logger = recorder()
  await using box = await server.open({ logger })
  box.consumer('a', { note: () => undefined })
  box.consumer('b', { other: () => undefined })
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    for (const id of ['1', '2']) {
      await box.receive(note(id))
      await box.clock.advance(10_000)
      await vi.advanceTimersByTimeAsync(10_000)
    }
  } finally {
    vi.useRealTimers()
  }
  await waitUntil(() => logger.lines.length > 0)
  expect(logger.lines).toMatchObject([
    { level: 'warn', about: { consumer: 'a' }, text: expect.stringContaining('box.start()') },
  ])
})

test('events that no process has a sink for are warned of once', async () => {
  const logger = recorder()
  await using box = await server.open({ logger })
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    for (let times = 0; times < 2; times++) {
      await inTransaction(server.pool, (client) => box.send(client, 'note', 1))
      await vi.advanceTimersByTimeAsync(10_000)
    }
  } finally {
    vi.useRealTimers()
  }
  await waitUntil(() => logger.lines.length > 0)
  expect(logger.lines).toMatchObject([{ level: 'warn', text: expect.stringContaining('box.to(') }])
})

test('events that wait for a sink that nothing runs count, and are warned of once', async () => {
  const logger = recorder()
  await using box = await server.open({ logger })
  // Attached after migrate(), so the database has not heard of it.
  box.to({ name: 'broker', publish: async (events) => events.map(() => undefined), close: async () => undefined })
  const send = async () => {
    const client = await server.pool.connect()
    try {
      await client.query('begin')
      await box.send(client, 'note', 1)
      await client.query('commit')
    } finally {
      client.release()
    }
  }
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    for (let times = 0; times < 2; times++) {
      await send()
      await box.clock.advance(10_000)
      await vi.advanceTimersByTimeAsync(10_000)
    }
  } finally {
    vi.useRealTimers()
  }
  expect((await box.health()).lagMs).toBeGreaterThanOrEqual(20_000)
  expect(await box.health({ maxLagMs: 15_000 })).toMatchObject({ ok: false })
  await waitUntil(() => logger.lines.length > 0)
  expect(logger.lines).toMatchObject([
    { level: 'warn', about: { sink: 'broker' }, text: expect.stringContaining('box.start()') },
  ])
  await box.drain()
  expect(await box.health()).toMatchObject({ ok: true, lagMs: 0 })
})

test('a source that was never started is not ok, and says so', async () => {
  await using box = await server.open()
  box.consumer('a', { note: () => undefined })
  const idle: Source = { name: 'orders', start: async () => undefined, stop: async () => undefined }
  box.from(idle)
  const { ok, sources, reasons } = await box.health()
  expect([ok, sources]).toEqual([false, false])
  expect(reasons).toEqual(['source orders was never started; call box.start()'])
  await box.start()
  await waitUntil(async () => (await box.health()).ok)
  await box.stop()
  expect(await box.health()).toMatchObject({ ok: true, sources: true })
})

test('a database that takes no writes is not ok', async () => {
  // As its configuration says: what a role or a client says of itself is overruled.
  const own = await startPostgres({ settings: { default_transaction_read_only: 'on' } })
  const pool = new pg.Pool({ connectionString: own.url })
  const writer = new pg.Pool({ connectionString: own.url, options: '-c default_transaction_read_only=off' })
  try {
    await createBox({ db: fromPg(writer), logger: recorder() }).migrate()
    expect(await createBox({ db: fromPg(pool), logger: recorder() }).health()).toMatchObject({
      ok: false,
      database: false,
      reasons: [expect.stringContaining('writes')],
    })
  } finally {
    await Promise.all([pool.end(), writer.end()])
    await own.stop()
  }
})

test('a consumer whose workers fail every time is not ok, until one works', async () => {
  await using box = await server.open()
  box.consumer('a', { note: () => undefined })
  await box.start()
  await waitUntil(async () => (await box.health()).ok)
  await box.sql('alter table ob.work rename column suspect to gone')
  await box.receive(note('1'))
  await waitUntil(async () => (await box.health()).reasons?.some((reason) => reason.includes('consumer a fails')))
  await box.sql('alter table ob.work rename column gone to suspect')
  await waitUntil(async () => (await box.health()).ok)
})

test('health answers though the database does not', async () => {
  vi.useFakeTimers()
  try {
    const db = { query: () => new Promise<never>(() => {}), transaction: () => new Promise<never>(() => {}) }
    const health = createBox({ db, logger: recorder() }).health()
    await vi.advanceTimersByTimeAsync(5_000)
    expect(await health).toMatchObject({ ok: false, database: false })
  } finally {
    vi.useRealTimers()
  }
})
