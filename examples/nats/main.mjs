/**
 * Two services and NATS JetStream between them: events leave the outbox of one for a stream, and arrive in the inbox of
 * the other. A copy of an order is in the stream too. Each order is billed once.
 *
 * The server is the one at NATS_URL if it is set, else one of its own.
 */
import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect, headers } from '@nats-io/transport-node'
import { z } from 'zod'
import { createBox, defineMessages } from 'oncebox'
import { nats } from 'oncebox/nats'
import { openDatabase } from '../database.mjs'
import { start } from '../../tools/services/nats.mjs'

const SHOP = 'oncebox_example_nats_shop'
const BILLING = 'oncebox_example_nats_billing'
const stream = `oncebox-example-${process.pid}`

const server = await start()
const { url } = server
const database = await openDatabase()
for (const schema of [SHOP, BILLING]) await database.query(`drop schema if exists ${schema} cascade`)
const messages = defineMessages({ 'order.placed': z.object({ order: z.string(), cents: z.int() }) })
const shop = createBox({ db: database.driver, messages, schema: SHOP, source: 'shop' })
const billing = createBox({ db: database.driver, messages, schema: BILLING, source: 'billing' })

const invoice = `insert into ${BILLING}.invoice values ($1, $2)`
billing.consumer('invoice', {
  'order.placed': async ({ data }, { tx }) => void (await tx.query(invoice, [data.order, data.cents])),
})

const assert = { stream: { subjects: [`${stream}.>`] }, consumer: {} }
shop.to(nats({ url, subject: `${stream}.>`, stream, assert }))
billing.from(nats({ url, stream, consumer: 'billing', assert }))

await shop.migrate()
await billing.migrate()
await database.query(`create table ${BILLING}.invoice (order_id text, cents int)`)
await database.transaction(async (tx) => {
  await shop.send(tx, 'order.placed', { order: 'A-1', cents: 500 })
  await shop.send(tx, 'order.placed', { order: 'A-2', cents: 700 })
  await shop.send(tx, 'order.placed', { order: 'A-3', cents: 900 }, { id: 'order-3' })
})
await shop.drain()

// Somebody publishes an order once more, past the outbox and under another Nats-Msg-Id.
const connection = await connect({ servers: url })
const copy = headers()
const attributes = { specversion: '1.0', id: 'order-3', source: 'shop', type: 'order.placed' }
for (const [name, value] of Object.entries(attributes)) copy.set(`ce-${name}`, value)
await jetstream(connection).publish(`${stream}.order.placed`, '{"order":"A-3","cents":900}', { headers: copy })

const manager = await jetstreamManager(connection)
const { state } = await manager.streams.info(stream)
console.log(`orders sent: 3, messages in the stream: ${state.messages}`)

await billing.start()
const unacknowledged = async () => {
  // The consumer is made when the box has started.
  const info = await manager.consumers.info(stream, 'billing').catch(() => undefined)
  return info ? info.num_pending + info.num_ack_pending : Infinity
}
const invoices = () => database.query(`select order_id, cents from ${BILLING}.invoice order by 1`)
while ((await unacknowledged()) > 0 || (await invoices()).length < 3) {
  await new Promise((resolve) => setTimeout(resolve, 50))
}
const rows = await invoices()
console.log(`invoices: ${rows.map(({ order_id, cents }) => `${order_id} ${cents}`).join(', ')}`)

await billing.stop()
await shop.stop()
await manager.streams.delete(stream)
await connection.close()
await database.close()
await server.stop()
