/** Connections of postgres.js that give no answer, or are slow to give one: what is given up, and what is left alone. */
import postgres from 'postgres'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { fromPostgres } from 'oncebox/postgres'
import type { Driver } from '../../src/postgres/driver.js'
import { type PostgresProxy, startProxy } from '../support/proxy.js'
import { type ScratchDatabase, scratchDatabase } from '../support/postgres.js'
import { waitUntil } from '../support/wait.js'

let database: ScratchDatabase
let direct: postgres.Sql
beforeAll(async () => {
  database = await scratchDatabase('postgres_silence')
  direct = postgres(database.url, { max: 5, onnotice: () => {} })
})
afterAll(async () => {
  await direct.end({ timeout: 0 })
  await database.close()
})

async function open(
  max: number,
  options: postgres.Options<Record<string, never>> = {},
): Promise<{ proxy: PostgresProxy; sql: postgres.Sql }> {
  const proxy = await startProxy(database.url)
  const sql = postgres(proxy.url, { max, onnotice: () => {}, ...options })
  onTestFinished(async () => {
    await sql.end({ timeout: 0 })
    await proxy.close()
  })
  return { proxy, sql }
}

/** A lock that others have to wait for until it is let go: what takes it is slow for as long as a test likes. */
async function lock(): Promise<{ readonly slow: string; waiting(count: number): Promise<void>; letGo(): void }> {
  const id = (locks += 1)
  let letGo = (): void => {}
  const gone = new Promise<void>((resolve) => (letGo = resolve))
  const taken = new Promise<void>((resolve, reject) => {
    direct.begin(async (tx) => (await tx`select pg_advisory_xact_lock(${id})`, resolve(), gone)).catch(reject)
  })
  onTestFinished(() => letGo())
  await taken
  const waits = () => direct`select from pg_locks where locktype = 'advisory' and objid = ${id} and not granted`
  return {
    slow: `select pg_advisory_lock_shared(${id}), pg_advisory_unlock_shared(${id}), 'slow' x`,
    waiting: async (count) => void (await waitUntil(async () => (await waits()).length === count)),
    letGo,
  }
}
let locks = 0

const SELECT = 'select $1::text as x'

/** A transaction that has sent one statement, and goes on for ever. */
async function endless(driver: Driver<postgres.TransactionSql, unknown>) {
  let begun: postgres.TransactionSql | undefined
  const ended = driver.transaction(async (tx) => {
    await driver.query(SELECT, ['first'], tx)
    begun = tx
    return new Promise<never>(() => {})
  })
  await waitUntil(() => begun !== undefined)
  return { tx: begun!, ended }
}
const SILENT = { code: 'CONNECTION_SILENT' }

test('a transaction that was given up before its connection was open never runs', async () => {
  const { proxy, sql } = await open(2)
  const driver = fromPostgres(sql)
  proxy.pause()
  let calls = 0
  const givenUp = driver.transaction(() => Promise.resolve((calls += 1)), { limitMs: 200 })
  await expect(givenUp).rejects.toMatchObject(SILENT)
  proxy.resume()
  // postgres.js goes on connecting, and sends the BEGIN that nobody waits for any more.
  const sent = (text: RegExp) => proxy.log.some((entry) => entry.event === 'statement' && text.test(entry.text ?? ''))
  await waitUntil(() => sent(/^begin/), { what: 'the late BEGIN' })
  await waitUntil(() => sent(/^rollback/) || calls > 0, { what: 'its end' })
  expect(calls).toBe(0)
  // As many at once as there is room for, each on a connection of its own.
  const inTransaction = () => driver.transaction((tx) => driver.query(SELECT, ['next'], tx))
  expect(await Promise.all([inTransaction(), driver.query(SELECT, ['alone'])])).toHaveLength(2)
})

test('a transaction is hung up once, and never in the place of the one that has its connection next', async () => {
  const { sql } = await open(1)
  const driver = fromPostgres(sql)
  const never = new Promise<never>(() => {})
  const reason = new Error('gone')
  let first: postgres.TransactionSql | undefined
  const hungUp = driver.transaction(async (tx) => {
    await driver.query(SELECT, ['first'], tx)
    first = tx
    await never
  })
  await waitUntil(() => first !== undefined)
  driver.hangUp!(first!, reason)
  await expect(hungUp).rejects.toBe(reason)
  const next = driver.transaction(async (tx) => {
    await driver.query(SELECT, ['second'], tx)
    driver.hangUp!(first!, reason)
    return driver.query(SELECT, ['still there'], tx)
  })
  expect(await next).toEqual([{ x: 'still there' }])
})

describe('a statement that gets no answer in time', () => {
  test('leaves a connection alone on which it waits behind a slow statement of the application', async () => {
    const { sql } = await open(1)
    const driver = fromPostgres(sql)
    const { slow, waiting, letGo } = await lock()
    // On a connection that is open already, since what opens one has it to itself.
    await sql`select 1`
    const theirs = sql.unsafe(slow).execute()
    await waiting(1)
    await expect(driver.query(SELECT, ['behind'], undefined, { limitMs: 200 })).rejects.toMatchObject(SILENT)
    letGo()
    expect(await theirs).toMatchObject([{ x: 'slow' }])
  })

  test('leaves the others’ connections alone while it waits for one, whatever is slow on them', async () => {
    const { sql } = await open(2)
    const driver = fromPostgres(sql)
    const { slow, waiting, letGo } = await lock()
    const begun: (() => void)[] = []
    const inTransaction = () =>
      sql.begin(async (tx) => {
        await new Promise<void>((resolve) => begun.push(resolve))
        return tx.unsafe(slow)
      })
    const theirs = Promise.all([inTransaction(), inTransaction()])
    await waitUntil(() => begun.length === 2)
    const late = driver.query(SELECT, ['queued'], undefined, { limitMs: 300 })
    const begin = driver.transaction((tx) => driver.query(SELECT, ['later'], tx), { limitMs: 300 })
    // After those have begun to wait.
    await new Promise(setImmediate)
    for (const go of begun) go()
    await expect(late).rejects.toMatchObject(SILENT)
    await waiting(2)
    letGo()
    expect(await theirs).toMatchObject([[{ x: 'slow' }], [{ x: 'slow' }]])
    // It has waited for its turn.
    expect(await begin).toEqual([{ x: 'later' }])
  })

  test('costs its own connection, and no other one', async () => {
    const { proxy, sql } = await open(2)
    const driver = fromPostgres(sql)
    const { slow, waiting, letGo } = await lock()
    const alone = (value: string, limitMs = 60_000) => driver.query(SELECT, [value], undefined, { limitMs })
    // Both connections know the statement.
    await Promise.all([alone('a'), alone('b')])
    await Promise.all([alone('a'), alone('b')])
    const held = proxy.intercept({ at: 'during', statement: /as x/ })
    // Looked at from the start: it may be late before the rest is there.
    const late = expect(alone('held', 300)).rejects.toMatchObject(SILENT)
    const theirs = sql.unsafe(slow).execute()
    const { connection } = await held
    await waiting(1)
    await late
    await waitUntil(() => !proxy.connections.includes(connection), { what: 'its connection to be closed' })
    letGo()
    expect(await theirs).toMatchObject([{ x: 'slow' }])
    expect(await alone('next')).toEqual([{ x: 'next' }])
  })

  test('leaves its own connection alone if others there were answered meanwhile, whoever else is slow', async () => {
    const { proxy, sql } = await open(2)
    const driver = fromPostgres(sql)
    const [before, own, other] = [await lock(), await lock(), await lock()]
    const run = (text: string) => driver.query(text, [], undefined, { limitMs: 60_000 })
    // Both connections are open, and the driver knows them.
    await Promise.all([run('select 1'), run('select 1')])
    const one = sql.unsafe(before.slow).execute()
    await before.waiting(1)
    const two = sql.unsafe(other.slow).execute()
    await other.waiting(1)
    // With all connections busy, it goes behind the first of them, and what follows behind the second.
    const late = expect(driver.query(own.slow, [], undefined, { limitMs: 3_000 })).rejects.toMatchObject(SILENT)
    const behind = sql.unsafe('select 1').execute()
    before.letGo()
    await one
    await own.waiting(1)
    await late
    expect(proxy.log.filter(({ event }) => event === 'closed')).toEqual([])
    for (const { letGo } of [own, other]) letGo()
    await Promise.all([two, behind, run('select 1')])
    expect(proxy.log.filter(({ event }) => event === 'closed')).toEqual([])
  })

  test('leaves its own connection alone that it was given a moment ago, whoever else is slow', async () => {
    const { proxy, sql } = await open(2)
    const driver = fromPostgres(sql)
    const [own, other] = [await lock(), await lock()]
    const run = (text: string) => driver.query(text, [], undefined, { limitMs: 60_000 })
    // Both connections are open, and the driver knows them.
    await Promise.all([run('select 1'), run('select 1')])
    const begun: (() => void)[] = []
    const inTransaction = (text: string) =>
      sql.begin(async (tx) => {
        await new Promise<void>((resolve) => begun.push(resolve))
        return tx.unsafe(text)
      })
    const [one, two] = [inTransaction('select 1'), inTransaction(other.slow)]
    await waitUntil(() => begun.length === 2)
    const late = expect(driver.query(own.slow, [], undefined, { limitMs: 3_000 })).rejects.toMatchObject(SILENT)
    // After it has begun to wait.
    await new Promise(setImmediate)
    for (const go of begun) go()
    await one
    await own.waiting(1)
    await late
    for (const { letGo } of [own, other]) letGo()
    await Promise.all([two, run('select 1')])
    expect(proxy.log.filter(({ event }) => event === 'closed')).toEqual([])
  })

  test('costs nobody else a connection where the driver does not know its own', async () => {
    const { proxy, sql } = await open(2)
    const driver = fromPostgres(sql)
    const { slow, waiting, letGo } = await lock()
    // Both connections are open, and nothing of the driver was sent there.
    await Promise.all([sql`select 1`, sql`select 1`])
    const held = proxy.intercept({ at: 'during', statement: /as x/ })
    const alone = driver.query(SELECT, ['held'], undefined, { limitMs: 1_000 })
    const late = expect(alone).rejects.toMatchObject(SILENT)
    const theirs = sql.unsafe(slow).execute()
    await held
    await waiting(1)
    await late
    letGo()
    expect(await theirs).toMatchObject([{ x: 'slow' }])
  })

  test('costs its own connection where the driver does not know it, also if another one dies with it', async () => {
    const { proxy, sql } = await open(2, { prepare: false, fetch_types: false })
    const driver = fromPostgres(sql)
    await Promise.all([driver.query(SELECT, ['one']), driver.query(SELECT, ['other'])])
    proxy.swallow()
    const lost = () => expect(driver.query(SELECT, ['lost'], undefined, { limitMs: 300 })).rejects.toMatchObject(SILENT)
    await Promise.all([lost(), lost()])
    const next = () => driver.query(SELECT, ['next'], undefined, { limitMs: 1_000 }).catch(() => undefined)
    expect(await waitUntil(next, { timeoutMs: 20_000, what: 'an answer over a new connection' })).toEqual([
      { x: 'next' },
    ])
  })

  test('costs its own connection, whichever box on the pool has sent it', async () => {
    const { proxy, sql } = await open(1)
    fromPostgres(sql)
    const driver = fromPostgres(sql)
    await driver.query(SELECT, ['first'])
    proxy.swallow()
    await expect(driver.query(SELECT, ['lost'], undefined, { limitMs: 200 })).rejects.toMatchObject(SILENT)
    // What is sent before the socket has closed is told of the lost connection.
    const next = () => driver.query(SELECT, ['next'], undefined, { limitMs: 5_000 }).catch(() => undefined)
    expect(await waitUntil(next, { what: 'an answer over a new connection' })).toEqual([{ x: 'next' }])
  })
})

test('a transaction that is hung up costs its own connection, and no other one', async () => {
  const { proxy, sql } = await open(3)
  const driver = fromPostgres(sql)
  const { slow, waiting, letGo } = await lock()
  const reason = new Error('gone')
  const { tx: first, ended: hungUp } = await endless(driver)
  const [connection] = proxy.connections
  let hungUpAt = Infinity
  const other = driver.transaction(async (tx) => {
    await driver.query(SELECT, ['second'], tx)
    driver.hangUp!(first, reason)
    hungUpAt = performance.now()
    return driver.query(slow, [], tx)
  })
  await expect(hungUp).rejects.toBe(reason)
  await waiting(1)
  await waitUntil(() => !proxy.connections.includes(connection!) && performance.now() - hungUpAt > 100)
  letGo()
  expect(await other).toMatchObject([{ x: 'slow' }])
})

test('a transaction that is hung up costs no other connection, if its own was opened before there was a driver', async () => {
  const { sql } = await open(3)
  await sql`select 1`
  const driver = fromPostgres(sql)
  const reason = new Error('gone')
  const { tx: first, ended: hungUp } = await endless(driver)
  const other = driver.transaction(async (tx) => {
    await driver.query(SELECT, ['second'], tx)
    driver.hangUp!(first, reason)
    // Written in the next turn, and the one after it.
    await driver.query(SELECT, ['third'], tx)
    return driver.query(SELECT, ['fourth'], tx)
  })
  await expect(hungUp).rejects.toBe(reason)
  expect(await other).toEqual([{ x: 'fourth' }])
})

describe('a heartbeat', () => {
  test.for([true, false])(
    'that gets no answer costs the connection that listens alone (prepare: %s)',
    async (prepare) => {
      const { proxy, sql } = await open(2, { prepare, fetch_types: false })
      const driver = fromPostgres(sql)
      const { slow, waiting, letGo } = await lock()
      await sql`select 1`
      await driver.listen!('any', () => {})
      const held = proxy.intercept({ at: 'during', statement: /as x/ })
      const alone = driver.query(SELECT, ['held'], undefined, { limitMs: 1_000, urgent: true })
      const late = expect(alone).rejects.toMatchObject(SILENT)
      const theirs = sql.unsafe(slow).execute()
      const { connection } = await held
      await waiting(1)
      await late
      await waitUntil(() => !proxy.connections.includes(connection), { what: 'its connection to be closed' })
      letGo()
      expect(await theirs).toMatchObject([{ x: 'slow' }])
    },
  )

  test('does not wait for connections that the application holds', async () => {
    const { sql } = await open(2)
    const driver = fromPostgres(sql)
    const stop = await driver.listen!('any', () => {})
    let holding = 0
    let letGo = (): void => {}
    const gone = new Promise<void>((resolve) => (letGo = resolve))
    const theirs = Promise.all([1, 2].map(() => sql.begin(async () => ((holding += 1), gone))))
    await waitUntil(() => holding === 2)
    const options = { limitMs: 60_000, urgent: true }
    expect(await driver.query(SELECT, ['alive'], undefined, options)).toEqual([{ x: 'alive' }])
    letGo()
    await theirs
    await stop()
  })

  test('does not wait behind one that waits for a lock', async () => {
    const { sql } = await open(2)
    const driver = fromPostgres(sql)
    const { slow, waiting, letGo } = await lock()
    const stop = await driver.listen!('any', () => {})
    const options = { limitMs: 60_000, urgent: true }
    const locked = driver.query(slow, [], undefined, { ...options, waits: true })
    await waiting(1)
    expect(await driver.query(SELECT, ['alive'], undefined, options)).toEqual([{ x: 'alive' }])
    letGo()
    expect(await locked).toMatchObject([{ x: 'slow' }])
    await stop()
  })

  test('that waits for a lock does not wait for its own handler, which has the only connection', async () => {
    const { sql } = await open(1)
    const driver = fromPostgres(sql)
    const options = { limitMs: 60_000, urgent: true, waits: true }
    const beat = driver.transaction(() => driver.query(SELECT, ['alive'], undefined, options))
    expect(await beat).toEqual([{ x: 'alive' }])
  })

  test('goes over the pool where the connection that listens cannot be opened again', async () => {
    const { proxy, sql } = await open(2)
    const driver = fromPostgres(sql)
    await driver.query(SELECT, ['in the pool'])
    await driver.listen!('any', () => {})
    await proxy.refuse()
    const listening = () =>
      direct`select pid from pg_stat_activity where datname = current_database() and query like 'listen %'`
    const [session] = await listening()
    await direct`select pg_terminate_backend(${session!['pid'] as number})`
    await waitUntil(async () => (await listening()).length === 0)
    await waitUntil(() => proxy.connections.length === 1, { what: 'its connection to be closed' })
    const options = { limitMs: 60_000, urgent: true }
    expect(await driver.query(SELECT, ['alive'], undefined, options)).toEqual([{ x: 'alive' }])
  })

  test('does not wait for connections that handlers of another box on the pool hold', async () => {
    const { sql } = await open(2)
    const [one, other] = [fromPostgres(sql), fromPostgres(sql)]
    let letGo = (): void => {}
    const gone = new Promise<void>((resolve) => (letGo = resolve))
    let inside = 0
    const hold = async () => ((inside += 1), gone)
    const running = [one.transaction(hold), other.transaction(hold)]
    await waitUntil(() => inside >= 1)
    expect(await other.query(SELECT, ['x'], undefined, { limitMs: 60_000 })).toEqual([{ x: 'x' }])
    expect(inside).toBe(1)
    letGo()
    await Promise.all(running)
  })
})
