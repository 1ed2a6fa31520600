/** Pools that are ended too early, too small, or held by the handlers themselves. */
import pg from 'pg'
import postgres from 'postgres'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { fromPostgres } from 'oncebox/postgres'
import { gate, recorder } from '../inbox/fixture.js'
import { type ScratchDatabase, scratchDatabase, scratchSchemaName } from '../support/postgres.js'
import { waitUntil } from '../support/wait.js'

let database: ScratchDatabase
let direct: pg.Pool
beforeAll(async () => {
  database = await scratchDatabase('pools')
  direct = new pg.Pool({ connectionString: database.url, max: 2 })
})
afterAll(async () => {
  await direct.end()
  await database.close()
})

const note = (id: string) => ({ id, type: 'note', data: {} })

describe('a pool that was ended', () => {
  const POOLS = {
    pg: () => {
      const pool = new pg.Pool({ connectionString: database.url })
      return { db: fromPg(pool), end: () => pool.end() }
    },
    'postgres.js': () => {
      const sql = postgres(database.url, { onnotice: () => {} })
      return { db: fromPostgres(sql), end: () => sql.end({ timeout: 1 }) }
    },
  }

  test.each(Object.entries(POOLS))('does not keep a box of %s from stopping', { timeout: 20_000 }, async (_, make) => {
    const { db, end } = make()
    const log = recorder()
    const box = createBox({ db: db as never, schema: scratchSchemaName(), logger: log })
    box.consumer('any', { note: async () => {} })
    await box.migrate()
    await box.start()
    const ended = end()
    await waitUntil(() => log.lines.some(({ about }) => /call box\.stop\(\) first/.test(JSON.stringify(about))))
    // The default of 30 s is longer than this test may take.
    await box.stop()
    await ended
  })
})

test('a pool of one connection of postgres.js keeps its claims', { timeout: 240_000 }, async () => {
  const sql = postgres(database.url, { max: 1, onnotice: () => {} })
  onTestFinished(() => sql.end({ timeout: 0 }))
  const schema = scratchSchemaName()
  const box = createBox({ db: fromPostgres(sql), schema })
  const [inside, go] = [gate(), gate()]
  let calls = 0
  box.consumer(
    'slow',
    {
      note: async () => {
        calls += 1
        inside.open()
        await go.opened
      },
    },
    { leaseMs: 1_000 },
  )
  await box.migrate()
  onTestFinished(() => box.stop({ timeoutMs: 0 }))
  await box.start()
  await box.receive(note('a'))
  await inside.opened
  const until = async (): Promise<number> => {
    const { rows } = await direct.query<{ at: Date }>(`select due_at at from ${schema}.work`)
    return rows[0]!.at.getTime()
  }
  // Extended three times over, while the handler holds the only connection.
  let last = await until()
  for (let times = 0; times < 3; times += 1) {
    const before = last
    last = await waitUntil(async () => {
      const now = await until()
      return now > before ? now : 0
    })
  }
  go.open()
  await waitUntil(async () => (await direct.query(`select from ${schema}.work`)).rows.length === 0)
  expect(calls).toBe(1)
})

describe('a pool of one connection, which a handler holds', () => {
  const POOLS = {
    pg: () => {
      const pool = new pg.Pool({ connectionString: database.url, max: 1 })
      onTestFinished(() => pool.end())
      return fromPg(pool)
    },
    'postgres.js': () => {
      const sql = postgres(database.url, { max: 1, onnotice: () => {} })
      onTestFinished(() => sql.end({ timeout: 0 }))
      return fromPostgres(sql)
    },
  }
  const ROWS = {
    none: 'work',
    key: 'lane',
  }

  test.each(Object.entries(POOLS).flatMap(([client, make]) => Object.keys(ROWS).map((order) => [client, order, make])))(
    '%s, order %s: a heartbeat waits for a row that others keep locked',
    { timeout: 240_000 },
    async (_client, order, make) => {
      const schema = scratchSchemaName()
      const box = createBox({ db: (make as () => never)(), schema })
      const [inside, go] = [gate(), gate()]
      let calls = 0
      let aborted = false
      box.consumer(
        'slow',
        {
          note: async (_message, { signal }) => {
            calls += 1
            signal.addEventListener('abort', () => (aborted = true))
            inside.open()
            await go.opened
          },
        },
        { leaseMs: 3_000, order: order as 'none' | 'key', group: { messages: 1 } },
      )
      await box.migrate()
      onTestFinished(() => box.stop({ timeoutMs: 0 }))
      await box.start()
      await box.receive({ ...note('a'), key: 'hot' })
      await inside.opened

      const locker = await direct.connect()
      try {
        await locker.query(`begin; select from ${schema}.${ROWS[order as keyof typeof ROWS]} for update`)
        const waits = async (): Promise<boolean> => {
          const { rows } = await direct.query(`select from pg_stat_activity
            where datname = current_database() and wait_event_type = 'Lock' and query like '%${schema}%'`)
          return rows.length > 0
        }
        await waitUntil(async () => aborted || (await waits()), { everyMs: 5, what: 'a heartbeat that waits' })
      } finally {
        await locker.query('rollback')
        locker.release()
      }
      expect(aborted).toBe(false)
      go.open()
      await waitUntil(async () => {
        const { rows } = await direct.query(`select from ${schema}.work`)
        return rows.length === 0
      })
      expect(calls).toBe(1)
    },
  )
})

test('heartbeats do not wait behind statements that wait for a lock', { timeout: 240_000 }, async () => {
  const pool = new pg.Pool({ connectionString: database.url, max: 1 })
  onTestFinished(() => pool.end())
  const driver = fromPg(pool)
  await direct.query('create table contended (a int); insert into contended values (1)')
  const holder = await direct.connect()
  await holder.query('begin; update contended set a = 2')
  await driver.transaction(async (tx) => {
    await driver.query('select $1::text', ['x'], tx)
    // The pool is exhausted now, and this one takes the connection in reserve.
    const waiting = driver.query('update contended set a = $1::int', [3])
    await waitUntil(async () => {
      const { rows } = await direct.query(
        `select from pg_stat_activity where wait_event_type = 'Lock' and query like 'update contended%'`,
      )
      return rows.length === 1
    })
    await driver.query('select $1::text', ['beat'], undefined, { urgent: true })
    await holder.query('rollback')
    await waiting
  })
  holder.release()
})

test('handlers that wait for each other’s connections are told so', { timeout: 240_000 }, async () => {
  const pool = new pg.Pool({ connectionString: database.url, max: 2 })
  onTestFinished(() => pool.end())
  const log = recorder()
  const box = createBox({ db: fromPg(pool), schema: scratchSchemaName(), logger: log })
  const met = gate()
  let inside = 0
  box.consumer(
    'greedy',
    {
      note: async () => {
        inside += 1
        if (inside === 2) met.open()
        await met.opened
        const more = await pool.connect()
        more.release()
      },
    },
    { concurrency: 2, timeoutMs: 500, group: { messages: 1 }, retry: { attempts: 1 } },
  )
  await box.migrate()
  onTestFinished(() => box.stop({ timeoutMs: 0 }))
  await box.receive([note('a'), note('b')])
  await box.start()
  const said = await waitUntil(() =>
    log.lines.find(({ about }) => 'error' in about && /hold every/.test(String(about.error))),
  )
  expect(said.about).toMatchObject({ error: expect.stringMatching(/use the tx .*raise the pool’s max/) as string })
})
