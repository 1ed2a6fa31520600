/**
 * Outbox, inbox and janitor, with Prisma. The shop places orders and sends events in the same transactions; a relay hands
 * them to billing, some of them twice; billing writes an invoice for each order once; what is old is deleted.
 *
 * Prisma's client in client/ was generated from schema.prisma. It needs a server: set DATABASE_URL.
 */
import { PrismaPg } from '@prisma/adapter-pg'
import pg from 'pg'
import { createBox, defineMessages } from 'oncebox'
import { fromPrisma } from 'oncebox/prisma'
import { z } from 'zod'
import { PrismaClient } from './client/client.js'

const SCHEMA = 'oncebox_example_prisma'
const connectionString = process.env['DATABASE_URL']
if (!connectionString) throw new Error('set DATABASE_URL: Prisma does not run on PGlite')

// One pool for both: oncebox lends handlers a transaction of Prisma on a connection of its own.
const pool = new pg.Pool({ connectionString })
const prisma = new PrismaClient({ adapter: new PrismaPg(pool, { schema: SCHEMA }) })
const messages = defineMessages({ 'order.placed': z.object({ orderId: z.string(), cents: z.int().positive() }) })
const box = createBox({ db: fromPrisma(prisma, pool), messages, schema: SCHEMA, source: 'shop' })

// Inbox: a message is handled once, whatever is delivered twice.
box.consumer(
  'billing',
  {
    'order.placed': async ({ data }, { tx }) => {
      await tx.invoice.create({ data: { orderId: data.orderId, cents: data.cents } })
    },
  },
  // Janitor: how long a handled message is remembered. Here, not at all.
  { retainMs: 1 },
)

// Outbox: a sink that loses its acknowledgements, so that every event is handed over twice.
let handedOver = 0
box.to(
  {
    async publish(events) {
      const copies = events.map(({ id, type, data }) => ({ id, type, data }))
      for (let copy = 1; copy <= 2; copy++) await box.receive(copies)
      handedOver += events.length * 2
      return events.map(() => undefined)
    },
    async close() {},
  },
  { name: 'billing' },
)

await pool.query(`drop schema if exists ${SCHEMA} cascade`)
await box.migrate()
await pool.query(`create table ${SCHEMA}.orders (id text primary key, customer text not null, cents int not null)`)
await pool.query(
  `create table ${SCHEMA}.invoices (order_id text primary key references ${SCHEMA}.orders (id), cents int not null)`,
)

/** @param {string} id @param {number} cents */
async function placeOrder(id, cents) {
  await prisma.$transaction(async (tx) => {
    await tx.order.create({ data: { id, customer: 'ada', cents } })
    await box.send(tx, 'order.placed', { orderId: id, cents })
    if (cents > 1_000) throw new Error(`order ${id}: too much at once`)
  })
}

await placeOrder('A-1', 500)
await placeOrder('A-2', 700)
// Rolled back, and its event with it: billing will never hear of it.
await placeOrder('A-3', 9_000).catch((error) => console.log(error.message))

// A service calls start(), and goes on until it is stopped. Here everything is run to its end.
await box.drain()
const orders = await prisma.order.findMany({ include: { invoice: true }, orderBy: { id: 'asc' } })
console.log(`handed over: ${handedOver} times`)
for (const { id, invoice } of orders) console.log(`order ${id}: invoice of ${invoice?.cents}`)
console.log(`deleted by the janitor: ${await box.admin.prune()}`)
await prisma.$disconnect()
await pool.end()
