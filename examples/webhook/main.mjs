/**
 * Two services and HTTP between them: events leave the outbox of one as signed webhooks, and arrive in the inbox of the
 * other. Answers get lost, so deliveries are repeated; a stranger tries as well. Each order is billed once.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { z } from 'zod'
import { createBox, defineMessages } from 'oncebox'
import { toNodeListener, webhook } from 'oncebox/webhook'
import { openDatabase } from '../database.mjs'

const SHOP = 'oncebox_example_webhook_shop'
const BILLING = 'oncebox_example_webhook_billing'
const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'

const database = await openDatabase()
for (const schema of [SHOP, BILLING]) await database.query(`drop schema if exists ${schema} cascade`)
const messages = defineMessages({ 'order.placed': z.object({ order: z.string(), cents: z.int() }) })
const shop = createBox({ db: database.driver, messages, schema: SHOP, source: 'shop' })
const billing = createBox({ db: database.driver, messages, schema: BILLING, source: 'billing' })

billing.consumer(
  'invoice',
  {
    'order.placed': async ({ data }, { tx }) => {
      await tx.query(`insert into ${BILLING}.invoice values ($1, $2)`, [data.order, data.cents])
    },
  },
  { mode: 'inline' },
)
const hook = billing.from(webhook({ scheme: 'standard', secret, source: 'shop' }), { types: ['order.placed'] })

// Every other answer is lost on its way, so the sender has to try again.
let deliveries = 0
const server = createServer((request, response) => {
  if (++deliveries % 2 === 1) response.end = () => response.destroy()
  toNodeListener(hook)(request, response)
}).listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
const url = `http://127.0.0.1:${port}/`

shop.to(webhook({ url, secret, concurrency: 1 }), { retry: { baseMs: 10, maxMs: 10 } })
await shop.migrate()
await billing.migrate()
await database.query(`create table ${BILLING}.invoice (order_id text, cents int)`)

await database.transaction(async (tx) => {
  for (const [order, cents] of /** @type {const} */ ([
    ['A-1', 500],
    ['A-2', 700],
    ['A-3', 900],
  ])) {
    await shop.send(tx, 'order.placed', { order, cents }, { key: 'A' })
  }
})

const waiting = async () => {
  const { outbox } = await shop.admin.status()
  return Object.values(outbox).some(({ pending, processing }) => pending + processing > 0)
}
// Without an answer the receiver seems to be down, and `drain` says so; a box that is started would wait and try again.
while (await waiting()) await shop.drain().catch(() => undefined)
console.log(`orders sent: 3, deliveries: ${deliveries}`)

deliveries = 1
const forged = await fetch(url, {
  method: 'POST',
  headers: {
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(Math.floor(Date.now() / 1000)),
    'webhook-signature': 'v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc=',
  },
  body: '{"type":"order.placed","order":"A-4","cents":1}',
})
console.log(`a stranger: ${forged.status} ${await forged.text()}`)

const invoices = await database.query(`select order_id, cents from ${BILLING}.invoice order by 1`)
console.log(`invoices: ${invoices.map(({ order_id, cents }) => `${order_id} ${cents}`).join(', ')}`)

server.closeAllConnections()
server.close()
await shop.stop()
await database.close()
