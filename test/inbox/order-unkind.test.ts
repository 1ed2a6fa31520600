/**
 * Order per key where the database is unkind: roles whose transactions are stricter than ours, commits that take their time,
 * a synchronous standby that stalls. Two producers read each partition of a log, as before and after a rebalance, and go
 * back to the first message that was not acknowledged. The long form:
 * `ONCEBOX_UNKIND=900 npx vitest run test/inbox/order-unkind.test.ts`.
 */
import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { createBox, type Incoming } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { environment, type Environment } from '../support/environments.js'
import { waitUntil } from '../support/wait.js'

const MESSAGES = Number(process.env['ONCEBOX_UNKIND'] ?? 90)
const PARTITIONS = 3
const KEYS_EACH = 3
const BATCH = 20
/** A standby stalls for longer than anybody waits for a lock. */
const STALL_MS = { stalled: 1_250, between: 250 }
const STALLS = Math.ceil(MESSAGES / 45)

const CONDITIONS: Record<string, () => Promise<{ env: Environment; trouble?: () => Promise<void> }>> = {
  'repeatable read by default': async () => ({
    env: await environment('role', { settings: { default_transaction_isolation: 'repeatable read' } }),
  }),
  'serializable by default': async () => ({
    env: await environment('role', { settings: { default_transaction_isolation: 'serializable' } }),
  }),
  'slow commits': async () => ({ env: await environment('slow-commits') }),
  'a stalling standby': async () => {
    const env = await environment('standby')
    const trouble = async (): Promise<void> => {
      await env.stall()
      await new Promise((resolve) => setTimeout(resolve, STALL_MS.stalled))
      await env.resume()
      await new Promise((resolve) => setTimeout(resolve, STALL_MS.between))
    }
    return { env, trouble }
  },
}

/** The log of a partition: its keys take turns. */
function logOf(partition: number): Incoming[] {
  return Array.from({ length: MESSAGES / PARTITIONS }, (_, at) => {
    const key = `k${partition * KEYS_EACH + (at % KEYS_EACH)}`
    return { id: `${partition}-${at}`, type: 'note', key, data: { seq: Math.floor(at / KEYS_EACH) } }
  })
}

test.for(Object.keys(CONDITIONS))(
  `${MESSAGES} messages with a key run once each and in order: %s`,
  { timeout: 120_000 + 400 * MESSAGES },
  async (condition) => {
    const { env, trouble } = await CONDITIONS[condition]!()
    onTestFinished(() => env.close())
    const pool = new pg.Pool({ ...env.connection, max: 16 })
    pool.on('error', () => {})
    onTestFinished(() => pool.end())
    const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
    const box = createBox({ db: fromPg(pool), logger: silent })
    await box.migrate()
    await pool.query('create table line (n bigserial primary key, key text, seq int)')
    box.consumer(
      'ordered',
      {
        note: ({ key, data }, { tx }) =>
          tx.query('insert into line (key, seq) values ($1, $2)', [key, (data as { seq: number }).seq]),
      },
      { order: 'key' },
    )
    onTestFinished(() => box.stop({ timeoutMs: 5_000 }))

    let gaps = 0
    const produce = async (log: readonly Incoming[]): Promise<void> => {
      for (let at = 0; at < log.length;) {
        const batch = log.slice(at, at + BATCH)
        const outcomes = await box.receive(batch).catch(() => [])
        const refused = batch.findIndex((_, index) => outcomes[index]?.ack !== true)
        if (refused >= 0) gaps++
        at += refused < 0 ? batch.length : refused
      }
    }
    let producing = true
    const makeTrouble = async (): Promise<void> => {
      for (let times = 0; trouble && producing && times < STALLS; times++) await trouble()
    }
    const troubled = makeTrouble()
    const logs = Array.from({ length: PARTITIONS }, (_, partition) => logOf(partition))
    // The lane of one key stays locked until a message of it was refused, with others of its key behind it.
    await box.receive(logs[0]!.slice(0, KEYS_EACH))
    const locker = await pool.connect()
    await locker.query('begin')
    const { rowCount } = await locker.query(`select from oncebox.lane where key = 'k0' for update`)
    expect(rowCount).toBe(1)
    await box.start()
    const produced = Promise.all(logs.flatMap((log) => [produce(log), produce(log)]))
    await waitUntil(() => gaps > 0, { timeoutMs: 60_000, what: 'a message that is refused' })
    await locker.query('commit')
    locker.release()
    await produced
    producing = false
    await troubled

    const lines = async (): Promise<number> =>
      Number((await pool.query<{ count: string }>('select count(*) from line')).rows[0]!.count)
    await waitUntil(async () => (await lines()) >= MESSAGES, { timeoutMs: 60_000 + 100 * MESSAGES })
    await box.stop()
    const { rows } = await pool.query<{ key: string; seqs: number[] }>(
      'select key, array_agg(seq order by n) seqs from line group by key',
    )
    const breaks = rows.reduce((sum, { seqs }) => sum + seqs.filter((seq, at) => seq !== at).length, 0)
    if (MESSAGES > 90) console.log({ condition, lines: await lines(), gaps, breaks })
    expect({ lines: await lines(), breaks }).toEqual({ lines: MESSAGES, breaks: 0 })
    const { rows: left } = await pool.query('select id, parked, attempts from oncebox.work')
    expect(left).toEqual([])
  },
)
