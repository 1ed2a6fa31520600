import pg from 'pg'
import postgres from 'postgres'
import { describe, expect, test } from 'vitest'
import { environment } from '../support/environments.js'
import { waitUntil } from '../support/wait.js'

async function connect(config: pg.ClientConfig): Promise<pg.Client & AsyncDisposable> {
  const client = new pg.Client(config)
  client.on('error', () => {})
  await client.connect()
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.end().catch(() => {}) })
}

async function rows(url: string, text: string): Promise<Record<string, unknown>[]> {
  await using client = await connect({ connectionString: url })
  return (await client.query<Record<string, unknown>>(text)).rows
}

/** What a session of the other driver sees. */
async function rowsOfPostgresJs(connection: object, text: string): Promise<unknown[]> {
  const sql = postgres({ ...connection, max: 1, prepare: false, onnotice: () => {} })
  try {
    return [...(await sql.unsafe(text))]
  } finally {
    await sql.end()
  }
}

describe('slow-commits', () => {
  test('makes every durable commit wait', async () => {
    await using env = await environment('slow-commits', { commitMs: 20 })
    await using client = await connect(env.connection)
    await client.query('create table t (x int)')
    expect((await client.query('show fsync')).rows).toEqual([{ fsync: 'on' }])

    const began = performance.now()
    for (let n = 0; n < 10; n += 1) await client.query('insert into t values (1)')
    // A lower bound: the server sleeps, and a busy machine makes it longer.
    expect(performance.now() - began).toBeGreaterThan(150)

    const settings = await client.query(`select name, setting from pg_settings where name like 'commit%' order by 1`)
    expect(settings.rows).toEqual([
      { name: 'commit_delay', setting: '20000' },
      { name: 'commit_siblings', setting: '0' },
    ])
  })
})

describe('unix-socket', () => {
  test('is reached through its directory by both drivers, and after a restart again', async () => {
    await using env = await environment('unix-socket')
    const asked = 'select inet_server_addr() is null as local'
    expect(env.connection.host).toMatch(/^\//)
    expect(await rows(env.url, asked)).toEqual([{ local: true }])
    expect(await rowsOfPostgresJs(env.connection, asked)).toEqual([{ local: true }])

    await env.server.kill('SIGKILL')
    await expect(connect(env.connection)).rejects.toMatchObject({ syscall: 'connect' })
    await env.server.restart()
    await using client = await connect(env.connection)
    expect((await client.query(asked)).rows).toEqual([{ local: true }])
  })
})

describe('pgbouncer', () => {
  test('gives a server connection to a transaction, not to a client', async () => {
    await using env = await environment('pgbouncer', { settings: { default_pool_size: 1 } })
    await using one = await connect(env.connection)
    await using two = await connect(env.connection)
    const pid = async (client: pg.Client): Promise<unknown> =>
      (await client.query<{ pid: number }>('select pg_backend_pid() as pid')).rows[0]?.pid
    expect(await pid(one)).toBe(await pid(two))

    await one.query('begin')
    await pid(one)
    let answered = false
    const waiting = pid(two).finally(() => (answered = true))
    await rows(env.direct, 'select pg_sleep(0.1)')
    expect(answered).toBe(false)
    await one.query('commit')
    await waiting

    // What is prepared by name stays behind on a server connection that the next transaction may not get.
    await one.query('prepare mine as select 1')
    await two.query('deallocate all')
    await expect(one.query('execute mine')).rejects.toMatchObject({ code: '26000' })
    expect(await rowsOfPostgresJs(env.connection, 'select 1 as x')).toEqual([{ x: 1 }])
  })
})

describe('role', () => {
  test('begins each session with its settings, and owns its database', async () => {
    const settings = {
      default_transaction_isolation: 'serializable',
      statement_timeout: '1s',
      lock_timeout: '700ms',
      idle_in_transaction_session_timeout: '5s',
    }
    await using env = await environment('role', { settings })
    const asked = `select name, current_setting(name) as setting from pg_settings
      where name in (${Object.keys(settings)
        .map((name) => `'${name}'`)
        .join(', ')})`
    const seen = (await rows(env.url, asked)).map(({ name, setting }) => [name, setting])
    expect(Object.fromEntries(seen)).toEqual(settings)
    await rows(env.url, 'create schema mine')
    const [direct] = await rows(env.direct, 'show default_transaction_isolation')
    expect(direct).toEqual({ default_transaction_isolation: 'read committed' })
    const { connection } = env
    expect(await rowsOfPostgresJs(connection, 'show statement_timeout')).toEqual([{ statement_timeout: '1s' }])
    await env.close()
    await expect(connect(connection)).rejects.toMatchObject({ code: expect.stringMatching(/^(3D000|28P01|28000)$/) })
  })
})

describe('standby', () => {
  test('makes commits wait while it is stalled, and keeps what was confirmed when it is promoted', async () => {
    await using env = await environment('standby')
    await using client = await connect(env.connection)
    await client.query('create table t (x int)')
    expect(await rows(env.standby.url, 'select x, pg_is_in_recovery() as follows from t')).toEqual([])

    await env.stall()
    let committed = false
    const late = client.query('insert into t values (1)').finally(() => (committed = true))
    await waitUntil(async () => (await rows(env.url, SYNC_WAITERS)).length === 1, { what: 'the commit to wait' })
    expect(committed).toBe(false)
    await env.resume()
    await late
    await waitUntil(async () => (await rows(env.standby.url, 'select x from t')).length === 1)

    await env.stall()
    const lost = client.query('insert into t values (2)').catch((error: unknown) => error)
    await waitUntil(async () => (await rows(env.url, SYNC_WAITERS)).length === 1, { what: 'the commit to wait' })
    const url = await env.promote()
    expect(await lost).toBeInstanceOf(Error)
    await rows(url, 'insert into t values (3)')
    expect(await rows(url, 'select x from t where x <> 2')).toEqual([{ x: 1 }, { x: 3 }])
  })
})

const SYNC_WAITERS = `select pid from pg_stat_activity where wait_event = 'SyncRep'`

describe('black-hole', () => {
  test('swallows what exists while new connections work, and can give it back', async () => {
    await using env = await environment('black-hole')
    await using client = await connect(env.connection)
    await client.query('create table t (x int)')
    const swallowed = env.swallow()
    expect(swallowed.connections).toHaveLength(1)

    let heard = false
    const late = client.query('insert into t values (1)').finally(() => (heard = true))
    await using fresh = await connect(env.connection)
    expect((await fresh.query('select pg_sleep(0.1), x from t')).rows).toEqual([])
    expect(heard).toBe(false)
    swallowed.giveBack()
    await late
    expect((await fresh.query('select x from t')).rows).toEqual([{ x: 1 }])
  })

  test('tells neither end when nothing is given back', async () => {
    await using env = await environment('black-hole')
    const client = await connect({ ...env.connection, application_name: 'swallowed' })
    env.swallow()
    client.end().catch(() => {})
    const alive = `select pid from pg_stat_activity where application_name = 'swallowed'`
    await rows(env.url, 'select pg_sleep(0.1)')
    expect(await rows(env.direct, alive)).toHaveLength(1)
  })
})
