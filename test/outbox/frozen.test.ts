/** A relay that stands still for longer than its lease, between its claim and its call of `publish`. */
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
