/**
 * Packets vanish, and nobody is told: every connection falls silent while new ones work. With the default lease, for a
 * minute: `ONCEBOX_BLACK_HOLE_MS=60000 npx vitest run test/drivers/silence.test.ts -t 'goes on under'`.
 */
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
const BLACK_HOLE_MS = Number(process.env['ONCEBOX_BLACK_HOLE_MS'] ?? 0)
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
  /** Messages of the log that tell of a worker that is taken for dead. */
  takenOver(): unknown[]
}

const DRIVERS = {
  pg: ({ url, proxy }: BlackHoleEnvironment, max: number) => {
    const pool = new pg.Pool({ connectionString: url, max })
    pool.on('error', () => {})
    onTestFinished(() => {
      // A connection that is silent still would never agree to end.
      proxy.cutAll()
      return pool.end()
    })
    return {
      db: fromPg(pool),
      write: (tx: unknown, id: string) => (tx as pg.PoolClient).query('insert into effect values ($1)', [id]),
    }
  },
  'postgres.js': ({ url }: BlackHoleEnvironment, max: number) => {
    const sql = postgres(url, { max, onnotice: () => {} })
    onTestFinished(() => sql.end({ timeout: 0 }))
    return {
      db: fromPostgres(sql),
      write: (tx: unknown, id: string) => (tx as postgres.TransactionSql)`insert into effect values (${id})`,
    }
  },
}

interface How {
  readonly max?: number
  /** Without the proxy: it lives in this process, and passes nothing on while this process is kept busy. */
  readonly straight?: boolean
}

async function open(driver: keyof typeof DRIVERS, { max = 6, straight = false }: How = {}): Promise<Bench> {
  const env = await environment('black-hole')
  onTestFinished(() => env.close())
  const direct = new pg.Pool({ connectionString: env.direct, max: 2 })
  direct.on('error', () => {})
  onTestFinished(() => direct.end())
  await direct.query('create table effect (id text)')
  const { db, write } = DRIVERS[driver](straight ? { ...env, url: env.direct } : env, max)
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
    takenOver: () => log.lines.filter(({ text }) => text?.includes('taken over')),
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

  test('work goes on under a black hole, and health tells of it', { timeout: 300_000 + BLACK_HOLE_MS }, async () => {
    const { env, box, write, written, blamed, takenOver, direct } = await open(driver)
    const attempts: number[] = []
    const slow = gate()
    let inside = 0
    box.consumer(
      'steady',
      {
        note: async ({ id }, { tx, attempt }) => {
          attempts.push(attempt)
          await write(tx, id)
          inside += 1
          await slow.opened
        },
      },
      { ...(BLACK_HOLE_MS === 0 && { leaseMs: LEASE_MS }), concurrency: 3, group: { messages: 1 } },
    )
    await box.start()
    const sender = createBox({ db: fromPg(direct) })
    await sender.receive(messages(3))
    await waitUntil(() => inside === 3)
    // So that the pool has idle connections too.
    await Promise.all([box.health(), box.health()])
    const swallowed = env.swallow()
    const began = performance.now()
    slow.open()
    const reasons = new Set<string>()
    let sent = 3
    let firstMs = 0
    await waitUntil(
      async () => {
        await sender.receive({ id: `m${sent++}`, type: 'note', data: {} })
        const { ok, reasons: told = [] } = await box.health()
        if (!ok) for (const reason of told) reasons.add(reason.replaceAll(/\d+/g, '0'))
        if (firstMs === 0 && (await written()).length > 0) firstMs = performance.now() - began
        return firstMs > 0 && reasons.size > 0 && performance.now() - began > BLACK_HOLE_MS
      },
      { timeoutMs: PATIENCE.timeoutMs + BLACK_HOLE_MS },
    )
    swallowed.giveBack()
    await waitUntil(async () => (await written()).length === sent, PATIENCE)
    await waitUntil(async () => (await box.health()).ok, PATIENCE)
    expect((await written()).sort()).toEqual(
      messages(sent)
        .map(({ id }) => id)
        .sort(),
    )
    if (BLACK_HOLE_MS > 0) console.log({ driver, sent, firstMs: Math.round(firstMs), calls: attempts.length, reasons })
    expect(new Set(attempts)).toEqual(new Set([1]))
    expect(takenOver()).toEqual([])
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

  test.for(['has connections to spare', 'is exhausted'] as const)(
    'a worker cut off for longer than its lease gives back what it held, while its pool %s',
    { timeout: 240_000 },
    async (pool) => {
      // postgres.js keeps one of them for heartbeats.
      const max = pool === 'is exhausted' ? (driver === 'pg' ? 2 : 3) : 6
      const { env, box, write, written, blamed, takenOver } = await open(driver, { max })
      let lost = 0
      let inside = 0
      const passed = gate()
      box.consumer(
        'cut-off',
        {
          note: async ({ id }, { tx, signal }) => {
            signal.addEventListener('abort', () => lost++)
            await write(tx, id)
            inside += 1
            await passed.opened
          },
        },
        { leaseMs: LEASE_MS, concurrency: 2, group: { messages: 1 } },
      )
      await box.start()
      await box.receive(messages(2))
      await waitUntil(() => inside === 2)
      env.proxy.pause()
      await waitUntil(() => lost === 2, PATIENCE)
      passed.open()
      env.proxy.resume()
      await waitUntil(async () => (await written()).length === 2, PATIENCE)
      expect(takenOver()).toEqual([])
      expect(blamed()).toEqual([])
    },
  )

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

  test('a process that is kept busy takes no connection for dead whose answer it has not read', async () => {
    const { box, write, written, blamed } = await open(driver, { straight: true })
    const calls: string[] = []
    box.consumer(
      'busy',
      {
        note: async ({ id }, { tx }) => {
          calls.push(id)
          await write(tx, id)
          const answer = write(tx, `${id} again`)
          // Sent before the processor is taken, for longer than it takes to doubt a connection.
          await new Promise(setImmediate)
          const until = performance.now() + 0.7 * LEASE_MS
          while (performance.now() < until);
          await answer
        },
      },
      { leaseMs: 2 * LEASE_MS, concurrency: 1, group: { messages: 1 } },
    )
    await box.start()
    await box.receive(messages(3))
    await waitUntil(async () => (await written()).length === 6, PATIENCE)
    expect(calls).toEqual(['m0', 'm1', 'm2'])
    expect(blamed()).toEqual([])
  })
})
