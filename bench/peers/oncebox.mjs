/** oncebox with default options: groups share a transaction, 4 at a time. `together`: side by side; `many`: `batch()`. */
import pg from 'pg'
import { batch, createBox } from '../../dist/index.js'
import { fromPg } from '../../dist/postgres/drivers/pg.js'

export async function open({ url, shape, sql, handled }) {
  const pool = new pg.Pool({ connectionString: url, max: 5 })
  const logger = { debug: () => {}, info: () => {}, warn: console.error, error: console.error }
  const box = createBox({ db: fromPg(pool), logger })
  const each = async ({ data }, { tx }) => {
    await tx.query({ name: 'effect', text: sql.one, values: [data.orderId, data.sku, data.quantity] })
    handled()
  }
  const many = batch(async (messages, { tx }) => {
    await tx.query({ name: 'effects', text: sql.many, values: [JSON.stringify(messages.map(({ data }) => data))] })
    handled(messages.length)
  })
  const options = { many: { group: { messages: 1_000 } }, together: { group: { together: true } } }[shape] ?? {}
  box.consumer('orders', { 'order.placed': shape === 'many' ? many : each }, options)
  await box.migrate()
  return {
    async store(messages) {
      for (let at = 0; at < messages.length; at += 1_000) {
        const part = messages.slice(at, at + 1_000)
        await box.receive(part.map(({ id, data }) => ({ id, type: 'order.placed', data })))
      }
    },
    start: () => box.start(),
    async stop() {
      await box.stop()
      await pool.end()
    },
  }
}
