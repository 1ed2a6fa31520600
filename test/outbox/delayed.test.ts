/** Events with a `deliverAt`, and batches of events with large headers. */
import { expect, test } from 'vitest'
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

test('a batch is bounded by its headers too', async () => {
  const box = await server.open()
  const sink = box.to(recordingSink({ name: 's' }))
  const headers = { large: 'h'.repeat(6_000_000) }
  for (const id of ['a', 'b', 'c', 'd', 'e']) await server.send(box, { id, key: 'k', headers })
  await box.drain()
  expect(sink.ids).toEqual(['a', 'b', 'c', 'd', 'e'])
  expect(sink.calls.length).toBeGreaterThan(1)
})
