/** A relay that stands still for longer than its lease, loses a part of its shards, or its connection after it has recorded a batch. */
import { expect, test } from 'vitest'
import { fromPg } from 'oncebox/pg'
import { recordingSink, useServer } from './fixture.js'

const server = useServer('frozen')
const LEASE_MS = 300

/** A box that stands still, once, when it has read its events: not even its timers run. */
async function frozenAfterReading(meanwhile: (schema: string) => Promise<unknown>) {
  const driver = fromPg(server.pool)
  let schema = ''
  let frozen = false
  const ask = driver.query.bind(driver)
  const query: typeof driver.query = async (text, params, tx) => {
    const rows = await ask(text, params, tx)
    if (!frozen && /before < \(select/.test(text)) {
      frozen = true
      await meanwhile(schema)
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LEASE_MS + 100)
    }
    return rows
  }
  const box = await server.open({ db: Object.assign(driver, { query }) })
  schema = box.schema
  const sink = box.to(recordingSink({ name: 's' }), { leaseMs: LEASE_MS })
  await server.send(box, { id: 'a', key: 'k' })
  await box.drain()
  expect(frozen).toBe(true)
  return sink
}

test('what it has read is not published where another relay has taken over', async () => {
  const sink = await frozenAfterReading((schema) =>
    server.sql(schema, `update ob.shard set token = gen_random_uuid(), due_at = now() + interval '1 h'`),
  )
  expect(sink.calls).toEqual([])
})

test('what it has read is published where nobody has', async () => {
  const sink = await frozenAfterReading(async () => {})
  expect(sink.ids).toEqual(['a'])
})

test('an event that is dead is told of, also where another relay has taken over the rest of its batch', async () => {
  const dead: string[] = []
  const box = await server.open({ hooks: { dead: ({ message }) => void dead.push(message.id) } })
  const steal = (): Promise<unknown> =>
    server.sql(
      box.schema,
      `update ob.shard h set token = gen_random_uuid(), due_at = now() + interval '1 h'
       from ob.delivery d join ob.outbox o on o.n = d.n where h.shard = d.shard and o.id = 'theirs'`,
    )
  const refuse = () => ({ error: new Error('no'), retry: false })
  box.to(recordingSink({ name: 's', answer: refuse, fail: async () => void (await steal()) }))
  await server.send(box, { id: 'ours', key: 'a' }, { id: 'theirs', key: 'b' })
  await box.drain()
  const states = `select o.id, d.parked from ob.delivery d join ob.outbox o on o.n = d.n order by o.id`
  expect(await server.sql(box.schema, states)).toEqual([
    { id: 'ours', parked: 'dead' },
    { id: 'theirs', parked: null },
  ])
  expect(dead).toEqual(['ours'])
})

test('an event that is dead is told of, though the connection is lost as soon as that is recorded', async () => {
  const dead: string[] = []
  const driver = fromPg(server.pool)
  const ask = driver.query.bind(driver)
  let lost = false
  const query: typeof driver.query = async (text, ...rest) => {
    if (lost) throw Object.assign(new Error('the connection is lost'), { code: 'ECONNRESET' })
    const rows = await ask(text, ...rest)
    lost ||= /failed as \(\s*update/.test(text)
    return rows
  }
  const db = Object.assign(driver, { query })
  const box = await server.open({ db, hooks: { dead: ({ message }) => void dead.push(message.id) } })
  const answer = ({ id }: { id: string }) => (id === 'bad' ? { error: new Error('no'), retry: false } : undefined)
  box.to(recordingSink({ name: 's', answer }))
  // It still has the good one to publish, which makes that the business of both.
  await server.open({ schema: box.schema }).then(async (other) => {
    other.to({ name: 't', publish: () => Promise.reject(new Error('down')), close: async () => {} })
    await other.drain().catch(() => undefined)
  })
  await server.send(box, { id: 'good', key: 'k' }, { id: 'bad', key: 'k' })
  await box.drain().catch(() => undefined)
  expect(lost).toBe(true)
  expect(dead).toEqual(['bad'])
  lost = false
})
