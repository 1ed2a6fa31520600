/**
 * Two services and a Redis stream between them: events leave the outbox of one for the stream, and arrive in the inbox
 * of the other. A copy of an order is in the stream too, and so is an order of a producer that knows nothing of
 * CloudEvents. Each order is billed once.
 *
 * The server is the one at REDIS_URL if it is set, else one of its own.
 */
import { createClient } from 'redis'
import { z } from 'zod'
import { createBox, defineMessages } from 'oncebox'
import { redis } from 'oncebox/redis'
import { openDatabase } from '../database.mjs'
import { start } from '../../tools/services/redis.mjs'

const SHOP = 'oncebox_example_redis_shop'
const BILLING = 'oncebox_example_redis_billing'
const stream = `oncebox-example-${process.pid}`

const server = await start()
const { url } = server
const database = await openDatabase()
for (const schema of [SHOP, BILLING]) await database.query(`drop schema if exists ${schema} cascade`)
const messages = defineMessages({ 'order.placed': z.object({ order: z.string(), cents: z.coerce.number() }) })
const shop = createBox({ db: database.driver, messages, schema: SHOP, source: 'shop' })
const billing = createBox({ db: database.driver, messages, schema: BILLING, source: 'billing' })

const invoice = `insert into ${BILLING}.invoice values ($1, $2)`
billing.consumer('invoice', {
  'order.placed': async ({ data }, { tx }) => void (await tx.query(invoice, [data.order, data.cents])),
})

shop.to(redis({ url, to: stream }))
billing.from(redis({ url, stream, group: 'billing', type: 'order.placed' }))

await shop.migrate()
await billing.migrate()
await database.query(`create table ${BILLING}.invoice (order_id text, cents int)`)
await database.transaction(async (tx) => {
  await shop.send(tx, 'order.placed', { order: 'A-1', cents: 500 })
  await shop.send(tx, 'order.placed', { order: 'A-2', cents: 700 }, { id: 'order-2' })
})
await shop.drain()

const client = createClient({ url })
await client.connect()
// Somebody publishes an order once more, past the outbox.
const attributes = { ce_specversion: '1.0', ce_id: 'order-2', ce_source: 'shop', ce_type: 'order.placed' }
await client.xAdd(stream, '*', { ...attributes, data: '{"order":"A-2","cents":700}' })
// Fields alone: they are the data, and the place in the stream is the id.
await client.xAdd(stream, '*', { order: 'A-3', cents: '900' })
console.log(`entries in the stream: ${await client.xLen(stream)}`)

await billing.start()
const acknowledged = async () => {
  const [group] = await client.xInfoGroups(stream)
  return group !== undefined && group.lag === 0 && group.pending === 0
}
const invoices = () => database.query(`select order_id, cents from ${BILLING}.invoice order by 1`)
while (!(await acknowledged()) || (await invoices()).length < 3) {
  await new Promise((resolve) => setTimeout(resolve, 50))
}
const rows = await invoices()
console.log(`invoices: ${rows.map(({ order_id, cents }) => `${order_id} ${cents}`).join(', ')}`)

await billing.stop()
await shop.stop()
await client.del(stream)
client.destroy()
await database.close()
await server.stop()
