/** A process that stands still, or a transaction that stays open, while sinks are registered and removed. */
import pg from 'pg'
import { expect, test } from 'vitest'
import { fromPg } from 'oncebox/pg'
import { LOCK_SINKS } from '../../src/postgres/sql/sinks.js'
import { startProxy } from '../support/proxy.js'
import { waitUntil } from '../support/wait.js'
import { recordingSink, useServer } from './fixture.js'

const server = useServer('standstill')

/** Locks rows until it is told to let go. */
async function hold(schema: string, text: string) {
  const client = await server.pool.connect()
  await client.query('begin')
  await client.query(text.replaceAll('ob.', `"${schema}".`))
  return async (): Promise<void> => {
    await client.query('commit')
    client.release()
  }
}

test('a process that is frozen while it registers its sinks holds up no other', async () => {
  await using proxy = await startProxy(server.url)
  const pool = new pg.Pool({ connectionString: proxy.url, max: 5 })
  pool.on('error', () => {})
  const box = await server.open()
  const held = proxy.intercept({ at: 'after', statement: /sink_set|register_sinks/ })
  const frozen = await server.open({ schema: box.schema, db: fromPg(pool) })
  frozen.to(recordingSink({ name: 's' }))
  const started = frozen.start()
  const statement = await held
  try {
    const sink = box.to(recordingSink({ name: 's' }))
    await box.start()
    await server.send(box, { id: 'a' })
    await waitUntil(() => sink.ids.length === 1)
  } finally {
    statement.release()
    await started
    await frozen.stop()
    await pool.end()
  }
})

test('while the set of sinks is locked, what has a sink is published', async () => {
  const box = await server.open()
  const sink = box.to(recordingSink({ name: 's' }), { types: ['x'] as never })
  await box.start()
  await waitUntil(async () => (await server.sql(box.schema, 'select 1 from ob.catch_up')).length === 0)
  const letGo = await hold(box.schema, 'select * from ob.sink_set for update')
  try {
    await server.send(box, { id: 'nobody', type: 'y' }, { id: 'a', type: 'x' })
    await waitUntil(() => sink.ids.length === 1)
  } finally {
    await letGo()
  }
})

test('a transaction that stands still while it has locked the set of sinks loses the lock', async () => {
  const box = await server.open()
  const client = new pg.Client({ connectionString: server.url })
  client.on('error', () => {})
  await client.connect()
  await client.query('begin')
  await client.query(LOCK_SINKS.replaceAll('ob.', `"${box.schema}".`), ['null'])
  box.to(recordingSink({ name: 's' }))
  await box.start()
  await client.end().catch(() => undefined)
})

/** A sink with a backlog, whose removal is held before it deletes any of that. */
async function removal() {
  const old = await server.open()
  old.to(recordingSink({ name: 's' }))
  await old.start()
  await old.stop()
  const proxy = await startProxy(server.url)
  const pool = new pg.Pool({ connectionString: proxy.url, max: 5 })
  pool.on('error', () => {})
  const remover = await server.open({ schema: old.schema, db: fromPg(pool) })
  await server.send(old, { id: 'backlog' })
  const held = proxy.intercept({ at: 'before', statement: /delete from \S*delivery/ })
  const removed = remover.admin.removeSink('s').catch((error: unknown) => error)
  const { release } = await held
  const next = await server.open({ schema: old.schema })
  const end = async () => {
    release()
    const answer = await removed
    await remover.stop()
    await pool.end()
    await proxy.close()
    return answer
  }
  return { next, end }
}

test('what is sent by a process that attaches a sink again while it is removed is published', async () => {
  const { next, end } = await removal()
  const sink = next.to(recordingSink({ name: 's' }))
  await server.send(next, { id: 'new' })
  expect(await end()).toBe(1)
  await next.drain()
  expect(sink.ids).toEqual(['new'])
})

test('a removal ends where a process has registered the sink again', async () => {
  const { next, end } = await removal()
  const sink = next.to(recordingSink({ name: 's' }))
  await next.start()
  await waitUntil(() => sink.ids.length === 1)
  expect(await end()).toEqual(expect.objectContaining({ code: 'SINK_IN_USE' }))
  expect(sink.ids).toEqual(['backlog'])
})

test('an event whose transaction was open while its sink was removed goes to those that want it', async () => {
  const old = await server.open()
  old.to(recordingSink({ name: 'old' }))
  await old.start()
  await old.stop()
  const late = await server.pool.connect()
  await late.query('begin')
  const sender = await server.open({ schema: old.schema })
  await sender.send(late, 'event', null, { id: 'late' })
  const next = await server.open({ schema: old.schema })
  const sink = next.to(recordingSink({ name: 'new' }))
  await next.start()
  await next.admin.removeSink('old')
  await late.query('commit')
  late.release()
  await server.sql(old.schema, `update ob.delivery set due_at = due_at - interval '1 h'`)
  expect(await next.health({ maxLagMs: 60_000 })).toMatchObject({ ok: false })
  await next.stop()
  await next.start()
  await waitUntil(() => sink.ids.length === 1)
  expect(sink.ids).toEqual(['late'])
})

test('an event that has fallen due while no relay runs counts for health', async () => {
  const box = await server.open()
  box.to(recordingSink({ name: 's' }))
  await box.start()
  await box.stop()
  await server.send(box, { id: 'a', deliverAt: new Date(Date.now() + 3_600_000) })
  expect(await box.health({ maxLagMs: 60_000 })).toMatchObject({ ok: true })
  await server.sql(box.schema, `update ob.delivery set due_at = due_at - interval '2 h'`)
  expect(await box.health({ maxLagMs: 60_000 })).toMatchObject({ ok: false })
})

test('where the answer of a completion is lost, hooks.dead is told all the same', async () => {
  await using proxy = await startProxy(server.url)
  const pool = new pg.Pool({ connectionString: proxy.url, max: 5 })
  pool.on('error', () => {})
  const dead: string[] = []
  const hooks = { dead: ({ message }: { message: { id: string } }) => void dead.push(message.id) }
  const box = await server.open({ db: fromPg(pool), hooks })
  box.to(recordingSink({ name: 's', answer: () => ({ error: new Error('never'), retry: false }) }))
  const held = proxy.intercept({ at: 'after', statement: /\) recorded|::text recorded/ })
  await server.send(box, { id: 'a' })
  const drained = box.drain()
  ;(await held).cut()
  await drained
  expect(dead).toEqual(['a'])
  await box.stop()
  await pool.end()
})

test('an event that was left behind is finished where only one of its sinks is left', async () => {
  const box = await server.open()
  box.to(recordingSink({ name: 's' }))
  await server.send(box, { id: 'a' })
  await server.sql(box.schema, 'delete from ob.delivery')
  await box.start()
  await waitUntil(async () => (await server.sql(box.schema, 'select 1 from ob.outbox')).length === 0)
})
