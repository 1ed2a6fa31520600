/**
 * The two services, with oncebox. This is all that a service has to write: no table of seen ids, no locks, no
 * "has it been charged yet?". Compare naive.mjs.
 */
import { createBox } from 'oncebox'
import { chargeCard } from './card.mjs'
import { linkSource } from './ends.mjs'
import { quiet } from './logger.mjs'
import { messages } from './orders.mjs'

const CONSUMERS = {
  /** Reserves stock. Runs on arrival, before the acknowledgement: the message and its work are one transaction. */
  inventory(box) {
    box.consumer(
      'reserve-stock',
      {
        'order.placed': async ({ data: order }, { tx }) => {
          await tx.query('update stock set reserved = reserved + $2 where sku = $1', [order.sku, order.quantity])
          await tx.query('insert into reservation (order_id, quantity) values ($1, $2)', [order.id, order.quantity])
        },
      },
      { mode: 'inline' },
    )
  },

  /** Charges the card. The message is stored and acknowledged at once; any worker of the service runs it later. */
  payment(box, gateway) {
    box.consumer(
      'charge-card',
      {
        'order.placed': async ({ data: order }, { tx, effect }) => {
          // Outside the database, so through `effect`: the same key however often it is tried, and once the outcome is
          // on record it is never called again.
          const charge = await effect('charge', ({ idempotencyKey, signal }) =>
            chargeCard(gateway, 'oncebox', order, { idempotencyKey, signal }),
          )
          await tx.query('insert into payment (order_id, charge_id, cents) values ($1, $2, $3)', [
            order.id,
            charge.id,
            order.cents,
          ])
        },
      },
      // Workers die every second here: what they held is taken over after two seconds and not after thirty.
      { leaseMs: 2_000, retry: { baseMs: 100 } },
    )
  },
}

export function serviceBox(service, { db, schema, gateway }) {
  const box = createBox({ db, messages, source: service, schema: `${schema}_${service}`, logger: quiet })
  CONSUMERS[service](box, gateway)
  return box
}

export async function startService(service, context) {
  const box = serviceBox(service, context)
  box.from(linkSource(context.port))
  await box.start()
  context.port.post({ ready: true })
  return box
}
