/**
 * Calls of `receive` with one message each, at the same moment: they are stored together where that is quicker, and nobody can tell
 * by what is answered.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import {
  createBox,
  defineMessages,
  unchecked,
  type Deliver,
  type Hooks,
  type Incoming,
  type MessageMap,
  type Outcome,
} from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { createTestBox } from 'oncebox/testing'
import { scratchDatabase } from '../support/postgres.js'
import { waitUntil } from '../support/wait.js'
import { type Bench, useServer } from './fixture.js'

const server = useServer('gather')
const note = (id: string, data: unknown = {}) => ({ id, type: 'note', data })
const ids = (count: number): string[] => Array.from({ length: count }, (_, n) => `m${n}`)
const statuses = (outcomes: readonly Outcome[]): string[] => outcomes.map(({ status }) => status)

/** In how many transactions what waits was stored. */
async function transactions(box: Bench): Promise<number> {
  const [row] = await box.sql('select count(distinct xmin::text)::int n from ob.message')
  return row!['n'] as number
}

/** Holds the place of a message in the journal, as a copy of it does that runs on arrival. */
async function hold(box: Bench, id: string): Promise<pg.PoolClient> {
  const client = await server.pool.connect()
  await client.query('begin')
  await client.query(
    `insert into "${box.schema}".message (consumer, source, id, type, body) values ('a', '', $1, 'note', '{}')`,
    [id],
  )
  return client
}

async function letGo(client: pg.PoolClient): Promise<void> {
  await client.query('rollback')
  client.release()
}

describe('calls at the same moment', () => {
  test('share transactions, and each message is handled once', async () => {
    await using box = await server.open()
    const ran: string[] = []
    box.consumer('a', { note: ({ id }) => void ran.push(id) })
    const outcomes = await Promise.all(ids(200).map((id) => box.receive(note(id))))
    expect(outcomes.map(({ id, ack, status }) => [id, ack, status])).toEqual(ids(200).map((id) => [id, true, 'stored']))
    expect(await transactions(box)).toBeLessThan(20)
    await box.drain()
    expect(ran.sort()).toEqual(ids(200).sort())
  })

  test('a process that ends before it answers has stored them: their copies are duplicates', async () => {
    await using box = await server.open()
    const ran: string[] = []
    box.consumer('a', { note: ({ id }) => void ran.push(id) })
    box.crashAt('received', { times: 30 })
    const settled = await Promise.allSettled(ids(60).map((id) => box.receive(note(id))))
    const rejected = settled.flatMap((one) => (one.status === 'rejected' ? [String(one.reason)] : []))
    expect(rejected).toEqual(Array(30).fill("SimulatedCrash: simulated crash at 'received'"))
    expect(await transactions(box)).toBeLessThan(20)
    const copies = await Promise.all(ids(60).map((id) => box.receive(note(id))))
    expect(new Set(statuses(copies))).toEqual(new Set(['duplicate']))
    await box.drain()
    expect(ran.sort()).toEqual(ids(60).sort())
  })

  test('a call that comes alone has its own', async () => {
    await using box = await server.open()
    box.consumer('a', { note: () => undefined })
    for (const id of ids(5)) await box.receive(note(id))
    expect(await transactions(box)).toBe(5)
  })

  test('each is told of its own message: copies, conflicts, what nobody takes, what is no message', async () => {
    await using box = await server.open({ messages: defineMessages({ note: unchecked(), other: unchecked() }) })
    box.consumer('a', { note: () => undefined })
    await box.receive(note('known', { n: 1 }))
    const calls = [
      ...ids(10).map((id) => note(id)),
      note('known', { n: 1 }),
      note('known', { n: 2 }),
      { id: 'nobody', type: 'other', data: {} },
      { id: '', type: 'note', data: {} },
      note('twice'),
      note('twice'),
      ...ids(20)
        .slice(10)
        .map((id) => note(id)),
    ]
    const outcomes = await Promise.all(calls.map((call) => box.receive(call as never) as Promise<Outcome>))
    const told = statuses(outcomes)
    expect(told.slice(0, 10)).toEqual(new Array(10).fill('stored'))
    expect(told.slice(10, 14)).toEqual(['duplicate', 'quarantined', 'quarantined', 'quarantined'])
    expect(told.slice(14, 16).sort()).toEqual(['duplicate', 'stored'])
    expect(told.slice(16)).toEqual(new Array(10).fill('stored'))
    expect((await box.quarantine()).map(({ reason }) => reason).sort()).toEqual(['conflict', 'no-id', 'unrouted'])
  })

  test('one whose copy runs on arrival elsewhere keeps nobody but itself', async () => {
    await using box = await server.open()
    box.consumer('a', { note: () => undefined })
    await box.receive(note('before'))
    const copy = await hold(box, 'm7')
    let held: Outcome | undefined
    const calls = ids(20).map((id) => box.receive(note(id)))
    const seventh = calls[7]!.then((outcome) => (held = outcome))
    const others = calls.filter((_, at) => at !== 7)
    try {
      expect(statuses(await Promise.all(others))).toEqual(new Array(19).fill('stored'))
      expect(held).toBeUndefined()
    } finally {
      await letGo(copy)
    }
    expect(['stored', 'busy']).toContain((await seventh).status)
  })

  test('a connection that ends under them fails none of them', async () => {
    await using box = await server.open()
    const ran: string[] = []
    box.consumer('a', { note: ({ id }) => void ran.push(id) })
    await box.receive(note('before'))
    const copy = await hold(box, 'm9')
    const calls = ids(20).map((id) => box.receive(note(id)))
    const told = Promise.all(calls)
    // One of those that share a statement is behind the lock.
    const waiting = `select pid, pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query like '%split_part%'`
    await waitUntil(async () => (await box.sql(waiting)).length > 0)
    await letGo(copy)
    expect((await told).every(({ ack }) => ack)).toBe(true)
    await box.drain()
    expect(ran.sort()).toEqual(['before', ...ids(20)].sort())
  })
})

/** A source by hand: what it is given to post goes to the box. */
function byHand(name: string) {
  let deliver: Deliver = () => Promise.reject(new Error('not started'))
  return {
    name,
    push: true as const,
    start: (given: Deliver) => Promise.resolve(void (deliver = given)),
    stop: () => Promise.resolve(),
    post: async (message: Incoming): Promise<Outcome> => (await deliver([message]))[0]!,
  }
}

describe('calls that share a statement share nothing else', () => {
  /** Two that are on their way: those behind them meet. */
  const ahead = (box: Bench): Promise<Outcome>[] => ['x1', 'x2'].map((id) => box.receive(note(id)))

  test('a copy that waits for its row keeps nobody but itself', async () => {
    await using box = await server.open()
    box.consumer('a', { note: () => undefined })
    box.consumer('b', { job: () => Promise.reject(new Error('not yet')) }, { mode: 'inline' })
    const source = byHand('jobs')
    box.from(source, { types: ['job'] })
    const job = { id: 'j', type: 'job', data: {} }
    await waitUntil(async () => (await source.post(job)).status === 'failed')
    const holder = await server.pool.connect()
    await holder.query('begin')
    await holder.query(`select from "${box.schema}".work where id = 'j' for update`)
    const [row] = await box.sql(`select source from ob.message where id = 'j'`)
    let copied = false
    try {
      const first = ahead(box)
      const copy = box.receive({ ...job, source: row!['source'] as string }).then((outcome) => {
        copied = true
        return outcome
      })
      const others = await Promise.all([...first, ...ids(10).map((id) => box.receive(note(id)))])
      expect(statuses(others)).toEqual(new Array(12).fill('stored'))
      expect(copied).toBe(false)
      await holder.query('rollback')
      expect((await copy).ack).toBe(true)
    } finally {
      holder.release()
    }
  })

  test('a quarantine that is full is full for its own source alone', async () => {
    await using box = await server.open()
    box.consumer('a', { note: () => undefined })
    const [full, other] = [byHand('full'), byHand('other')]
    box.from(full, { types: ['note', 'strange'], quarantine: { maxRows: 1 } })
    box.from(other, { types: ['note', 'strange'] })
    await waitUntil(async () => (await full.post(note('k'))).ack)
    expect((await full.post(note('k', { n: 2 }))).status).toBe('quarantined')
    const outcomes = await Promise.all([
      ...ahead(box),
      other.post({ id: 's', type: 'strange', data: {} }),
      ...ids(5).map((id) => full.post({ id, type: 'strange', data: {} })),
      full.post(note('k', { n: 3 })),
      ...ids(10)
        .slice(5)
        .map((id) => other.post(note(id))),
    ])
    expect(statuses(outcomes)).toEqual([
      ...['stored', 'stored', 'quarantined'],
      ...new Array<string>(6).fill('busy'),
      ...new Array<string>(5).fill('stored'),
    ])
    const rows = await box.sql(`select messages::int from ob.quarantine_account where via = 'full'`)
    expect(rows).toEqual([{ messages: 1 }])
  })

  test('each goes on in the context of its own call', async () => {
    const context = new AsyncLocalStorage<string>()
    const told: [id: string, of: string | undefined][] = []
    const hooks: Hooks<MessageMap> = { quarantined: ({ message: { id } }) => told.push([id, context.getStore()]) }
    await using box = await server.open({ hooks })
    box.consumer('a', { note: () => undefined })
    const calls = ids(8).map((id) => context.run(id, () => box.receive({ id, type: 'strange', data: {} })))
    await Promise.all(calls)
    expect(told.map(([id]) => id).sort()).toEqual(ids(8))
    expect(told.filter(([id, of]) => id !== of)).toEqual([])
  })

  test('one message waits for a table that is locked, as a batch does', async () => {
    await using box = await server.open()
    box.consumer('a', { note: () => undefined })
    const holder = await server.pool.connect()
    await holder.query('begin')
    await holder.query(`lock table "${box.schema}".message in share mode`)
    const received = box.receive(note('1'))
    try {
      const waiting = `select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like '%split_part%'`
      await waitUntil(async () => (await box.sql(waiting)).length > 0)
    } finally {
      await letGo(holder)
    }
    expect((await received).status).toBe('stored')
  })
})

test('statements that do not come back keep nobody who comes after them', async () => {
  const driver = fromPg(server.pool)
  let answer = (): void => undefined
  const answered = new Promise<void>((resolve) => (answer = resolve))
  const first: string[] = []
  const ask = driver.query.bind(driver)
  const stuck = Object.assign(driver, {
    query: async (...[text, ...rest]: Parameters<typeof ask>) => {
      if (text.startsWith('select') && text.includes('receive_one') && first.push(text) <= 2) await answered
      return ask(text, ...rest)
    },
  })
  await using box = await createTestBox({ db: stuck })
  box.consumer('a', { note: () => undefined })
  const early = ids(2).map((id) => box.receive(note(id)))
  try {
    await waitUntil(() => first.length === 2)
    expect(statuses(await Promise.all(['late', 'later'].map((id) => box.receive(note(id)))))).toEqual([
      'stored',
      'stored',
    ])
  } finally {
    answer()
  }
  expect(statuses(await Promise.all(early))).toEqual(['stored', 'stored'])
})

test('a body that the database cannot hold fails its own call alone', async () => {
  const database = await scratchDatabase('gather_latin')
  const admin = new pg.Client(database.url)
  await admin.connect()
  const name = `latin_${process.pid}_${Date.now()}`
  await admin.query(`create database ${name} encoding 'LATIN1' lc_collate 'C' lc_ctype 'C' template template0`)
  const url = new URL(database.url)
  url.pathname = `/${name}`
  const pool = new pg.Pool({ connectionString: url.href, max: 5 })
  try {
    const logger = { debug() {}, info() {}, warn() {}, error() {} }
    const box = createBox({ db: fromPg(pool), logger })
    box.consumer('a', { note: () => undefined })
    await box.migrate()
    const calls = ids(20).map((id) => box.receive(note(id, id === 'm13' ? '漢' : 'é')))
    const settled = await Promise.allSettled(calls)
    expect(settled.map(({ status }) => status)).toEqual(ids(20).map((id) => (id === 'm13' ? 'rejected' : 'fulfilled')))
  } finally {
    await pool.end()
    await admin.query(`drop database ${name} with (force)`)
    await admin.end()
    await database.close()
  }
})
