/**
 * The audit: looks at the effects and at nothing else. An order is right if it has exactly one reservation, one charge
 * in the gateway's ledger and one payment on our books, and if the stock adds up.
 */
import { readFile } from 'node:fs/promises'
import path from 'node:path'

const AUDIT = (tables) => `
select count(*)::text as orders,
  coalesce(sum(r.n), 0)::text as reservations,
  coalesce(sum(p.n), 0)::text as payments,
  coalesce(sum(r.n - 1) filter (where r.n > 1), 0)::text as double_reservations,
  coalesce(sum(p.n - 1) filter (where p.n > 1), 0)::text as double_payments,
  (count(*) filter (where r.n is null))::text as lost_reservations,
  (count(*) filter (where p.n is null))::text as lost_payments,
  (select sum(reserved) from ${tables.stock})::text as reserved_units,
  coalesce(sum(o.quantity), 0)::text as ordered_units
from orders o
left join (select order_id, count(*) n from ${tables.reservation} group by 1) r on r.order_id = o.id
left join (select order_id, count(*) n from ${tables.payment} group by 1) p on p.order_id = o.id`

const QUERIES = {
  oncebox: AUDIT({ stock: 'stock', reservation: 'reservation', payment: 'payment' }),
  naive: AUDIT({ stock: 'naive_stock', reservation: 'naive_reservation', payment: 'naive_payment' }),
}

export async function audit(db, directory, side) {
  const [row] = await db.query(QUERIES[side], [])
  const counts = Object.fromEntries(Object.entries(row).map(([name, value]) => [name, Number(value)]))
  const { charges, doubles, overchargedCents } = await readLedger(path.join(directory, `ledger-${side}`))
  return {
    orders: counts.orders,
    reservations: counts.reservations,
    charges,
    payments: counts.payments,
    doubleReservations: counts.double_reservations,
    doubleCharges: doubles,
    doublePayments: counts.double_payments,
    lostReservations: counts.lost_reservations,
    lostPayments: counts.lost_payments,
    stockOffBy: counts.reserved_units - counts.ordered_units,
    overchargedCents,
  }
}

/** Exactly once in effect: nothing doubled, nothing lost, and the sums agree. */
export function isClean(result) {
  return (
    result.doubleReservations === 0 &&
    result.doubleCharges === 0 &&
    result.doublePayments === 0 &&
    result.lostReservations === 0 &&
    result.lostPayments === 0 &&
    result.stockOffBy === 0 &&
    result.charges === result.orders
  )
}

async function readLedger(file) {
  const text = await readFile(file, 'utf8').catch(() => '')
  const charged = new Set()
  let charges = 0
  let overchargedCents = 0
  // The last line may be half written.
  for (const line of text.split('\n').slice(0, -1)) {
    const { order, cents } = JSON.parse(line)
    charges++
    if (charged.has(order)) overchargedCents += cents
    charged.add(order)
  }
  return { charges, doubles: charges - charged.size, overchargedCents }
}
