/** Events that are sent by a snapshot older than the sinks there are. */
import type pg from 'pg'
import { expect, test } from 'vitest'
import { waitUntil } from '../support/wait.js'
import { recordingSink, useServer, type RecordingSink } from './fixture.js'

const server = useServer('snapshots')

/** A transaction whose snapshot is of now. */
async function older(): Promise<pg.PoolClient & { over(): Promise<void> }> {
  const client = await server.pool.connect()
  await client.query('begin isolation level repeatable read')
  await client.query('select 1')
  return Object.assign(client, {
    async over() {
      await client.query('commit')
      client.release()
    },
  })
}

/** A sink `old` that nobody has attached any more. */
async function abandoned(): Promise<string> {
  const box = await server.open()
  box.to(recordingSink({ name: 'old' }))
  await box.start()
  await box.stop()
  return box.schema
}

const settled = (sink: RecordingSink, ...ids: string[]) => waitUntil(() => ids.every((id) => sink.ids.includes(id)))

test('what a snapshot from before a removal sends after it goes to the sinks there are', async () => {
  const schema = await abandoned()
  const tx = await older()
  const next = await server.open({ schema })
  const sink = next.to(recordingSink({ name: 'new' }))
  await next.start()
  await next.admin.removeSink('old')
  const sender = await server.open({ schema })
  await sender.send(tx, 'event', null, { id: 'a', key: 'k' })
  await sender.send(tx, 'event', null, { id: 'b', deliverAt: new Date(Date.now() + 50) })
  await tx.over()
  await settled(sink, 'a', 'b')
  await waitUntil(async () => (await server.sql(schema, 'select * from ob.delivery')).length === 0)
})

test('a statement that waits for an id while a sink is removed writes for the sinks there are', async () => {
  const schema = await abandoned()
  const sender = await server.open({ schema })
  const [holder, waiting] = [await server.pool.connect(), await server.pool.connect()]
  await holder.query('begin')
  await sender.send(holder, 'event', null, { id: 'taken' })
  await waiting.query('begin')
  const many = ['first', 'taken', 'last'].map((id) => ({ type: 'event', data: null, id }))
  const sent = sender.sendMany(waiting, many)
  await waitUntil(async () => {
    const blocked = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%outbox%'`
    return (await server.sql(schema, blocked)).length > 0
  })
  const next = await server.open({ schema })
  const sink = next.to(recordingSink({ name: 'new' }))
  await next.start()
  await next.admin.removeSink('old')
  await holder.query('rollback')
  await sent
  await waiting.query('commit')
  for (const client of [holder, waiting]) client.release()
  await settled(sink, 'first', 'taken', 'last')
})

test('a sink gets what is sent once it has started, by an older snapshot too', async () => {
  const one = await server.open()
  const first = one.to(recordingSink({ name: 'first' }))
  await one.start()
  const tx = await older()
  const two = await server.open({ schema: one.schema })
  const second = two.to(recordingSink({ name: 'second' }))
  await two.start()
  await one.send(tx, 'event', null, { id: 'a' })
  await tx.over()
  await settled(first, 'a')
  await settled(second, 'a')
})

test('a sink that is not registered yet gets its events from an older snapshot, and nothing is put aside', async () => {
  const one = await server.open()
  one.to(recordingSink({ name: 'first' }), { types: ['other'] as never })
  await one.start()
  const tx = await older()
  const two = await server.open({ schema: one.schema })
  two.to(recordingSink({ name: 'second' }), { types: ['another'] as never })
  await two.start()
  const late = await server.open({ schema: one.schema })
  const sink = late.to(recordingSink({ name: 'late' }))
  await late.send(tx, 'event', null, { id: 'a' })
  await tx.over()
  const sinks = () => server.sql(one.schema, 'select sink, waiting from ob.delivery order by sink')
  await waitUntil(async () => (await sinks()).length === 1)
  expect(await sinks()).toEqual([{ sink: 'late', waiting: false }])
  await late.start()
  await settled(sink, 'a')
})

test('after a change of the sinks that was rolled back, events find their sinks, and senders know them again', async () => {
  const box = await server.open()
  const sink = box.to(recordingSink({ name: 's' }))
  await box.start()
  await server.sql(box.schema, `select nextval('ob.sink_version')`)
  await server.send(box, { id: 'a', key: 'k' }, { id: 'b', key: 'k' })
  await settled(sink, 'a', 'b')
  expect(sink.ids).toEqual(['a', 'b'])
  await box.stop()
  await box.start()
  const [row] = await server.sql(
    box.schema,
    `select version = pg_sequence_last_value('ob.sink_version') same from ob.sink_set`,
  )
  expect(row).toEqual({ same: true })
})
