/**
 * Two services and Kafka between them: events leave the outbox of one for a topic, and arrive in the inbox of the other.
 * A copy of an order is in the topic too. Each order is billed once, and the orders of a customer in order.
 *
 * The broker is the one at KAFKA_BROKERS if that is set, else one of its own.
 */
import { Kafka, logLevel } from 'kafkajs'
import { z } from 'zod'
import { createBox, defineMessages } from 'oncebox'
import { kafka } from 'oncebox/kafka'
import { openDatabase } from '../database.mjs'
import { start } from '../../tools/services/kafka.mjs'

const SHOP = 'oncebox_example_kafka_shop'
const BILLING = 'oncebox_example_kafka_billing'
const topic = `oncebox-example-${process.pid}`
const groupId = `${topic}-billing`

const broker = await start()
const client = new Kafka({ brokers: broker.url.split(','), logLevel: logLevel.NOTHING })
const admin = client.admin()
await admin.connect()
// The mock makes topics as they are asked for.
if (broker.kind !== 'mock') await admin.createTopics({ topics: [{ topic, numPartitions: 2 }] })

const database = await openDatabase()
for (const schema of [SHOP, BILLING]) await database.query(`drop schema if exists ${schema} cascade`)
const messages = defineMessages({ 'order.placed': z.object({ order: z.string(), cents: z.int() }) })
const shop = createBox({ db: database.driver, messages, schema: SHOP, source: 'shop' })
const billing = createBox({ db: database.driver, messages, schema: BILLING, source: 'billing' })

const invoice = `insert into ${BILLING}.invoice (order_id, cents) values ($1, $2)`
billing.consumer(
  'invoice',
  { 'order.placed': async ({ data }, { tx }) => void (await tx.query(invoice, [data.order, data.cents])) },
  { order: 'key' },
)
shop.to(kafka({ client, topic }))
billing.from(kafka({ client, groupId, topics: topic }))

await shop.migrate()
await billing.migrate()
await database.query(`create table ${BILLING}.invoice (n serial, order_id text, cents int)`)
await database.transaction(async (tx) => {
  await shop.send(tx, 'order.placed', { order: 'A-1', cents: 500 }, { key: 'A' })
  await shop.send(tx, 'order.placed', { order: 'A-2', cents: 700 }, { key: 'A' })
  await shop.send(tx, 'order.placed', { order: 'A-3', cents: 900 }, { key: 'A', id: 'order-3' })
})
await shop.drain()

// Somebody sends an order once more, past the outbox: the same event at another offset.
const producer = client.producer()
await producer.connect()
const headers = { ce_specversion: '1.0', ce_id: 'order-3', ce_source: 'shop', ce_type: 'order.placed' }
await producer.send({ topic, messages: [{ key: 'A', headers, value: '{"order":"A-3","cents":900}' }] })
await producer.disconnect()

const sumOf = (/** @type {{ offset: string }[]} */ partitions) =>
  partitions.reduce((sum, { offset }) => sum + Math.max(0, Number(offset)), 0)
const records = sumOf(await admin.fetchTopicOffsets(topic))
console.log(`orders sent: 3, records in the topic: ${records}`)

await billing.start()
const committed = async () => sumOf((await admin.fetchOffsets({ groupId, topics: [topic] }))[0]?.partitions ?? [])
const invoices = () => database.query(`select order_id, cents from ${BILLING}.invoice order by n`)
while ((await committed()) < records || (await invoices()).length < 3) {
  await new Promise((resolve) => setTimeout(resolve, 50))
}
const rows = await invoices()
console.log(
  `committed: ${await committed()}, invoices: ${rows.map(({ order_id, cents }) => `${order_id} ${cents}`).join(', ')}`,
)

await billing.stop()
await shop.stop()
await admin.disconnect()
await database.close()
await broker.stop()
