/** Sessions that end under their worker: by an administrator, by a timeout of the server. */
import { createServer, type AddressInfo } from 'node:net'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Incoming } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { inversions, misses, openArena, stillAlive, type Arena, type ConsumerSpec } from './arena.js'

let arena: Arena
beforeAll(async () => {
  arena = await openArena('sessions')
})
afterEach(() => arena.clear())
afterAll(() => arena?.close())

const group = { messages: 20, ms: 500 }

async function receive(name: string, count: number, data: (seq: number) => Record<string, unknown>): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, seq) => `${name}-${seq}`)
  await arena.box.receive(
    ids.map((id, seq): Incoming => ({ id, type: name, key: `key-${seq % 10}`, data: { seq, ...data(seq) } })),
  )
  return ids
}

describe.each(['none', 'key'])('order %s', (order) => {
  test('sessions terminated at random cost nothing but time', { timeout: 240_000 }, async () => {
    const name = `terminated-${order}`
    const consumer: ConsumerSpec = { name, options: { order, group, leaseMs: 1_000 } }
    await arena.register([consumer])
    const ids = await receive(name, 1_500, () => ({ sleepMs: 1 }))
    const workers = await Promise.all([1, 2].map(() => arena.worker({ consumers: [consumer] })))
    let terminated = 0
    while ((await arena.pending(name)) > 0) {
      const { rowCount } = await arena.pool.query(
        `select pg_terminate_backend(pid) from (select pid from pg_stat_activity
           where datname = current_database() and application_name = 'worker' order by random() limit 2) x`,
      )
      terminated += rowCount!
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    expect(terminated).toBeGreaterThan(0)
    const effects = await arena.effects(name)
    expect(misses(effects, ids)).toEqual({ doubled: [], lost: [] })
    if (order === 'key') expect(inversions(effects)).toEqual([])
    expect(await arena.work(name)).toEqual([])
    await stillAlive(...workers)
  })
})

describe.each(['none', 'key'])('order %s', (order) => {
  test('a connection lost under a handler costs no attempt, not even one that was counted first', async () => {
    const name = `lost-${order}`
    const consumer: ConsumerSpec = { name, options: { order, leaseMs: 1_000, group: { messages: 1 } } }
    await arena.register([consumer])
    await arena.box.receive({ id: name, type: name, key: 'key', data: { seq: 0, late: true, first: { hold: true } } })
    const killed = await arena.worker({ consumers: [consumer] })
    await killed.next('holding')
    await killed.kill('SIGKILL')

    // Its last worker died, so the attempt is counted before it runs.
    const worker = await arena.worker({ consumers: [consumer] })
    await worker.next('holding')
    expect(await arena.work(name)).toMatchObject([{ attempts: 1 }])
    await arena.pool.query(`select pg_terminate_backend(pid) from pg_stat_activity
      where application_name = 'worker' and datname = current_database() and state = 'idle in transaction'`)
    worker.send(`go:${name}`)
    await arena.drained({ consumer: name })
    expect(await arena.effects(name)).toMatchObject([{ id: name, pid: worker.pid, attempt: 1 }])
    expect(await arena.failures()).toEqual([])
    await stillAlive(worker)
  })
})

test('a statement timeout fails the attempt of the message that ran into it, and no other', async () => {
  const consumer = { name: 'statement', options: { group, retry: { attempts: 2, baseMs: 1, maxMs: 1 } } }
  await arena.register([consumer])
  const [slow, never] = [3, 5]
  const ids = await receive('statement', 10, (seq) => {
    if (seq === slow) return { first: { sql: 'select pg_sleep(30)' } }
    return seq === never ? { sql: 'select pg_sleep(30)' } : {}
  })
  const worker = await arena.worker({ consumers: [consumer], pool: { statement_timeout: 500 } })
  await arena.drained({ consumer: 'statement' })
  const effects = await arena.effects('statement')
  expect(misses(effects, ids)).toEqual({ doubled: [], lost: [ids[never]] })
  expect(effects.filter(({ attempt }) => attempt > 1).map(({ id }) => id)).toEqual([])
  expect(await arena.work('statement')).toMatchObject([{ id: ids[never], parked: 'dead', attempts: 2, code: '57014' }])
  await stillAlive(worker)
})

test('a session ended because its transaction idled is lost without harm, and one that always idles ends up dead', async () => {
  const consumer = { name: 'idle', options: { group, leaseMs: 5_000, retry: { attempts: 2, baseMs: 1, maxMs: 1 } } }
  await arena.register([consumer])
  const [once, always] = [3, 5]
  const ids = await receive('idle', 10, (seq) => {
    if (seq === once) return { first: { sleepMs: 1_500 } }
    return seq === always ? { sleepMs: 1_500, late: true } : {}
  })
  const worker = await arena.worker({ consumers: [consumer], pool: { idle_in_transaction_session_timeout: 500 } })
  await arena.drained({ consumer: 'idle' })
  const effects = await arena.effects('idle')
  expect(misses(effects, ids)).toEqual({ doubled: [], lost: [ids[always]] })
  expect(effects.filter(({ attempt }) => attempt > 1)).toEqual([])
  expect(await arena.work('idle')).toMatchObject([{ id: ids[always], parked: 'dead', attempts: 2 }])
  await stillAlive(worker)
})

test('what a frozen worker holds locked is free again once its transaction has idled for too long', async () => {
  const retry = { attempts: 100, baseMs: 50, maxMs: 100 }
  const consumer = { name: 'locked', options: { group: { messages: 1 }, leaseMs: 1_000, timeoutMs: 1_000, retry } }
  await arena.register([consumer])
  await arena.pool.query(
    'drop table if exists stock; create table stock (id int primary key); insert into stock values (1)',
  )
  const sql = 'select * from stock where id = 1 for update'
  await arena.box.receive({ id: 'locked-1', type: 'locked', data: { sql, hold: true } })
  const frozen = await arena.worker({ consumers: [consumer] })
  await frozen.next('holding')
  await frozen.kill('SIGSTOP')

  const other = await arena.worker({ consumers: [consumer], ignores: ['hold'] })
  await arena.box.receive({ id: 'locked-2', type: 'locked', data: { sql } })
  await arena.drained({ consumer: 'locked', timeoutMs: 90_000 })
  await frozen.kill('SIGCONT')
  frozen.send('go:locked-1')
  const effects = await arena.effects('locked')
  expect(misses(effects, ['locked-1', 'locked-2'])).toEqual({ doubled: [], lost: [] })
  expect(effects.every(({ pid }) => pid === other.pid)).toBe(true)
})

test('a session that is ended in the moment it is ready does not end the process', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => socket.end(Buffer.concat([AUTHENTICATED, READY, TERMINATED])))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const pool = new pg.Pool({ host: '127.0.0.1', port, user: 'nobody', ssl: false })
  try {
    const db = fromPg(pool)
    await expect(db.query('select 1', [])).rejects.toThrow()
    await expect(db.transaction(async () => {})).rejects.toThrow()
  } finally {
    await pool.end()
    server.close()
  }
})

/** What a server says that lets a client in, and ends its session in the same breath. */
const AUTHENTICATED = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0])
const READY = Buffer.from([0x5a, 0, 0, 0, 5, 0x49])
const FIELDS = Buffer.from('SFATAL\0C57P01\0Mterminating connection due to administrator command\0\0')
const TERMINATED = Buffer.concat([Buffer.from([0x45, 0, 0, 0, FIELDS.length + 4]), FIELDS])
