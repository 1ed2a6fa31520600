/** A process that stands still, or a transaction that stays open, while sinks are registered and removed. */
import pg from 'pg'
import { test } from 'vitest'
import { fromPg } from 'oncebox/pg'
import { LOCK_SINKS } from '../../src/postgres/sql/outbox.js'
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
