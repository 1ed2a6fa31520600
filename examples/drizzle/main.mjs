/**
 * Store, then process, with Drizzle.
 *
 * A webhook endpoint or a broker's listener does one thing: it stores what came, and answers. A worker handles it later, in
 * Drizzle's own transaction; what it writes and what it sends commit together with the mark that the message is handled.
 */
import { eq, sql } from 'drizzle-orm'
import { integer, pgSchema, text } from 'drizzle-orm/pg-core'
import { createBox, defineMessages, unchecked } from 'oncebox'
import { fromDrizzle } from 'oncebox/drizzle'
import { openDrizzle } from './database.mjs'

const { db, close } = await openDrizzle()
await db.execute(sql`drop schema if exists oncebox_example_drizzle cascade`)

const stock = pgSchema('oncebox_example_drizzle').table('stock', {
  sku: text().primaryKey(),
  reserved: integer().notNull().default(0),
})
const messages = defineMessages({
  'order.placed': /** @type {typeof unchecked<{ sku: string, quantity: number }>} */ (unchecked)(),
  'stock.reserved': /** @type {typeof unchecked<{ sku: string, reserved: number }>} */ (unchecked)(),
})
const box = createBox({ db: fromDrizzle(db), messages, schema: 'oncebox_example_drizzle' })
await box.migrate()
await db.execute(
  sql`create table oncebox_example_drizzle.stock (sku text primary key, reserved int not null default 0)`,
)
await db.insert(stock).values([{ sku: 'cup' }, { sku: 'tea' }])

box.consumer('reserve-stock', {
  'order.placed': async ({ data }, { tx, send }) => {
    const [row] = await tx
      .update(stock)
      .set({ reserved: sql`${stock.reserved} + ${data.quantity}` })
      .where(eq(stock.sku, data.sku))
      .returning()
    await send('stock.reserved', { sku: data.sku, reserved: row?.reserved ?? 0 })
  },
})
await box.start()

// Each order comes twice. The second is known when it comes, or the worker finds it handled.
const outcomes = []
for (const id of ['order-1', 'order-2', 'order-3', 'order-1', 'order-2', 'order-3']) {
  const order = { sku: id === 'order-3' ? 'tea' : 'cup', quantity: 2 }
  outcomes.push(...(await box.receive([{ id, type: 'order.placed', data: order }])))
}
await box.drain()
await box.stop()

const fresh = outcomes.filter(({ status }) => status === 'stored').length
console.log(`received ${outcomes.length}, stored ${fresh}`)
for (const { sku, reserved } of await db.select().from(stock).orderBy(stock.sku))
  console.log(`${sku}: ${reserved} reserved`)
console.log(`events: ${await db.$count(sql`oncebox_example_drizzle.outbox`)}`)
await close()
