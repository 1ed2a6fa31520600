/**
 * oncebox. `groups`: default options, groups share a transaction, 4 at a time; `together`: the same, handlers side by side;
 * `single`: one transaction for each message, 24 at a time; `inline`: on arrival, 100 at a time; `many`: `batch()`.
 */
import pg from 'pg'
import { batch, createBox, defineMessages, unchecked } from '../../dist/index.js'
import { fromPg } from '../../dist/postgres/drivers/pg.js'
import { chunks, inFlight, TYPE } from '../messages.mjs'

const SHAPES = {
  groups: {},
  together: { group: { together: true } },
  single: { concurrency: 24, group: { messages: 1 } },
  inline: { mode: 'inline' },
  many: { group: { messages: 1_000 } },
}

export async function open({ url, shape, work, workMany, handled }) {
  const options = SHAPES[shape]
  const pool = new pg.Pool({ connectionString: url, max: (options.concurrency ?? 4) + 1, idleTimeoutMillis: 0 })
  const logger = { debug: () => {}, info: () => {}, warn: () => {}, error: console.error }
  const box = createBox({ db: fromPg(pool), messages: defineMessages({ [TYPE]: unchecked() }), logger })
  const each = async ({ data }, { tx }) => {
    await work(tx, data)
    handled()
  }
  const many = batch(async (messages, { tx }) => {
    await workMany(
      tx,
      messages.map(({ data }) => data),
    )
    handled(messages.length)
  })
  box.consumer('orders', { [TYPE]: shape === 'many' ? many : each }, options)
  await box.migrate()
  const arrive = (messages) =>
    inFlight(4, chunks(messages, 100), async (part) => {
      const outcomes = await box.handle(part)
      if (outcomes.some(({ status }) => status !== 'handled')) throw new Error('not all messages were handled')
    })
  return {
    tables: ['message', 'work', 'lane', 'quarantine'].map((table) => `oncebox.${table}`),
    left: 'exists (select from oncebox.work)',
    store: (messages, flying) => inFlight(flying, chunks(messages, 1_000), (part) => box.receive(part)),
    storeOne: (message) => box.receive(message),
    start: (messages) => (shape === 'inline' ? arrive(messages) : box.start()),
    pause: () => box.stop(),
    async close() {
      await box.stop()
      await pool.end()
    },
  }
}
