/** A sink that is added when events wait for it already: none is left behind, and the order of each key holds. */
import { expect, test } from 'vitest'
import type { Driver } from 'oncebox'
import { fromPg, type PgClient } from 'oncebox/pg'
import type pg from 'pg'
import { waitUntil } from '../support/wait.js'
import { recordingSink, useServer, type Event } from './fixture.js'

const server = useServer('sink_added')
type PgDriver = Driver<pg.PoolClient, PgClient>

/** A driver that counts its statements and, if told to, dies before one of them: it never answers again. */
function counted(diesBefore = Infinity): PgDriver & { readonly statements: number } {
  const real = fromPg(server.pool)
  let statements = 0
  const count = (): void => {
    if (++statements > diesBefore) throw new Error('this process is dead')
  }
  return {
    ...real,
    get statements() {
      return statements
    },
    query: async (...args) => {
      count()
      return real.query(...args)
    },
    transaction: async (work, options) => {
      count()
      return real.transaction(work, options)
    },
  }
}

/** A schema with events that the sinks there are did not want. */
async function putAside(...events: Event[]) {
  const box = await server.open()
  const other = box.to(recordingSink({ name: 'other' }), { types: ['other'] as never })
  await server.send(box, ...events)
  await box.drain()
  expect(other.ids).toEqual([])
  return box
}

const wanted = (schema: string) => server.sql(schema, `select * from ob.delivery where sink in ('', 'late')`)

test('a process that dies at any statement of its start leaves no event behind for the next one', async () => {
  for (let statement = 0, died = true; died; statement++) {
    const { schema } = await putAside({ id: 'a', key: 'k' }, { id: 'b', key: 'k' })
    const db = counted(statement + 3)
    const dying = await server.open({ schema, db }).catch(() => undefined)
    dying?.to(recordingSink({ name: 'late', fail: () => Promise.reject(new Error('dead')) }))
    await dying?.drain().catch(() => undefined)
    died = db.statements > statement + 3 && statement < 40
    const next = await server.open({ schema })
    const late = next.to(recordingSink({ name: 'late' }), { leaseMs: 100 })
    await server.sql(schema, `update ob.shard set due_at = now() - interval '1 s' where token is not null`)
    await server.send(next, { id: 'c', key: 'k' })
    await next.drain()
    expect([statement, late.ids]).toEqual([statement, ['a', 'b', 'c']])
    expect(await wanted(schema)).toEqual([])
  }
}, 60_000)

test('an event that a relay is just putting aside reaches the sink that is added meanwhile', async () => {
  const box = await server.open()
  box.to(recordingSink({ name: 'other' }), { types: ['other'] as never })
  await box.drain()
  await server.sql(
    box.schema,
    `create function ob.stall() returns trigger language plpgsql as
       'begin if new.sink = '''' and new.waiting then perform pg_advisory_xact_lock(4711); end if; return new; end';
     create trigger stall before update on ob.delivery for each row execute function ob.stall()`,
  )
  const gate = await server.pool.connect()
  await gate.query('select pg_advisory_lock(4711)')
  await server.send(box, { id: 'a', key: 'k' })
  const waiting = async (count: number) => {
    const { rows } = await server.pool.query(
      `select count(*)::int n from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
    )
    return rows[0].n >= count
  }
  const puttingAside = box.drain()
  await waitUntil(() => waiting(1))
  const next = await server.open({ schema: box.schema })
  const late = next.to(recordingSink({ name: 'late' }))
  let through = false
  const added = next.start().then(() => (through = true))
  await waitUntil(async () => through || (await waiting(2)))
  await gate.query('select pg_advisory_unlock(4711)')
  gate.release()
  await Promise.all([puttingAside, added])
  await waitUntil(() => late.ids.length > 0)
  expect(late.ids).toEqual(['a'])
})

test('of two processes that start together, neither publishes new events of a key before those put aside', async () => {
  const KEYS = Array.from({ length: 10 }, (_, at) => `k${at}`)
  const { schema } = await putAside(...KEYS.flatMap((key) => [1, 2, 3].map((n) => ({ id: `${key}-${n}`, key }))))
  const published: string[] = []
  const late = () => recordingSink({ name: 'late', answer: ({ id }) => void published.push(id) })
  const gate = await server.pool.connect()
  await gate.query('begin')
  await gate.query(`select 1 from "${schema}".delivery where sink = '' for update`)
  const first = await server.open({ schema })
  first.to(late())
  const started = first.start()
  await waitUntil(async () => (await server.sql(schema, `select 1 from ob.sink where name = 'late'`)).length === 1)
  const db = counted()
  const second = await server.open({ schema, db })
  second.to(late())
  const alsoStarted = second.start()
  await server.send(first, ...KEYS.map((key) => ({ id: `${key}-4`, key })))
  const before = db.statements
  await waitUntil(() => db.statements > before + 10 || published.length > 0)
  await gate.query('commit')
  gate.release()
  await Promise.all([started, alsoStarted])
  await waitUntil(() => published.length >= 4 * KEYS.length)
  for (const key of KEYS) {
    expect(published.filter((id) => id.startsWith(`${key}-`))).toEqual([1, 2, 3, 4].map((n) => `${key}-${n}`))
  }
})

test('start() does not wait for events put aside, and other sinks go on meanwhile', async () => {
  const { schema } = await putAside({ id: 'a', key: 'k' }, { id: 'b' })
  const gate = await server.pool.connect()
  await gate.query('begin')
  await gate.query(`select 1 from "${schema}".delivery where sink = '' for update`)
  const next = await server.open({ schema })
  const late = next.to(recordingSink({ name: 'late' }))
  const other = next.to(recordingSink({ name: 'other' }), { types: ['other'] as never })
  await next.start()
  await server.send(next, { id: 'c', type: 'other', key: 'k' })
  await waitUntil(() => other.ids.length === 1)
  expect(late.ids).toEqual([])
  await gate.query('commit')
  gate.release()
  await waitUntil(() => late.ids.length === 3)
  expect(late.published.filter(({ key }) => key === 'k').map(({ id }) => id)).toEqual(['a', 'c'])
})
