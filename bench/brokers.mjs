/**
 * From a broker into a table: a box inline and stored, beside what one would write by hand, on the same broker and
 * server, in the same run.
 *
 *   naive     one insert for each message, then its acknowledgement: twice after a crash
 *   dedup     the same in a transaction with a row for its id: once, and no retries, quarantine or order
 *
 *   npm run bench:brokers [-- --messages 10000 --repeats 3 --keys 100 --only kafka]
 */
import { parseArgs } from 'node:util'
import { connect } from 'amqplib'
import kafkajs from 'kafkajs'
import pg from 'pg'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import * as kafka from '../test/brokers/kafka/adapter.mjs'
import * as rabbitmq from '../test/brokers/rabbitmq/adapter.mjs'
import { startServer } from './server.mjs'

const { values } = parseArgs({
  options: {
    messages: { type: 'string', default: '10000' },
    repeats: { type: 'string', default: '3' },
    keys: { type: 'string', default: '0' },
    only: { type: 'string' },
  },
})
const MESSAGES = Number(values.messages)
const KEYS = Number(values.keys)
const SILENT = { debug() {}, info() {}, warn() {}, error() {} }
const CONNECTIONS = 10
const EFFECT = { name: 'effect', text: 'insert into effect (id) values ($1)' }
const SEEN = { name: 'seen', text: 'insert into seen (id) values ($1) on conflict do nothing' }

const server = await startServer()
const pool = new pg.Pool({ connectionString: server.url, max: CONNECTIONS })
pool.on('error', () => {})
await pool.query('create table effect (id text); create table seen (id text primary key)')

const byHand = {
  naive: (id) => pool.query({ ...EFFECT, values: [id] }),
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
  },
}

/** Consumers as they are in each client's own manual. Each answers how to stop it. */
const consumers = {
  async rabbitmq({ url, queue }, handle) {
    const connection = await connect(url)
    const channel = await connection.createChannel()
    await channel.prefetch(256)
    await channel.consume(queue, async (message) => {
      await handle(message.properties.messageId)
      channel.ack(message)
    })
    return () => connection.close()
  },
  async kafka({ url, topic, groupId, consumer: settings }, handle) {
    const client = new kafkajs.Kafka({ brokers: url.split(','), logLevel: kafkajs.logLevel.NOTHING })
    const consumer = client.consumer({ ...settings, groupId })
    await consumer.connect()
    await consumer.subscribe({ topics: [topic], fromBeginning: true })
    await consumer.run({
      partitionsConsumedConcurrently: 4,
      eachMessage: ({ message }) => handle(message.headers.ce_id.toString()),
    })
    return () => consumer.disconnect()
  },
}

let schemas = 0
async function startBox(adapter, settings, mode) {
  const box = createBox({ db: fromPg(pool), schema: `brokers_${++schemas}`, logger: SILENT })
  const handler = ({ id }, { tx }) => tx.query({ ...EFFECT, values: [id] })
  box.consumer('effects', { 'order.placed': handler }, { mode })
  box.from(adapter.source(settings))
  await box.migrate()
  await box.start()
  return () => box.stop()
}

function eventsOf({ capabilities: { prefix } }) {
  return Array.from({ length: MESSAGES }, (_, n) => {
    const attributes = { specversion: '1.0', id: `m-${n}`, source: 'bench', type: 'order.placed' }
    const headers = { 'content-type': 'application/json' }
    for (const [name, value] of Object.entries(attributes)) headers[`${prefix}${name}`] = value
    const message = { headers, body: JSON.stringify({ n }), id: `m-${n}` }
    return KEYS > 0 ? { ...message, key: `key-${n % KEYS}` } : message
  })
}

/** Messages a second, from the first effect that is seen to the last. */
async function rate(begin) {
  await pool.query('truncate effect, seen')
  const count = async () => Number((await pool.query('select count(*) n from effect')).rows[0].n)
  const stop = await begin()
  let first
  for (;;) {
    const n = await count()
    first ??= n > 0 ? { n, at: performance.now() } : undefined
    if (n >= MESSAGES) {
      const seconds = (performance.now() - first.at) / 1_000
      await stop()
      return (n - first.n) / seconds
    }
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
}

const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)]

try {
  for (const adapter of [rabbitmq, kafka]) {
    if (values.only && values.only !== adapter.name) continue
    const service = await adapter.start()
    const rates = new Map(['naive', 'dedup', 'inline', 'stored'].map((how) => [how, []]))
    try {
      for (let repeat = 0; repeat < Number(values.repeats); repeat++) {
        for (const [how, measured] of rates) {
          const settings = await adapter.create(service.url)
          await adapter.publish(settings, eventsOf(adapter))
          const begin = () =>
            byHand[how] ? consumers[adapter.name](settings, byHand[how]) : startBox(adapter, settings, how)
          measured.push(await rate(begin))
          await adapter.remove(settings)
          process.stderr.write(`${adapter.name} ${how} ${Math.round(measured.at(-1))}/s\n`)
        }
      }
    } finally {
      await service.stop()
    }
    const naive = median(rates.get('naive'))
    const dedup = median(rates.get('dedup'))
    console.log(`\n${service.name} ${service.version}, ${MESSAGES} messages, medians of ${values.repeats}`)
    for (const [how, measured] of rates) {
      const own = median(measured)
      console.log(
        [
          how.padEnd(8),
          `${Math.round(own)}/s`.padStart(9),
          `${(own / naive).toFixed(2)} of naive`,
          `${(own / dedup).toFixed(2)} of dedup`,
        ].join('  '),
      )
    }
  }
} finally {
  await pool.end()
  await server.stop()
}
