/** The messages of the benchmark: a small order, 130 to 170 bytes of JSON, its keys in no particular order. */
import { randomBytes, randomInt, randomUUID } from 'node:crypto'

export const TYPE = 'order.placed'
export const SOURCE = 'shop'

/**
 * `keyOf(i)` gives the ordering key, `skuOf(i)` the row of stock that the handler updates, `bytes` the size of a body as JSON:
 * what is missing is a text of words in no order, which a server can compress as far as it can compress prose.
 */
export function orders(count, { keyOf, skuOf = (i) => i % 1_000, bytes = 0 } = {}) {
  return Array.from({ length: count }, (_, i) => {
    const key = keyOf?.(i)
    const id = randomUUID()
    const data = { orderId: id, sku: skuOf(i), quantity: 1 + (i % 5), customer: `customer-${i % 997}`, placed: PLACED }
    const missing = bytes - JSON.stringify(data).length - ',"note":""'.length
    if (missing > 0) data.note = prose(missing)
    return { id, source: SOURCE, type: TYPE, ...(key !== undefined && { key }), data }
  })
}

const PLACED = '2025-01-31T12:34:56.789Z'

const SYLLABLES = [
  'al',
  'be',
  'con',
  'der',
  'est',
  'for',
  'gra',
  'in',
  'ler',
  'mon',
  'ne',
  'or',
  'pa',
  'ri',
  'sta',
  'tun',
]
let words = ''

/** So many letters, from a place of their own in a long text. */
function prose(length) {
  while (words.length < 2 * length + 100_000) {
    const syllables = [...randomBytes(2)].map((byte) => SYLLABLES[byte & 15])
    words += `${syllables.join('')} `
  }
  const at = randomInt(words.length - length)
  return words.slice(at, at + length)
}

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
