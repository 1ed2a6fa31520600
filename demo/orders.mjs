/**
 * The order service. It writes each order and its event in one transaction, so that there is never one without the
 * other; the outbox's relay then publishes the events to the link. It may be killed at any point, and goes on where it
 * was.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { createBox, defineMessages, unchecked } from 'oncebox'
import { dice } from './dice.mjs'
import { linkSink } from './ends.mjs'
import { quiet } from './logger.mjs'

/** What the services tell each other. A real one has schemas here: zod, valibot, arktype. */
export const messages = defineMessages({ 'order.placed': unchecked() })

export const SKUS = Array.from({ length: 20 }, (_, n) => `sku-${String(n + 1).padStart(2, '0')}`)

export function ordersBox({ db, schema }) {
  return createBox({ db, messages, source: 'orders', schema: `${schema}_orders`, logger: quiet })
}

export async function startOrders({ db, schema, port, seed, orders, perSecond }) {
  const box = ordersBox({ db, schema })
  // Should this process die, the next one takes over publishing after two seconds and not after ten.
  box.to(linkSink(port), { leaseMs: 2_000 })
  await box.start()
  port.post({ ready: true })

  const [{ placed }] = await db.query('select count(*)::text as placed from orders', [])
  const first = Number(placed) + 1
  const started = performance.now()
  for (let number = first; number <= orders; number++) {
    await sleep(Math.max(0, started + ((number - first) * 1000) / perSecond - performance.now()))
    await placeOrder(db, box, makeOrder(seed, number))
  }
  return box
}

async function placeOrder(db, box, order) {
  await db.transaction(async (tx) => {
    const { rows } = await tx.query(
      `insert into orders (id, sku, quantity, cents) values ($1, $2, $3, $4) on conflict do nothing returning id`,
      [order.id, order.sku, order.quantity, order.cents],
    )
    // Our predecessor was killed while it committed this order, and its event with it.
    if (rows.length === 0) return
    await box.send(tx, 'order.placed', order, { key: order.id })
  })
}

function makeOrder(seed, number) {
  const roll = dice(seed, 'order', number)
  return {
    id: `order-${String(number).padStart(6, '0')}`,
    sku: SKUS[Math.floor(roll() * SKUS.length)],
    quantity: 1 + Math.floor(roll() * 3),
    cents: 500 + Math.floor(roll() * 20_000),
  }
}
