/**
 * The relay alone: how fast it empties an outbox whose backlog is on one key, on 8, on 1 000, or on none, how long an
 * event of another key takes when the head of a long backlog is refused, and how fast a link moves events into another box, beside
 * that box storing as many messages.
 *
 *   npm run bench:relay [-- --events 100000 --held 200000]
 */
import { parseArgs } from 'node:util'
import pg from 'pg'
import { createBox } from 'oncebox'
import { link } from 'oncebox/link'
import { fromPg } from 'oncebox/pg'
import { watchCpu } from './cpu.mjs'
import { chunks, inFlight, orders } from './messages.mjs'
import { startServer } from './server.mjs'
import { median } from './spread.mjs'

const { values } = parseArgs({
  options: { events: { type: 'string', default: '100000' }, held: { type: 'string', default: '200000' } },
})
const SILENT = { debug() {}, info() {}, warn() {}, error() {} }
const PROBES = 40
const LINK_ROUNDS = 3

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

/** Rates of a link and of the receiving box's own front door for the same orders, in turn; the first round warms up. */
async function linkBesideStoring(count) {
  const samples = { link: [], storing: [] }
  for (let round = 0; round <= LINK_ROUNDS; round++) {
    for (const [name, measure] of [
      ['link', overLink],
      ['storing', throughTheDoor],
    ]) {
      const sample = await measure(orders(count))
      if (round > 0) samples[name].push(sample)
    }
  }
  const of = (name, figure) => median(samples[name].map((sample) => sample[figure]))
  for (const name of ['link', 'storing']) {
    const cpu = `${of(name, 'node').toFixed(1)} + ${of(name, 'postgres').toFixed(1)} µs`
    console.log(`${name}, ${count} events: ${Math.round(of(name, 'rate'))} events/s, CPU ${cpu}`)
  }
  console.log(`link to storing: ${(of('link', 'rate') / of('storing', 'rate')).toFixed(2)} (target 0.7)`)
}

function receiver() {
  const box = createBox({ db: fromPg(pool), schema: `relay_${++schemas}`, logger: SILENT })
  box.consumer('bench', { 'order.placed': async () => {} })
  return box
}

async function timed(count, work) {
  const cpu = watchCpu(server.pid)
  const started = performance.now()
  await work()
  return { rate: (count * 1_000) / (performance.now() - started), ...cpu(count) }
}

/** From the start of the relay to the last event in the other box, which only stores. */
async function overLink(events) {
  const to = receiver()
  await to.migrate()
  const box = createBox({ db: fromPg(pool), schema: `relay_${++schemas}`, source: 'bench', logger: SILENT })
  box.to(link({ to, sameDatabase: true }))
  await box.migrate()
  const client = await pool.connect()
  await client.query('begin')
  for (const part of chunks(events, 5_000))
    await box.sendMany(
      client,
      part.map(({ type, data }) => ({ type, data })),
    )
  await client.query('commit')
  client.release()
  const left = async () => (await pool.query(`select 1 from relay_${schemas}.delivery limit 1`)).rows.length > 0
  const sample = await timed(events.length, async () => {
    await box.start()
    while (await left()) await new Promise((resolve) => setTimeout(resolve, 5))
  })
  await box.stop()
  return sample
}

async function throughTheDoor(events) {
  const box = receiver()
  await box.migrate()
  return timed(events.length, () => inFlight(1, chunks(events, 1_000), (part) => box.receive(part)))
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
  await linkBesideStoring(Number(values.events))
} finally {
  await pool.end()
  await server.stop()
}
