/** Packets vanish, and nobody is told: every connection falls silent while new ones work. */
import pg from 'pg'
import postgres from 'postgres'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { fromPostgres } from 'oncebox/postgres'
import { gate, recorder } from '../inbox/fixture.js'
import { type BlackHoleEnvironment, environment } from '../support/environments.js'
import { waitUntil } from '../support/wait.js'

const LEASE_MS = 2_000
/** Far more than it takes, and far less than TCP takes. */
const PATIENCE = { timeoutMs: 90_000 }

interface Bench {
  readonly env: BlackHoleEnvironment
  readonly direct: pg.Pool
  readonly box: ReturnType<typeof createBox>
  /** Writes a line in the handler's transaction. */
  write(tx: unknown, id: string): Promise<unknown>
  /** The lines that committed. */
  written(): Promise<string[]>
  /** Messages of the log that tell of a failed attempt. */
  blamed(): unknown[]
}

const DRIVERS = {
  pg: (url: string) => {
    const pool = new pg.Pool({ connectionString: url, max: 6 })
    pool.on('error', () => {})
    onTestFinished(() => pool.end())
    return {
      db: fromPg(pool),
      write: (tx: unknown, id: string) => (tx as pg.PoolClient).query('insert into effect values ($1)', [id]),
    }
  },
  'postgres.js': (url: string) => {
    const sql = postgres(url, { max: 6, onnotice: () => {} })
    onTestFinished(() => sql.end({ timeout: 0 }))
    return {
      db: fromPostgres(sql),
      write: (tx: unknown, id: string) => (tx as postgres.TransactionSql)`insert into effect values (${id})`,
    }
  },
}

async function open(driver: keyof typeof DRIVERS): Promise<Bench> {
  const env = await environment('black-hole')
  onTestFinished(() => env.close())
  const direct = new pg.Pool({ connectionString: env.direct, max: 2 })
  direct.on('error', () => {})
  onTestFinished(() => direct.end())
  await direct.query('create table effect (id text)')
  const { db, write } = DRIVERS[driver](env.url)
  const log = recorder()
  const box = createBox({ db: db as never, logger: log })
  await box.migrate()
  onTestFinished(() => box.stop({ timeoutMs: 1_000 }))
  return {
    env,
    direct,
    box,
    write,
    written: async () =>
      (await direct.query<{ id: string }>('select id from effect order by id')).rows.map(({ id }) => id),
    blamed: () => log.lines.filter(({ text }) => /retried|dead|quarantined/.test(text ?? '')),
  }
}

const messages = (count: number) => Array.from({ length: count }, (_, at) => ({ id: `m${at}`, type: 'note', data: {} }))

describe.each(['pg', 'postgres.js'] as const)('%s', (driver) => {
  test('a busy worker goes on, and no message is blamed', { timeout: 240_000 }, async () => {
    const { env, box, write, written, blamed } = await open(driver)
    const fell = gate()
    let inside = 0
    const attempts: number[] = []
    box.consumer(
      'busy',
      {
        note: async ({ id }, { tx, attempt }) => {
          attempts.push(attempt)
          await write(tx, id)
          inside += 1
          await fell.opened
          await write(tx, `${id} again`)
        },
      },
      { leaseMs: LEASE_MS, concurrency: 3, group: { messages: 1 } },
    )
    await box.start()
    await box.receive(messages(3))
    await waitUntil(() => inside === 3)
    env.swallow()
    fell.open()
    await waitUntil(async () => (await written()).length === 6, PATIENCE)
    expect(await written()).toEqual(['m0', 'm0 again', 'm1', 'm1 again', 'm2', 'm2 again'])
    expect(new Set(attempts)).toEqual(new Set([1]))
    expect(blamed()).toEqual([])
  })

  test('an idle worker finds what arrives', { timeout: 240_000 }, async () => {
    const { env, box, write, written, blamed, direct } = await open(driver)
    box.consumer('idle', { note: ({ id }, { tx }) => write(tx, id) }, { leaseMs: LEASE_MS })
    await box.start()
    // So that every connection of the pool has been used.
    await box.receive(messages(6))
    await waitUntil(async () => (await written()).length === 6)
    env.swallow()
    const other = createBox({ db: fromPg(direct) })
    await other.receive({ id: 'm9', type: 'note', data: {} })
    await waitUntil(async () => (await written()).includes('m9'), PATIENCE)
    expect(await written()).toHaveLength(7)
    expect(blamed()).toEqual([])
  })

  test('a COMMIT whose answer is lost is found to have happened', { timeout: 240_000 }, async () => {
    const { env, box, write, written, blamed, direct } = await open(driver)
    const held = gate()
    let calls = 0
    box.consumer(
      'commits',
      {
        note: async ({ id }, { tx }) => {
          calls += 1
          await write(tx, id)
          void env.proxy.intercept({ at: 'after' }).then(() => held.open())
        },
      },
      { leaseMs: LEASE_MS, group: { messages: 1 } },
    )
    await box.start()
    await box.receive({ id: 'm0', type: 'note', data: {} })
    await held.opened
    // It is never let go.
    await waitUntil(async () => {
      const { rows } = await direct.query(`select from oncebox.message m where not exists (select from oncebox.work)`)
      return rows.length === 1 && (await written()).length === 1
    }, PATIENCE)
    await box.stop({ timeoutMs: 20_000 })
    expect(calls).toBe(1)
    expect(await written()).toEqual(['m0'])
    expect(blamed()).toEqual([])
  })

  test('a handler that runs out of time on a dead connection is not to blame', { timeout: 240_000 }, async () => {
    const { env, box, write, written, blamed } = await open(driver)
    const fell = gate()
    let inside = 0
    box.consumer(
      'late',
      {
        note: async ({ id }, { tx }) => {
          await write(tx, id)
          inside += 1
          if (inside === 1) await fell.opened
          await write(tx, `${id} again`)
        },
      },
      // The lease is long: nothing but the deadline ends it.
      { leaseMs: 60_000, timeoutMs: 3_000 },
    )
    await box.start()
    await box.receive({ id: 'm0', type: 'note', data: {} })
    await waitUntil(() => inside === 1)
    env.swallow()
    fell.open()
    await waitUntil(async () => (await written()).length === 2, PATIENCE)
    expect(blamed()).toEqual([])
  })
})
