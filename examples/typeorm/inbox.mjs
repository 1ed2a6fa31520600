/** The box of both processes: its entity, its messages, its consumer. */
import { DataSource, EntitySchema } from 'typeorm'
import { z } from 'zod'
import { createBox, defineMessages } from 'oncebox'
import { fromTypeOrm } from 'oncebox/typeorm'

export const SCHEMA = 'oncebox_example_typeorm'

/** @type {EntitySchema<{ order: string, cents: number }>} */
export const Invoice = new EntitySchema({
  name: 'Invoice',
  schema: SCHEMA,
  columns: { order: { type: 'text', primary: true }, cents: { type: 'int' } },
})

const messages = defineMessages({ 'order.placed': z.object({ order: z.string(), cents: z.int() }) })

/** @param {string} url @param {(order: string) => unknown} before called before an invoice is written */
export async function openInbox(url, before) {
  const dataSource = await new DataSource({ type: 'postgres', url, entities: [Invoice] }).initialize()
  const box = createBox({ db: fromTypeOrm(dataSource), messages, schema: SCHEMA })
  const handlers = {
    /** @param {{ data: { order: string, cents: number } }} message @param {{ tx: import('typeorm').EntityManager }} context */
    'order.placed': async ({ data }, { tx }) => {
      await before(data.order)
      await tx.insert(Invoice, data)
    },
  }
  // A claim holds for so long, and is extended while its worker lives: the reaper is whoever asks for work after that.
  box.consumer('invoice', handlers, { leaseMs: 1_000, concurrency: 1, retry: { attempts: 1 } })
  return { dataSource, box }
}
