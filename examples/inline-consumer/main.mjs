/**
 * A consumer that runs messages on arrival, and a source for a queue of your own.
 *
 * The queue delivers again whatever is not acknowledged, and loses acknowledgements; and the handler fails now and then.
 * Each order is booked once all the same.
 */
import { createBox, defineMessages, unchecked } from 'oncebox'
import { openDatabase } from '../database.mjs'
import { createQueue } from './queue.mjs'

const database = await openDatabase()
await database.query('drop schema if exists oncebox_example_inline cascade')

const messages = defineMessages({
  'order.placed': /** @type {typeof unchecked<{ sku: string, quantity: number }>} */ (unchecked)(),
})
const box = createBox({ db: database.driver, messages, schema: 'oncebox_example_inline' })
await box.migrate()
await database.query('create table oncebox_example_inline.booked (order_id text, sku text, quantity int)')

/** By id: a call that the database had to roll back, for want of a lock say, is made again as the same attempt. */
const failed = new Set()
box.consumer(
  'book-order',
  {
    'order.placed': async (message, { tx }) => {
      const { sku, quantity } = message.data
      const book = 'insert into oncebox_example_inline.booked values ($1, $2, $3)'
      await tx.query(book, [message.id, sku, quantity])
      // Too late for the insert, one should think. It is rolled back.
      if (message.attempt === 1 && sku === 'tea') {
        failed.add(message.id)
        throw new Error('the kettle is empty')
      }
    },
  },
  { mode: 'inline' },
)

const queue = createQueue()

/** @type {Record<string, number>} */
const outcomes = {}
/** @type {Promise<void>} */
let running = Promise.resolve()
let stopping = false

/**
 * The source: two methods. It acknowledges what `deliver` says may be acknowledged, after `deliver` has resolved.
 * @type {import('oncebox').Source}
 */
const source = {
  async start(deliver) {
    running = pull(deliver)
  },
  async stop() {
    stopping = true
    await running
  },
}

/** @param {Parameters<import('oncebox').Source['start']>[0]} deliver */
async function pull(deliver) {
  while (!stopping) {
    const received = queue.take()
    if (!received) {
      await new Promise((resolve) => setTimeout(resolve, 5))
      continue
    }
    const { letter, redelivered, ack, nack } = received
    /** @type {Date | undefined} */
    let retryAt
    try {
      const [outcome] = await deliver([{ ...letter, source: 'web', redelivered }])
      const status = outcome?.status ?? 'none'
      outcomes[status] = (outcomes[status] ?? 0) + 1
      if (outcome?.ack) {
        ack()
        continue
      }
      retryAt = outcome?.retryAt
    } catch {
      // Nothing is known about it, so nothing is acknowledged.
    }
    // Given back at once, it would come again at once, and use up its attempts in no time.
    setTimeout(nack, retryAt ? Math.max(0, retryAt.getTime() - Date.now()) : 1_000)
  }
}

for (let n = 1; n <= 12; n++) {
  const order = { sku: n % 4 === 0 ? 'tea' : 'cup', quantity: n }
  queue.publish({ id: `order-${n}`, type: 'order.placed', body: JSON.stringify(order) })
}

box.from(source)
await box.start()
while (!queue.isEmpty) await new Promise((resolve) => setTimeout(resolve, 20))
await box.stop()

const [row] = await database.query(
  'select count(*)::int as rows, count(distinct order_id)::int as orders from oncebox_example_inline.booked',
)
console.log(`12 orders, handled ${outcomes['handled']}, failed ${failed.size} times and were delivered again`)
console.log(`duplicates, because their acknowledgement was lost: ${outcomes['duplicate']}`)
console.log(`booked: ${row.rows} rows for ${row.orders} orders`)
await database.close()
