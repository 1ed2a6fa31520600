/** Large messages over a slow line: a connection on which something is on its way is not taken for a dead one. */
import pg from 'pg'
import postgres from 'postgres'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { fromPostgres } from 'oncebox/postgres'
import { describe, expect, onTestFinished, test } from 'vitest'
import { runOn } from '../../src/postgres/drivers/pg/alone.js'
import { Session } from '../../src/postgres/drivers/pg/session.js'
import { note, notes, recorder, useServer } from '../inbox/fixture.js'
import { throttle } from '../support/throttle.js'
import { waitUntil } from '../support/wait.js'

const server = useServer('slow_line')
const LARGE = 'x'.repeat(6 * 1024 * 1024)
/** A body takes six seconds. */
const RATE = 1024 * 1024
/** With it, a short statement may take four seconds. */
const LEASE_MS = 8_000

const DRIVERS = {
  pg: (url: string) => {
    const pool = new pg.Pool({ connectionString: url, max: 6 })
    pool.on('error', () => {})
    return { db: fromPg(pool), end: () => pool.end() }
  },
  'postgres.js': (url: string) => {
    const sql = postgres(url, { max: 6, onnotice: () => {} })
    return { db: fromPostgres(sql), end: () => sql.end({ timeout: 0 }) }
  },
}

/** A box over the line, which has claimed before. */
async function overLine(driver: keyof typeof DRIVERS) {
  const box = await server.open({ maxBytes: 64 * 1024 * 1024 })
  const line = await throttle(server.url)
  const { db, end } = DRIVERS[driver](line.url)
  const options = { schema: box.schema, logger: recorder(), maxBytes: 64 * 1024 * 1024 }
  const far = createBox({ db: db as never, ...options })
  onTestFinished(async () => {
    await far.stop({ timeoutMs: 1_000 })
    await end()
    await line[Symbol.asyncDispose]()
    await box[Symbol.asyncDispose]()
  })
  const handled: number[] = []
  const handle = ({ data }: { data: unknown }): void => void handled.push((data as { text: string }).text.length)
  return { box, line, far, handled, handle }
}

describe.each(['pg', 'postgres.js'] as const)('%s', (driver) => {
  test('a large message is stored', async () => {
    const { box, line, far, handle } = await overLine(driver)
    far.consumer('a', { note: handle }, { leaseMs: LEASE_MS })
    await far.drain()
    line.rate = RATE
    expect(await far.receive(note('1', { data: { text: LARGE } }))).toMatchObject({ status: 'stored' })
    expect(await box.fate('1')).toMatchObject({ state: 'pending' })
  })

  test('a large message is claimed, and handled', async () => {
    const { line, far, handled, handle } = await overLine(driver)
    far.consumer('a', { note: handle }, { leaseMs: LEASE_MS, concurrency: 1 })
    await far.receive(note('1', { data: { text: LARGE } }))
    line.rate = RATE
    await far.start()
    await waitUntil(() => handled.length > 0, { timeoutMs: 30_000, what: 'it to be handled' })
    expect(handled).toEqual([LARGE.length])
  })

  test('a large message is handled on arrival', async () => {
    const { line, far, handled, handle } = await overLine(driver)
    far.consumer('a', { note: handle }, { leaseMs: LEASE_MS, mode: 'inline' })
    await far.drain()
    // Prepared by then on every connection, which take turns: nothing but the body is on its way.
    for (const small of notes(12)) await far.handle(small)
    line.rate = RATE
    expect(await far.handle(note('1', { data: { text: LARGE } }))).toMatchObject({ status: 'handled' })
    expect(handled).toHaveLength(13)
    expect(handled.at(-1)).toBe(LARGE.length)
  })
})

describe('the answer to a statement', () => {
  const SILENT = { code: 'CONNECTION_SILENT' }
  /** It takes six seconds, and may be silent for two: on a busy machine the server takes most of one to begin. */
  const ask = { text: `select repeat('x', $1::int) as x`, values: [3 * 1024 * 1024], rate: 512 * 1024, limitMs: 2_000 }

  async function overSlowLine(driver: keyof typeof DRIVERS) {
    const line = await throttle(server.url)
    const { db, end } = DRIVERS[driver](line.url)
    onTestFinished(async () => {
      line.rate = Infinity
      await end()
      await line[Symbol.asyncDispose]()
    })
    const query = async (options: object) =>
      (await db.query(ask.text, ask.values, undefined, { limitMs: ask.limitMs, ...options })) as { x: string }[]
    // The connection is open, and knows the statement.
    await query({ limitMs: 60_000 })
    return { line, query }
  }

  describe.each(['pg', 'postgres.js'] as const)('%s', (driver) => {
    test.for([{}, { settings: 'set local lock_timeout = 0' }])('has its time while it comes (%o)', async (options) => {
      const { line, query } = await overSlowLine(driver)
      line.rate = ask.rate
      const [row] = await query(options)
      expect(row!.x).toHaveLength(ask.values[0]!)
    })

    test('has its time and no more once it stops to come', { timeout: 20_000 }, async () => {
      const { line, query } = await overSlowLine(driver)
      // The first of it comes at once, and the rest half a minute later.
      line.rate = 2_000
      await expect(query({})).rejects.toMatchObject(SILENT)
    })

    test('has its time and no more if it is that of a heartbeat', async () => {
      const { line, query } = await overSlowLine(driver)
      line.rate = ask.rate
      await expect(query({ urgent: true })).rejects.toMatchObject(SILENT)
    })
  })
})

test('a connection that has answered a large statement is silent as soon as any other', async () => {
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  client.on('error', () => {})
  onTestFinished(() => client.end())
  const session = new Session(client as never, 'read committed')
  await session.send({ text: 'select length($1)', values: [LARGE] })
  const slow = session.send({ text: 'select pg_sleep(6)' })
  await waitUntil(() => session.silentMs > 100, { timeoutMs: 5_000, what: 'silence to show' })
  await slow
  expect(session.silentMs).toBe(0)
  await session.rollback()
  session.detach()
})

test('a heartbeat has its time and no more, whatever arrives before its answer', { timeout: 10_000 }, async () => {
  let answered: (error: Error) => void = () => undefined
  let heard = 0
  const stream = {
    // As if the answers to what goes before it came one by one.
    get bytesRead() {
      return heard++
    },
    destroy: (reason: Error) => answered(reason),
  }
  const ignore = (): void => undefined
  const query = (_text: unknown, _values: unknown, done: typeof answered): void => void (answered = done)
  const client = { query, on: ignore, off: ignore, connection: { stream } }
  const heartbeat = runOn(client as never, { text: 'select 1' }, { limitMs: 50, urgent: true })
  await expect(heartbeat).rejects.toMatchObject({ code: 'CONNECTION_SILENT' })
})
