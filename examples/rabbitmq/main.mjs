/**
 * Two services and RabbitMQ between them: events leave the outbox of one for an exchange, and arrive in the inbox of the
 * other. One order is published twice, and one message has no id. Each order is billed once.
 *
 * The broker is the one at AMQP_URL if it is set, else one of its own.
 */
import { connect } from 'amqplib'
import { z } from 'zod'
import { createBox, defineMessages } from 'oncebox'
import { rabbitmq } from 'oncebox/rabbitmq'
import { openDatabase } from '../database.mjs'
import { start } from '../../tools/services/rabbitmq.mjs'

const SHOP = 'oncebox_example_rabbitmq_shop'
const BILLING = 'oncebox_example_rabbitmq_billing'
const exchange = `oncebox-example-${process.pid}`
const queue = `${exchange}-billing`

const broker = await start()
const { url } = broker
const database = await openDatabase()
for (const schema of [SHOP, BILLING]) await database.query(`drop schema if exists ${schema} cascade`)
const messages = defineMessages({ 'order.placed': z.object({ order: z.string(), cents: z.int() }) })
const shop = createBox({ db: database.driver, messages, schema: SHOP, source: 'shop' })
const billing = createBox({ db: database.driver, messages, schema: BILLING, source: 'billing' })

const invoice = `insert into ${BILLING}.invoice values ($1, $2)`
billing.consumer('invoice', {
  'order.placed': async ({ data }, { tx }) => void (await tx.query(invoice, [data.order, data.cents])),
})
billing.from(rabbitmq({ url, queue, assert: { bindings: { [exchange]: 'order.*' } } }))
shop.to(rabbitmq({ url, exchange, assert: true }))

await shop.migrate()
await billing.migrate()
await database.query(`create table ${BILLING}.invoice (order_id text, cents int)`)
await database.transaction(async (tx) => {
  await shop.send(tx, 'order.placed', { order: 'A-1', cents: 500 })
  await shop.send(tx, 'order.placed', { order: 'A-2', cents: 700 })
  await shop.send(tx, 'order.placed', { order: 'A-3', cents: 900 }, { id: 'order-3' })
})
await Promise.all([billing.start(), shop.start()])

const until = async (/** @type {() => Promise<boolean>} */ condition) => {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 50))
}
const invoices = () => database.query(`select order_id, cents from ${BILLING}.invoice order by 1`)
await until(async () => (await invoices()).length === 3)

// Somebody publishes an order once more, past the outbox, and something without an id.
const connection = await connect(url)
const channel = await connection.createConfirmChannel()
const body = Buffer.from('{"order":"A-3","cents":900}')
const attributes = { specversion: '1.0', id: 'order-3', source: 'shop', type: 'order.placed' }
const headers = Object.fromEntries(Object.entries(attributes).map(([name, value]) => [`cloudEvents_${name}`, value]))
channel.publish(exchange, 'order.placed', body, { headers, contentType: 'application/json' })
channel.publish(exchange, 'order.placed', body, { contentType: 'application/json' })
await channel.waitForConfirms()
const quarantined = async () => (await billing.admin.messages({ state: 'quarantined' })).entries
await until(async () => (await quarantined()).length > 0)

const rows = await invoices()
console.log(`invoices: ${rows.map(({ order_id, cents }) => `${order_id} ${cents}`).join(', ')}`)
for (const { reason } of await quarantined()) console.log(`in quarantine: ${reason}`)

await shop.stop()
await billing.stop()
await channel.deleteQueue(queue)
await channel.deleteExchange(exchange)
await connection.close()
await database.close()
await broker.stop()
