/**
 * Shards whose relay lives are given back as soon as the database answers: left to their lease, their events would wait for it
 * after every restart of the database.
 */
import pg from 'pg'
import { fromPg } from 'oncebox/pg'
import { expect, onTestFinished, test } from 'vitest'
import { bindTo } from '../../src/postgres/database.js'
import { CLAIM_SHARDS, READ_SHARDS } from '../../src/postgres/sql/shards.js'
import { startProxy, type PostgresProxy } from '../support/proxy.js'
import { waitUntil } from '../support/wait.js'
import { recordingSink, useServer } from './fixture.js'

const server = useServer('lost_shards')
/** Nobody waits that long: whatever is published before was given back. */
const LEASE_MS = 600_000

function exactly(text: string): RegExp {
  return new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
}

async function relayBehind(proxy: PostgresProxy) {
  const pool = new pg.Pool({ connectionString: proxy.url, max: 5 })
  pool.on('error', () => {})
  const failures: Error[] = []
  const hooks = {
    error: (error: Error, where: { sink?: unknown }) => void (where.sink && failures.push(error)),
  }
  const box = await server.open({ db: fromPg(pool), hooks })
  onTestFinished(async () => {
    await box.stop({ timeoutMs: 5_000 })
    await pool.end()
  })
  const sink = box.to(recordingSink({ name: 's' }), { leaseMs: LEASE_MS })
  return { box, sink, failures }
}

test('what CLAIM_SHARDS leased is given back if its answer is lost', async () => {
  await using proxy = await startProxy(server.url)
  const { box, sink } = await relayBehind(proxy)
  await server.send(box, { id: 'a' }, { id: 'b' })
  const asked = () => proxy.intercept({ at: 'after', statement: exactly(bindTo(box.schema)(CLAIM_SHARDS)) })
  let answer = asked()
  await box.start()
  // The first ones find nothing: the events have no sink yet.
  while ((await answer) && !(await isLeased(box.schema))) {
    const next = asked()
    ;(await answer).release()
    answer = next
  }
  ;(await answer).cut()
  await waitUntil(() => sink.ids.length === 2, { timeoutMs: 15_000, what: 'both to be published' })
})

async function isLeased(schema: string): Promise<boolean> {
  return (await server.sql(schema, 'select 1 from ob.shard where token is not null')).length > 0
}

test('what a relay holds when the database goes away is given back when the database is there again', async () => {
  await using proxy = await startProxy(server.url)
  const { box, sink, failures } = await relayBehind(proxy)
  await server.send(box, { id: 'a' }, { id: 'b' })
  const reading = proxy.intercept({ at: 'before', statement: exactly(bindTo(box.schema)(READ_SHARDS)) })
  await box.start()
  await reading
  await proxy.refuse()
  proxy.cutAll()
  // Told once the relay has tried to give back what it held.
  await waitUntil(() => failures.length > 0, { what: 'the outage to be noticed' })
  await proxy.accept()
  await waitUntil(() => sink.ids.length === 2, { timeoutMs: 15_000, what: 'both to be published' })
  expect(sink.ids.sort()).toEqual(['a', 'b'])
})
