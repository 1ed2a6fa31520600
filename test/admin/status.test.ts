import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { Reject } from 'oncebox'
import { open, range, type Opened } from './open.js'

let opened: Opened
beforeAll(async () => {
  opened = await open('admin_status')
})
afterAll(() => opened.close())

let box: ReturnType<Opened['box']>
beforeEach(() => {
  box = opened.box()
})

const none = { pending: 0, processing: 0, handled: 0, dead: 0, quarantined: 0, discarded: 0, lagMs: 0 }
const message = (n: number, more: object = {}) => ({ id: `m${n}`, type: 't', data: n, ...more })

test('a consumer without messages is there, with zeros', async () => {
  box.consumer('c', { t: () => undefined })
  await box.migrate()
  expect(await box.admin.status()).toEqual({ consumers: { c: none }, outbox: {} })
})

test('every state is counted, for each consumer by itself', async () => {
  const handler = ({ data }: { data: unknown }) => {
    if ((data as number) < 3) throw new Reject('no')
  }
  box.consumer('c', { t: handler })
  box.consumer('d', { t: () => undefined }, { order: 'key' })
  await box.migrate()
  await box.receive(range(10).map((n) => message(n, { key: `k${n % 3}` })))
  await box.receive(message(1, { data: 'other' }))
  await box.receive({ id: undefined, type: 't', data: 1 })
  await box.drain()
  await box.admin.discard({ id: 'm0' }, { reason: 'test' })
  await box.receive([message(100), message(101, { key: 'k' })])
  const { consumers } = await box.admin.status()
  expect(consumers).toMatchObject({
    '': { ...none, quarantined: 1 },
    c: { ...none, pending: 2, handled: 7, dead: 2, discarded: 1, quarantined: 1, lagMs: expect.any(Number) },
    d: { ...none, pending: 2, handled: 10, quarantined: 1, lagMs: expect.any(Number) },
  })
})

test('lag is the age of the oldest message that is due, and a delayed one is not', async () => {
  let fail = true
  const retry = { baseMs: 3_600_000, maxMs: 3_600_000, jitter: 'none' } as const
  box.consumer('c', { t: () => (fail ? Promise.reject(new Error('later')) : undefined) }, { retry })
  box.consumer('d', { t: () => undefined }, { order: 'key' })
  await box.migrate()
  await opened.setClock(box.schema, -60_000)
  await box.receive([message(1, { key: 'k' }), message(2, { key: 'k' })])
  await opened.setClock(box.schema, 0)
  const lag = async (consumer: string) => (await box.admin.status()).consumers[consumer]!.lagMs
  expect(await lag('c')).toBeGreaterThanOrEqual(59_000)
  expect(await lag('d')).toBeGreaterThanOrEqual(59_000)
  expect(await lag('d')).toBeLessThan(120_000)
  await box.drain()
  fail = false
  expect(await lag('c')).toBe(0)
  expect(await lag('d')).toBe(0)
  expect((await box.admin.status()).consumers['c']).toMatchObject({ pending: 2 })
})

test('a consumer that is only used with once is there as soon as it has a message', async () => {
  await box.migrate()
  const client = await opened.pool.connect()
  await client.query('begin')
  await box.once(client, 'by-hand', { id: 'x' }, () => 1)
  await client.query('commit')
  client.release()
  expect((await box.admin.status()).consumers).toMatchObject({ 'by-hand': { ...none, handled: 1 } })
})

test('the outbox is counted by type', async () => {
  await box.migrate()
  const client = await opened.pool.connect()
  await client.query('begin')
  for (const n of range(3)) await box.send(client, n < 2 ? 'a' : 'b', { n })
  await client.query('commit')
  client.release()
  expect((await box.admin.status()).outbox).toMatchObject({
    a: { ...none, pending: 2, lagMs: expect.any(Number) },
    b: { pending: 1 },
  })
})

test('events that no sink wants are counted and make no lag: nothing is behind with them', async () => {
  const sink = { name: 'events', publish: () => Promise.reject(new Error('down')), close: async () => {} }
  box.to(sink, { types: ['wanted'] })
  await box.migrate()
  const client = await opened.pool.connect()
  await client.query('begin')
  await box.send(client, 'wanted', 1)
  await box.send(client, 'unwanted', 1)
  await client.query('commit')
  client.release()
  await opened.sql(box.schema, `update ob.delivery set due_at = due_at - interval '60 s'`)
  const { outbox } = await box.admin.status()
  expect(outbox).toMatchObject({ wanted: { pending: 1 }, unwanted: { pending: 1, lagMs: 0 } })
  expect(outbox['wanted']!.lagMs).toBeGreaterThanOrEqual(60_000)
})

test('beyond a million messages the counts are estimated, and say so', async () => {
  box.consumer('c', { t: () => undefined })
  await box.migrate()
  await opened.sql(
    box.schema,
    `insert into ob.message (consumer, source, id, type, body)
     select 'c', '', n::text, 't', '1' from generate_series(1, 60000) n`,
  )
  expect((await box.admin.status()).consumers['c']).toEqual({ ...none, handled: 60_000 })
  await opened.sql(box.schema, 'analyze ob.message')
  // What a table of two million rows would look like to the planner.
  await opened.sql(
    box.schema,
    `update pg_class set reltuples = 2000000 where oid = '"${box.schema}".message'::regclass`,
  )
  const counts = (await box.admin.status()).consumers['c']!
  expect(counts).toMatchObject({ estimated: true, pending: 0 })
  expect(counts.handled).toBeGreaterThan(1_900_000)
})

test('a paused consumer is not run until it is resumed, by any process', async () => {
  const ran: unknown[] = []
  box.consumer('c', { t: ({ data }) => ran.push(data) })
  await box.migrate()
  const other = opened.box({ schema: box.schema })
  other.consumer('c', { t: ({ data }) => ran.push(data) })
  await box.admin.pause('c')
  await box.receive(message(1))
  await box.drain()
  await other.drain()
  expect(ran).toEqual([])
  expect((await box.admin.status()).consumers['c']).toMatchObject({ paused: true, pending: 1 })
  await other.start()
  await box.admin.resume('c')
  await expect.poll(() => ran).toEqual([1])
  await other.stop()
  expect((await box.admin.status()).consumers['c']).not.toHaveProperty('paused')
  const notes = await opened.sql(box.schema, 'select action, detail from ob.audit order by n')
  expect(notes.map((note) => [note['action'], note['detail']])).toEqual([
    ['pause', '{"consumer":"c"}'],
    ['resume', '{"consumer":"c"}'],
  ])
})

test('a consumer that nobody has declared cannot be paused', async () => {
  await box.migrate()
  for (const name of ['nobody', '', 'a\0b', undefined as never]) {
    await expect(box.admin.pause(name)).rejects.toMatchObject({ code: 'CONSUMER_UNKNOWN' })
    await expect(box.admin.resume(name)).rejects.toMatchObject({ code: 'CONSUMER_UNKNOWN' })
  }
})

test('a consumer that was declared after migrating can be paused before it starts', async () => {
  await box.migrate()
  box.consumer('late', { t: () => undefined })
  await box.admin.pause('late')
  expect((await box.admin.status()).consumers['late']).toMatchObject({ paused: true })
})
