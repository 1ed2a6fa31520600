/**
 * Two services and a FIFO queue of SQS between them. The queue delivers again whatever was not deleted in time, and one
 * parcel cannot be packed at first; each order is packed once, and those of a customer in their order.
 *
 * It starts fauxqs, an emulator; or set SQS_ENDPOINT to another one.
 */
import { CreateQueueCommand, DeleteQueueCommand, SQSClient } from '@aws-sdk/client-sqs'
import { z } from 'zod'
import { createBox, defineMessages } from 'oncebox'
import { sqs } from 'oncebox/sqs'
import { start } from '../../tools/services/sqs.mjs'
import { openDatabase } from '../database.mjs'

const SHOP = 'oncebox_example_sqs_shop'
const WAREHOUSE = 'oncebox_example_sqs_warehouse'

const service = await start()
const client = new SQSClient({
  endpoint: service.url,
  region: 'us-east-1',
  credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
})
const { QueueUrl: queueUrl = '' } = await client.send(
  new CreateQueueCommand({ QueueName: `orders-${process.pid}.fifo`, Attributes: { FifoQueue: 'true' } }),
)

const database = await openDatabase()
for (const schema of [SHOP, WAREHOUSE]) await database.query(`drop schema if exists ${schema} cascade`)
const messages = defineMessages({ 'order.placed': z.object({ order: z.string(), parcels: z.int() }) })
const shop = createBox({ db: database.driver, messages, schema: SHOP, source: 'shop' })
const warehouse = createBox({ db: database.driver, messages, schema: WAREHOUSE, source: 'warehouse' })

let failures = 0
warehouse.consumer(
  'pack',
  {
    'order.placed': async ({ data, key }, { tx }) => {
      if (data.order === 'A-2' && failures++ === 0) throw new Error('there is no box of that size')
      await tx.query(`insert into ${WAREHOUSE}.packed (customer, order_id) values ($1, $2)`, [key, data.order])
    },
  },
  { order: 'key', retry: { baseMs: 200, maxMs: 200 } },
)
warehouse.from(sqs({ client, queueUrl, waitSeconds: 1 }))
shop.to(sqs({ client, queueUrl }))

await shop.migrate()
await warehouse.migrate()
await database.query(`create table ${WAREHOUSE}.packed (n serial, customer text, order_id text)`)
await shop.start()
await warehouse.start()

await database.transaction(async (tx) => {
  for (const order of ['A-1', 'A-2', 'A-3', 'B-1', 'B-2']) {
    await shop.send(tx, 'order.placed', { order, parcels: 1 }, { key: order[0] })
  }
})

const packed = (/** @type {string} */ customer) =>
  database.query(`select order_id from ${WAREHOUSE}.packed where customer = $1 order by n`, [customer])
while ((await packed('A')).length < 3 || (await packed('B')).length < 2) {
  await new Promise((resolve) => setTimeout(resolve, 50))
}
console.log(`failed and tried again: ${failures - 1}`)
for (const customer of ['A', 'B']) {
  console.log(`customer ${customer}: ${(await packed(customer)).map(({ order_id }) => order_id).join(', ')}`)
}

await shop.stop()
await warehouse.stop()
await client.send(new DeleteQueueCommand({ QueueUrl: queueUrl }))
client.destroy()
await database.close()
await service.stop()
