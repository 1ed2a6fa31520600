/**
 * Two services. Orders writes an order and sends an event, in one transaction. The event goes from its outbox over a
 * link into the inbox of inventory, which reserves stock and sends its answer the same way back.
 *
 * The services share a database here, each with a schema of its own; with two databases the code is the same.
 */
import { createBox, defineMessages } from 'oncebox'
import { link } from 'oncebox/link'
import { z } from 'zod'
import { openDatabase } from '../database.mjs'

// The vocabulary that both services share.
const messages = defineMessages({
  'order.placed': z.object({ orderId: z.string(), sku: z.string(), quantity: z.int().positive() }),
  'stock.reserved': z.object({ orderId: z.string() }),
  'stock.refused': z.object({ orderId: z.string(), inStock: z.int() }),
})

const database = await openDatabase()
for (const service of ['orders', 'inventory']) {
  await database.query(`drop schema if exists oncebox_example_${service} cascade`)
}
const db = database.driver
const orders = createBox({ db, messages, schema: 'oncebox_example_orders', source: 'orders' })
const inventory = createBox({ db, messages, schema: 'oncebox_example_inventory', source: 'inventory' })

inventory.consumer(
  'reserve-stock',
  {
    'order.placed': async ({ data }, { tx, send }) => {
      const { orderId, sku, quantity } = data
      const reserve = `update oncebox_example_inventory.stock set free = free - $2 where sku = $1 and free >= $2`
      const { rows } = await tx.query(`${reserve} returning free`, [sku, quantity])
      if (rows.length > 0) return void (await send('stock.reserved', { orderId }, { key: orderId }))
      const look = await tx.query('select free from oncebox_example_inventory.stock where sku = $1', [sku])
      await send('stock.refused', { orderId, inStock: look.rows[0]?.free ?? 0 }, { key: orderId })
    },
  },
  // Orders of one article run one after the other, in the order in which they were placed.
  { order: 'key' },
)

const SET_STATE = 'update oncebox_example_orders.orders set state = $2 where id = $1'
orders.consumer('track-order', {
  'stock.reserved': async ({ data }, { tx }) => void (await tx.query(SET_STATE, [data.orderId, 'reserved'])),
  'stock.refused': async ({ data }, { tx }) => void (await tx.query(SET_STATE, [data.orderId, 'refused'])),
})

orders.to(link({ to: inventory, name: 'inventory' }), { types: ['order.placed'] })
inventory.to(link({ to: orders, name: 'orders' }), { types: ['stock.reserved', 'stock.refused'] })

await orders.migrate()
await inventory.migrate()
await database.query('create table oncebox_example_orders.orders (id text primary key, state text not null)')
await database.query('create table oncebox_example_inventory.stock (sku text primary key, free int not null)')
await database.query(`insert into oncebox_example_inventory.stock values ('tea', 5), ('cup', 100)`)

/** @param {string} orderId @param {string} sku @param {number} quantity */
async function placeOrder(orderId, sku, quantity) {
  await database.transaction(async (tx) => {
    await tx.query(`insert into oncebox_example_orders.orders values ($1, 'placed')`, [orderId])
    await orders.send(tx, 'order.placed', { orderId, sku, quantity }, { key: sku })
    if (quantity > 1_000) throw new Error(`order ${orderId}: nobody drinks that much`)
  })
}

await placeOrder('1', 'tea', 3)
await placeOrder('2', 'cup', 2)
await placeOrder('3', 'tea', 4)
// Rolled back, and its event with it: inventory will never hear of it.
await placeOrder('4', 'tea', 5_000).catch((error) => console.log(error.message))

// A service calls start(), and goes on until it is stopped. Here everything is run to its end.
for (const box of [orders, inventory, orders]) await box.drain()

const states = await database.query('select id, state from oncebox_example_orders.orders order by id')
for (const { id, state } of states) console.log(`order ${id}: ${state}`)
const stock = await database.query('select sku, free from oncebox_example_inventory.stock order by sku')
for (const { sku, free } of stock) console.log(`${sku}: ${free} left`)
await database.close()
