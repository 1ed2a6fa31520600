/**
 * The relay alone: how fast it empties an outbox whose backlog is on one key, on 8, on 1 000, or on none, and how long an
 * event of another key takes when the head of a long backlog is refused.
 *
 *   npm run bench:relay [-- --events 100000 --held 200000]
 */
import { parseArgs } from 'node:util'
import pg from 'pg'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { startServer } from './server.mjs'

const { values } = parseArgs({
  options: { events: { type: 'string', default: '100000' }, held: { type: 'string', default: '200000' } },
})
const SILENT = { debug() {}, info() {}, warn() {}, error() {} }
const PROBES = 40

const server = await startServer()
const pool = new pg.Pool({ connectionString: server.url, max: 10 })
pool.on('error', () => {})
let schemas = 0

async function openBox(sink, options) {
  const box = createBox({ db: fromPg(pool), schema: `relay_${++schemas}`, source: 'bench', logger: SILENT })
  box.to({ name: 'bench', close: async () => {}, ...sink }, options)
  await box.migrate()
  return box
}

async function fill(box, count, keyOf) {
  const client = await pool.connect()
  try {
    await client.query('begin')
    for (let at = 0; at < count; at += 5_000) {
      const size = Math.min(5_000, count - at)
      const events = Array.from({ length: size }, (_, i) => ({ type: 'event', data: at + i, key: keyOf(at + i) }))
      await box.sendMany(client, events)
    }
    await client.query('commit')
  } finally {
    client.release()
  }
}

async function rate(keys, count) {
  let published = 0
  let done = () => {}
  const all = new Promise((resolve) => (done = resolve))
  const box = await openBox({
    async publish(batch) {
      published += batch.length
      if (published >= count) done()
      return batch.map(() => undefined)
    },
  })
  await fill(box, count, (at) => (keys === 0 ? undefined : `k${at % keys}`))
  const started = performance.now()
  await box.start()
  await all
  const seconds = (performance.now() - started) / 1_000
  await box.stop()
  return Math.round(count / seconds)
}

async function latencyBehindRefusedHead(backlog) {
  const arrived = new Map()
  const box = await openBox(
    {
      async publish(batch) {
        return batch.map((message) => {
          if (message.key === 'refused') return { error: new Error('refused'), retry: true }
          arrived.get(message.id)?.()
          return undefined
        })
      },
    },
    { retry: { attempts: 1_000, baseMs: 3_000, maxMs: 3_000, jitter: 'none' } },
  )
  await fill(box, backlog, () => 'refused')
  await box.start()
  const took = []
  for (let at = 0; at < PROBES; at++) {
    const id = `probe-${at}`
    const arrival = new Promise((resolve) => arrived.set(id, resolve))
    const client = await pool.connect()
    const started = performance.now()
    await client.query('begin')
    await box.send(client, 'event', null, { id, key: `other-${at}` })
    await client.query('commit')
    client.release()
    await arrival
    took.push(performance.now() - started)
  }
  await box.stop()
  took.sort((a, b) => a - b)
  return { p50: took[Math.floor(PROBES / 2)], max: took.at(-1) }
}

try {
  await rate(1_000, 20_000) // The first run compiles and plans.
  for (const keys of [1, 8, 1_000, 0]) {
    const perSecond = await rate(keys, Number(values.events))
    console.log(`${keys === 0 ? 'no' : keys} key(s): ${perSecond} events/s`)
  }
  const { p50, max } = await latencyBehindRefusedHead(Number(values.held))
  console.log(
    `behind a refused head with ${values.held} events: p50 ${p50.toFixed(0)} ms, longest ${max.toFixed(0)} ms`,
  )
} finally {
  await pool.end()
  await server.stop()
}
