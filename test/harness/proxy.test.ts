import pg from 'pg'
import postgres from 'postgres'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { scratchDatabase, type ScratchDatabase } from '../support/postgres.js'
import { startProxy, type Moment, type PostgresProxy } from '../support/proxy.js'
import { waitUntil } from '../support/wait.js'

let database: ScratchDatabase
let direct: pg.Pool
let proxy: PostgresProxy

beforeAll(async () => {
  database = await scratchDatabase('proxy')
  direct = new pg.Pool({ connectionString: database.url, max: 2 })
  await direct.query('create table effect (id text primary key)')
})
afterAll(async () => {
  await direct?.end()
  await database?.close()
})
beforeEach(async () => {
  await direct.query('truncate effect')
  proxy = await startProxy(database.url)
})
afterEach(() => proxy.close())

async function connect(options: pg.ClientConfig = {}): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: proxy.url, ...options })
  client.on('error', () => {})
  await client.connect()
  return client
}

async function effects(): Promise<string[]> {
  const { rows } = await direct.query<{ id: string }>('select id from effect order by id')
  return rows.map(({ id }) => id)
}

/** While a tested client's backend lives, its COMMIT may still be on the way to being done. */
async function backends(): Promise<number> {
  const { rows } = await direct.query<{ n: number }>(
    `select count(*)::int as n from pg_stat_activity
      where datname = current_database() and application_name = 'tested'`,
  )
  return rows[0]?.n ?? 0
}

/** Each writes one row and commits, in its own way. */
const WRITERS: Record<string, () => Promise<unknown>> = {
  'a simple query': async () => {
    const client = await connect({ application_name: 'tested' })
    await client.query('begin')
    await client.query(`insert into effect values ('x')`)
    return client.query('COMMIT')
  },
  'a prepared statement': async () => {
    const client = await connect({ application_name: 'tested' })
    await client.query('begin')
    await client.query('insert into effect values ($1)', ['x'])
    return client.query({ name: 'finish', text: 'commit' })
  },
  'a pipeline, in one packet with the statement before it': async () => {
    const client = await connect({ application_name: 'tested', pipeline: true })
    const answers = [
      client.query('begin'),
      client.query({ name: 'insert', text: 'insert into effect values ($1)', values: ['x'] }),
      client.query('commit'),
    ]
    return Promise.all(answers)
  },
  'several statements in one simple query': async () => {
    const client = await connect({ application_name: 'tested' })
    return client.query(`begin; insert into effect values ('x'); commit;`)
  },
  'postgres.js': async () => {
    const sql = postgres(proxy.url, { max: 1, connection: { application_name: 'tested' }, onnotice: () => {} })
    try {
      return await sql.begin((tx) => tx`insert into effect values (${'x'})`)
    } finally {
      await sql.end({ timeout: 0 })
    }
  },
}

describe.each(Object.entries(WRITERS))('COMMIT sent as %s', (_, write) => {
  test.each<[Moment, string[]]>([
    ['before', []],
    ['during', ['x']],
    ['after', ['x']],
  ])('cut %s it reached the server leaves %j', async (moment, expected) => {
    const cut = proxy.cutAtCommit(moment)
    await expect(write()).rejects.toThrow()
    expect((await cut).statement).toMatch(/commit;?$/i)
    await waitUntil(async () => (await backends()) === 0, { what: 'the backend to end' })
    expect(await effects()).toEqual(expected)
  })

  test.each<Moment>(['before', 'during', 'after'])(
    'held %s it reached the server, then released, succeeds',
    async (at) => {
      const written = write()
      const held = await proxy.intercept({ at })
      if (at === 'before') expect(await effects()).toEqual([])
      else await waitUntil(async () => (await effects()).length === 1, { what: 'the commit' })
      expect(held.answer).toBe(at === 'after' ? 'COMMIT' : undefined)

      held.release()
      await written
      expect(await effects()).toEqual(['x'])
    },
  )
})

test('what travels in one packet with a held COMMIT has reached the server', async () => {
  const written = WRITERS['a pipeline, in one packet with the statement before it']!()
  const held = await proxy.intercept({ at: 'before' })
  await waitUntil(() => proxy.log.some(({ event, text }) => event === 'delivered' && text === 'INSERT 0 1'))
  expect(await effects()).toEqual([])
  held.release()
  await written
})

test('a COMMIT that the server turns into a rollback says so', async () => {
  const client = await connect()
  const held = proxy.intercept({ at: 'after' })
  await client.query('begin')
  await client.query('select 1/0').catch(() => {})
  const commit = client.query('commit')
  expect((await held).answer).toBe('ROLLBACK')
  ;(await held).release()
  expect((await commit).command).toBe('ROLLBACK')
})

test('a statement that fails before it in the pipeline still ends the wait', async () => {
  const client = await connect({ pipeline: true })
  const held = proxy.intercept({ at: 'after', statement: /never run/ })
  const failed = client.query('select 1/$1::int', [0]).catch((error: unknown) => error)
  const answer = client.query('select 1 as "never run"', [])
  ;(await held).release()
  expect(await failed).toMatchObject({ code: '22012' })
  expect((await answer).rows).toHaveLength(1)
})

test('any statement can be intercepted, on one connection only', async () => {
  const [one, two] = [await connect(), await connect()]
  const [, second] = proxy.connections
  const held = proxy.intercept({ at: 'before', statement: /into effect/, connection: second! })
  await one.query(`insert into effect values ('one')`)
  const inserted = two.query(`insert into effect values ('two')`)
  expect((await held).connection).toBe(second)
  expect(await effects()).toEqual(['one'])
  ;(await held).release()
  await inserted
  expect(await effects()).toEqual(['one', 'two'])
})

test('statements and answers are logged in the order they passed', async () => {
  const client = await connect()
  await client.query('select 1')
  await client.query('select nonsense').catch(() => {})
  const passed = proxy.log.filter(({ event }) => ['statement', 'answer', 'delivered'].includes(event))
  expect(passed.map(({ event, text }) => [event, text])).toEqual([
    ['statement', 'select 1'],
    ['answer', 'SELECT 1'],
    ['delivered', 'SELECT 1'],
    ['statement', 'select nonsense'],
    ['answer', '42703'],
    ['delivered', '42703'],
  ])
})

test('cutting all ends every connection, by a reset if asked', async () => {
  const [one, two] = [await connect(), await connect()]
  const running = [one, two].map((client) => client.query('select pg_sleep(60)'))
  await waitUntil(() => proxy.log.filter(({ event }) => event === 'statement').length === 2)
  proxy.cutAll({ reset: true })
  for (const query of running) await expect(query).rejects.toMatchObject({ code: 'ECONNRESET' })
  await waitUntil(() => proxy.connections.length === 0, { what: 'the connections to end' })
})

test('refusing lets no new connection in, and keeps those that exist', async () => {
  const client = await connect()
  await proxy.refuse()
  await expect(connect()).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  expect((await client.query('select 1 as x')).rows).toEqual([{ x: 1 }])
  await proxy.accept()
  await (await connect()).end()
})

test('while paused nothing is answered, and nothing is lost', async () => {
  const client = await connect()
  proxy.pause()
  let answered = false
  const query = client.query('select 1 as x').finally(() => (answered = true))
  const late = connect().finally(() => (answered = true))
  // Another round trip to the same server, which a query that got through would have overtaken.
  await direct.query('select pg_sleep(0.1)')
  expect(answered).toBe(false)
  proxy.resume()
  expect((await query).rows).toEqual([{ x: 1 }])
  await late
})

test('large values pass unchanged', async () => {
  const client = await connect()
  const value = 'é'.repeat(3_000_000)
  const { rows } = await client.query<{ value: string }>('select $1::text as value', [value])
  expect(rows[0]?.value === value).toBe(true)
})
