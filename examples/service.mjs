import { createServer } from 'node:http'
import pg from 'pg'
import { z } from 'zod'
import { createBox, defineMessages } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { rabbitmq } from 'oncebox/rabbitmq'

const url = process.env.AMQP_URL ?? 'amqp://localhost'
const database = new pg.Pool({ connectionString: process.env.DATABASE_URL })
const messages = defineMessages({
  'order.placed': z.object({ sku: z.string(), quantity: z.int() }),
  'stock.reserved': z.object({ sku: z.string(), left: z.int() }),
})
const box = createBox({ db: fromPg(database), messages, source: 'stock' })

box.consumer('reserve-stock', {
  'order.placed': async ({ data: { sku, quantity } }, { tx, send }) => {
    const reserve = 'update stock set quantity = quantity - $2 where sku = $1 returning quantity'
    const { rows } = await tx.query(reserve, [sku, quantity])
    await send('stock.reserved', { sku, left: rows[0].quantity })
  },
})
box.from(rabbitmq({ url, queue: 'orders', assert: true }), { types: ['order.placed'] })
box.to(rabbitmq({ url, exchange: 'stock', assert: true }))

await box.migrate()
await box.start()
const server = createServer(async (_, response) => {
  const health = await box.health()
  response.writeHead(health.ok ? 200 : 503).end(JSON.stringify(health))
}).listen(process.env.PORT ?? 3000)
process.once('SIGTERM', async () => {
  server.close()
  await box.stop()
  await database.end()
})
