/**
 * The same two services as many of us write them first: nothing remembers which messages were handled. They get the
 * same deliveries and die the same deaths as oncebox's, and keep their effects in tables and a ledger of their own.
 *
 * - Inventory acknowledges after its work: whatever is delivered twice, or was done but not yet acknowledged when the
 *   worker died, is done twice.
 * - Payment acknowledges before its work, to be safe from that: now what was at work when the worker died is lost, and
 *   so is a charge of which the answer never came. Duplicates are charged all the same.
 */
import { chargeCard } from './card.mjs'

const SERVICES = {
  async inventory(order, { db }, acknowledge) {
    await db.transaction(async (tx) => {
      await tx.query('update naive_stock set reserved = reserved + $2 where sku = $1', [order.sku, order.quantity])
      await tx.query('insert into naive_reservation (order_id, quantity) values ($1, $2)', [order.id, order.quantity])
    })
    acknowledge()
  },

  async payment(order, { db, gateway }, acknowledge) {
    acknowledge()
    const charge = await chargeCard(gateway, 'naive', order)
    await db.query('insert into naive_payment (order_id, charge_id, cents) values ($1, $2, $3)', [
      order.id,
      charge.id,
      order.cents,
    ])
  },
}

/** So many deliveries at a time, as with oncebox. */
const CONCURRENCY = 4

/** `mayDie` is called where a real process may be killed; it throws when a kill is simulated (see simulated.mjs). */
export function startNaive(service, context, mayDie = () => {}) {
  const { port } = context
  const waiting = []
  let working = 0

  const work = async ({ deliver: settle, event }) => {
    let acknowledged = false
    const acknowledge = () => {
      if (service === 'inventory') mayDie()
      acknowledged = true
      port.post({ settle, ack: true })
      if (service === 'payment') mayDie()
    }
    try {
      await SERVICES[service](event.data, context, acknowledge)
    } catch {
      if (!acknowledged) port.post({ settle, ack: false })
    }
  }
  const next = async () => {
    working++
    while (waiting.length > 0) await work(waiting.shift())
    working--
  }
  port.listen((message) => {
    if (message.deliver === undefined) return
    waiting.push(message)
    if (working < CONCURRENCY) void next()
  })
  port.post({ ready: true })
}
