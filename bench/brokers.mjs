/**
 * From a broker into a table: a box, beside what one would write by hand, on the same broker and server, by turns.
 *
 *   naive      one insert for each message, then its acknowledgement: twice after a crash
 *   dedup      the same in a transaction with a row for its id: once, and no retries, quarantine or order
 *   inline     a box that handles on arrival: once, with all of it
 *   together   the same, handlers of a group side by side
 *   stored     a box that stores on arrival, and handles then
 *   onward     inline, and each handler sends an event: effect, outbox, and back to the broker
 *
 *   npm run bench:brokers [-- --messages 10000 --repeats 3 --keys 100 --only kafka --way inline --json]
 *
 * `--only` and `--way` may be said several times, and `--source '{"prefetch":512,"batch":128}'` is for the source of the box. Before the repeats each way runs once, with fewer messages, to warm up. CPU
 * is that of this process and of PostgreSQL, not of the broker.
 */
import { parseArgs } from 'node:util'
import pg from 'pg'
import { createBox, defineMessages, unchecked } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import * as kafka from '../test/brokers/kafka/adapter.mjs'
import * as nats from '../test/brokers/nats/adapter.mjs'
import * as rabbitmq from '../test/brokers/rabbitmq/adapter.mjs'
import * as redis from '../test/brokers/redis/adapter.mjs'
import * as sqs from '../test/brokers/sqs/adapter.mjs'
import { consume } from './brokers/by-hand.mjs'
import { watchCpu } from './cpu.mjs'
import { describeMachine } from './machine.mjs'
import { orders } from './messages.mjs'
import { startServer } from './server.mjs'
import { median, rounded, spread } from './spread.mjs'

const ADAPTERS = [rabbitmq, kafka, nats, redis, sqs]
/** What the figures have to show, where the issue is the box and not the broker's client. */
const TARGETS = { inline: { rabbitmq: { naive: 1.3, dedup: 3 }, kafka: { naive: 1.3, dedup: 3 } } }
const WAYS = ['naive', 'dedup', 'inline', 'together', 'stored', 'onward']
const { values } = parseArgs({
  options: {
    messages: { type: 'string', default: '10000' },
    repeats: { type: 'string', default: '3' },
    keys: { type: 'string', default: '0' },
    only: { type: 'string', multiple: true, default: ADAPTERS.map(({ name }) => name) },
    way: { type: 'string', multiple: true, default: WAYS },
    source: { type: 'string', default: '{}' },
    json: { type: 'boolean', default: false },
  },
})
const MESSAGES = Number(values.messages)
const REPEATS = Number(values.repeats)
const KEYS = Number(values.keys)
const WARM_UP = 0.3
const SILENT = { debug() {}, info() {}, warn() {}, error() {} }
const CONNECTIONS = 10
const EFFECT = { name: 'effect', text: 'insert into effect (id) values ($1)' }
const SEEN = { name: 'seen', text: 'insert into seen (id) values ($1) on conflict do nothing' }
const say = (line) => process.stderr.write(`${line}\n`)

const server = await startServer()
const machine = await describeMachine(server)
const pool = new pg.Pool({ connectionString: server.url, max: CONNECTIONS, idleTimeoutMillis: 0 })
pool.on('error', () => {})
await pool.query('create table effect (id text); create table seen (id text primary key)')

/** Called for every message that is through. */
let through = () => undefined

const byHand = {
  async naive(id) {
    await pool.query({ ...EFFECT, values: [id] })
    through()
  },
  async dedup(id) {
    const client = await pool.connect()
    try {
      await client.query('begin')
      const { rowCount } = await client.query({ ...SEEN, values: [id] })
      if (rowCount > 0) await client.query({ ...EFFECT, values: [id] })
      await client.query('commit')
    } finally {
      client.release()
    }
    through()
  },
}

let schemas = 0
async function startBox(adapter, settings, way) {
  const messages = defineMessages({ 'order.placed': unchecked(), 'order.taken': unchecked() })
  const schema = `brokers_${++schemas}`
  const box = createBox({ db: fromPg(pool), messages, schema, source: 'bench', logger: SILENT })
  const insert = async ({ id }, { tx }) => {
    await tx.query({ ...EFFECT, values: [id] })
    through()
  }
  const insertAndSend = async ({ id, data, key }, { tx, send }) => {
    await tx.query({ ...EFFECT, values: [id] })
    await send('order.taken', { orderId: data.orderId }, { key })
  }
  const mode = way === 'stored' ? 'stored' : 'inline'
  const options = { mode, ...(way === 'together' && { group: { together: true } }) }
  box.consumer('effects', { 'order.placed': way === 'onward' ? insertAndSend : insert }, options)
  box.from(adapter.source(settings, JSON.parse(values.source)))
  const out = way === 'onward' ? await adapter.create(settings.url) : undefined
  if (out) box.to(counted(adapter.sink(out, { name: 'onward' })))
  await box.migrate()
  await box.start()
  return async () => {
    await box.stop()
    await pool.query(`drop schema ${schema} cascade`)
    if (out) await adapter.remove(out)
  }
}

/** A sink that says what the broker took. */
function counted(sink) {
  const publish = sink.publish.bind(sink)
  return Object.assign(sink, {
    async publish(batch, ...more) {
      const answers = await publish(batch, ...more)
      for (const answer of answers) if (answer == null) through()
      return answers
    },
  })
}

function eventsOf({ capabilities: { prefix } }, count) {
  return orders(count, { bytes: 200 }).map(({ data }, n) => {
    const attributes = { specversion: '1.0', id: `m-${n}`, source: 'bench', type: 'order.placed' }
    const headers = { 'content-type': 'application/json' }
    for (const [name, value] of Object.entries(attributes)) headers[`${prefix}${name}`] = value
    const message = { headers, body: JSON.stringify(data), id: `m-${n}` }
    return KEYS > 0 ? { ...message, key: `key-${n % KEYS}` } : message
  })
}

/**
 * From when a tenth of the messages is through to the last one, whose effect is committed: what a source reads first may have been
 * read before, for all that Kafka says, and runs one by one.
 */
async function measure(count, begin) {
  await pool.query('truncate effect, seen')
  let seen = 0
  const skipped = Math.ceil(count / 10)
  let first
  const all = new Promise((resolve) => {
    through = () => {
      if (++seen === skipped) first = { at: performance.now(), cpu: watchCpu(server.pid) }
      if (seen >= count) resolve()
    }
  })
  const stop = await begin()
  await all
  const effects = async () => Number((await pool.query('select count(*) n from effect')).rows[0].n)
  let n = await effects()
  for (; n < count; n = await effects()) await new Promise((resolve) => setTimeout(resolve, 1))
  const rate = ((count - skipped) * 1_000) / (performance.now() - first.at)
  const cpu = first.cpu(count - skipped)
  await stop()
  return { rate, ...cpu }
}

async function measureBroker(adapter) {
  const service = await adapter.start()
  const sides = Object.fromEntries(values.way.map((way) => [way, []]))
  try {
    for (let repeat = 0; repeat <= REPEATS; repeat++) {
      const count = repeat === 0 ? Math.ceil(MESSAGES * WARM_UP) : MESSAGES
      for (const way of values.way) {
        const settings = await adapter.create(service.url)
        await adapter.publish(settings, eventsOf(adapter, count))
        const sample = await measure(count, () =>
          byHand[way] ? consume[adapter.name](settings, byHand[way]) : startBox(adapter, settings, way),
        )
        await adapter.remove(settings)
        if (repeat > 0) sides[way].push(sample)
        say(`${adapter.name} ${repeat}/${REPEATS} ${way}: ${rounded(sample.rate)}/s`)
      }
    }
  } finally {
    await service.stop()
  }
  const ways = Object.fromEntries(Object.entries(sides).map(([way, samples]) => [way, summed(samples)]))
  return { broker: service.name, version: service.version, ways, ratios: ratiosOf(adapter.name, ways) }
}

function summed(samples) {
  const of = (figure) => samples.map((sample) => sample[figure])
  const cpu = { node: rounded(median(of('node'))), postgres: rounded(median(of('postgres'))) }
  return { ...spread(of('rate')), cpu }
}

/** Of the medians, with the least and the greatest of a repeat. */
function ratiosOf(name, ways) {
  const pairs = Object.keys(ways).flatMap((of) => ['naive', 'dedup'].map((to) => [of, to]))
  return pairs
    .filter(([of, to]) => ways[to] && !byHand[of])
    .map(([of, to]) => {
      const each = ways[of].samples.map((rate, at) => rate / ways[to].samples[at])
      const two = (value) => Number(value.toFixed(2))
      const ratio = two(ways[of].median / ways[to].median)
      const target = TARGETS[of]?.[name]?.[to]
      return { of, to, ratio, min: two(Math.min(...each)), max: two(Math.max(...each)), target }
    })
}

function print({ broker, version, ways, ratios }) {
  console.log(`\n${broker} ${version}, ${MESSAGES} messages, medians of ${REPEATS} (least–greatest)`)
  for (const [way, { median: rate, min, max, cpu }] of Object.entries(ways)) {
    const to = ratios
      .filter(({ of }) => of === way)
      .map(({ to, ratio, target }) => {
        const goal = target === undefined ? '' : ratio >= target ? ` (≥ ${target} pass)` : ` (≥ ${target} FAIL)`
        return `${ratio.toFixed(2)} of ${to}${goal}`
      })
    const spent = `${cpu.node} + ${cpu.postgres} µs`
    console.log([way.padEnd(9), `${rate}/s (${min}–${max})`.padEnd(22), spent.padEnd(14), ...to].join('  '))
  }
}

try {
  const brokers = []
  for (const adapter of ADAPTERS.filter(({ name }) => values.only.includes(name))) {
    brokers.push(await measureBroker(adapter))
    if (!values.json) print(brokers.at(-1))
  }
  const command = `npm run bench:brokers -- ${process.argv.slice(2).join(' ')}`.trim()
  const report = { command, ...machine, repeats: REPEATS, messages: MESSAGES, brokers }
  if (values.json) process.stdout.write(`${JSON.stringify(report, null, 1)}\n`)
} finally {
  await pool.end()
  await server.stop()
}
