/** Events with a `deliverAt`, and batches of events with large headers. */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { bindTo } from '../../src/postgres/database.js'
import { CLAIM_SHARDS } from '../../src/postgres/sql/shards.js'
import { recordingSink, useServer } from './fixture.js'

const server = useServer('delayed')
const DAY_MS = 86_400_000

test('an event that is to be delivered in the past is of now: its receiver does not find it too old', async () => {
  const box = await server.open()
  const sink = box.to(recordingSink({ name: 's' }))
  const before = Date.now()
  await server.send(box, { id: 'a', deliverAt: new Date(before - 31 * DAY_MS) })
  await box.drain()
  expect(sink.published[0]!.time!.getTime()).toBeGreaterThan(before - DAY_MS)
})

test('an event that is to be delivered in the past is behind from now on, not since then', async () => {
  const box = await server.open()
  box.to(recordingSink({ name: 's' }))
  await server.send(box, { id: 'a', deliverAt: new Date(Date.now() - DAY_MS) }, { id: 'b', deliverAt: new Date(0) })
  expect((await box.health()).lagMs).toBeLessThan(DAY_MS / 2)
})

test('an event that falls due is behind from then on, however long before it was sent', async () => {
  const box = await server.open()
  box.to(recordingSink({ name: 's' }))
  await server.send(box, { id: 'a', deliverAt: new Date(Date.now() + DAY_MS) })
  await server.sql(box.schema, `update ob.outbox set created_at = now() - interval '7 days'`)
  await server.sql(box.schema, `update ob.delivery set due_at = now() - interval '1 minute'`)
  const { outbox } = await box.admin.status()
  expect(outbox['event']!.lagMs).toBeGreaterThan(59_000)
  expect(outbox['event']!.lagMs).toBeLessThan(DAY_MS)
  expect((await box.health()).lagMs).toBeLessThan(DAY_MS)
})

test('an event that was discarded before its time, and is retried, waits for its time', async () => {
  const box = await server.open()
  const sink = box.to(recordingSink({ name: 's' }))
  await server.send(box, { id: 'a', deliverAt: new Date(Date.now() + DAY_MS) })
  await box.drain()
  await box.admin.discard({ box: 'outbox', state: 'pending' }, { reason: 'by mistake' })
  await box.admin.retry({ box: 'outbox', state: 'discarded' })
  await box.drain()
  expect(sink.ids).toEqual([])
  await server.sql(box.schema, `update ob.delivery set due_at = now()`)
  await box.drain()
  expect(sink.ids).toEqual(['a'])
})

test('an event that was discarded before there was a sink, and is retried before its time, finds the sink', async () => {
  const box = await server.open()
  await server.send(box, { id: 'a', deliverAt: new Date(Date.now() + DAY_MS) })
  await box.admin.discard({ box: 'outbox', state: 'pending' }, { reason: 'nobody wants it' })
  const other = await server.open({ schema: box.schema })
  const sink = other.to(recordingSink({ name: 's' }))
  await other.drain()
  await box.admin.retry({ box: 'outbox', state: 'discarded' })
  await other.drain()
  expect(await server.sql(box.schema, `select sink, waiting from ob.delivery`)).toEqual([{ sink: 's', waiting: true }])
  await server.sql(box.schema, `update ob.delivery set due_at = now()`)
  await other.drain()
  expect(sink.ids).toEqual(['a'])
})

test('events of one key that fall due at the same time are published in the order in which they were sent', async () => {
  const box = await server.open()
  const sink = box.to(recordingSink({ name: 's' }))
  const deliverAt = new Date(Date.now() + DAY_MS)
  // More than fall due while each shard is served once.
  const others = Array.from({ length: 6_000 }, (_, at) => ({ id: `other-${at}`, deliverAt }))
  await server.send(box, { id: 'first', key: 'k', deliverAt }, { id: 'second', key: 'k', deliverAt }, ...others)
  await box.drain()
  await server.sql(box.schema, `update ob.delivery set due_at = now() - interval '1 minute'`)
  // The row of the first one lies behind all others.
  await server.sql(
    box.schema,
    `with first as (delete from ob.delivery where n = (select min(n) from ob.delivery) returning *)
     insert into ob.delivery select * from first`,
  )
  await box.drain()
  expect(sink.ids.filter((id) => !id.startsWith('other'))).toEqual(['first', 'second'])
})

test('events of one key that fall due by two relays are published in the order in which they were sent', async () => {
  const box = await server.open()
  const sink = box.to(recordingSink({ name: 's' }))
  const deliverAt = new Date(Date.now() + DAY_MS)
  const others = Array.from({ length: 1_200 }, (_, at) => ({ id: `other-${at}`, deliverAt }))
  await server.send(box, { id: 'first', key: 'k', deliverAt }, ...others, { id: 'second', key: 'k', deliverAt })
  await box.drain()
  await server.sql(box.schema, `update ob.delivery set due_at = now() - interval '1 minute'`)
  // Something else keeps the shard busy.
  await server.send(box, { id: 'now', key: 'k' })
  const another = await server.pool.connect()
  try {
    await another.query('begin')
    // Its eight shards are others.
    const claim = { sink: 's', token: randomUUID(), lease: 10_000, limit: 0 }
    await another.query(bindTo(box.schema)(CLAIM_SHARDS), [JSON.stringify(claim)])
    await box.drain()
    await another.query('commit')
  } finally {
    another.release()
  }
  await box.drain()
  expect(sink.ids.filter((id) => !id.startsWith('other'))).toEqual(['now', 'first', 'second'])
  expect(sink.ids.length).toBe(1_203)
})

test('a batch is bounded by its headers too', async () => {
  const box = await server.open()
  const sink = box.to(recordingSink({ name: 's' }))
  const headers = { large: 'h'.repeat(6_000_000) }
  for (const id of ['a', 'b', 'c', 'd', 'e']) await server.send(box, { id, key: 'k', headers })
  await box.drain()
  expect(sink.ids).toEqual(['a', 'b', 'c', 'd', 'e'])
  expect(sink.calls.length).toBeGreaterThan(1)
})
