/** The messages of the benchmark: a small order, 130 to 170 bytes of JSON, its keys in no particular order. */
import { randomUUID } from 'node:crypto'

export const TYPE = 'order.placed'
export const SOURCE = 'shop'

/** `keyOf(i)` gives the ordering key, `skuOf(i)` the row of stock that the handler updates. */
export function orders(count, { keyOf, skuOf = (i) => i % 1_000 } = {}) {
  return Array.from({ length: count }, (_, i) => {
    const key = keyOf?.(i)
    const id = randomUUID()
    const data = { orderId: id, sku: skuOf(i), quantity: 1 + (i % 5), customer: `customer-${i % 997}`, placed: PLACED }
    return { id, source: SOURCE, type: TYPE, ...(key !== undefined && { key }), data }
  })
}

const PLACED = '2025-01-31T12:34:56.789Z'

export function* chunks(list, size) {
  for (let at = 0; at < list.length; at += size) yield list.slice(at, at + size)
}

/** Runs `work` over the items, so many at a time. */
export async function inFlight(limit, items, work) {
  const iterator = items[Symbol.iterator]()
  const lane = async () => {
    for (let next = iterator.next(); !next.done; next = iterator.next()) await work(next.value)
  }
  await Promise.all(Array.from({ length: limit }, lane))
}
