/**
 * One piece of work behind several doors, on Knex: an adapter for each says whether there is an inbox before it. Each door is
 * delivered the same message three times.
 */
import knexBuilder from 'knex'
import { z } from 'zod'
import { createBox, defineMessages } from 'oncebox'
import { fromKnex } from 'oncebox/knex'
import { openServer } from '../server.mjs'

const SCHEMA = 'oncebox_example_knex'
const server = await openServer()
const knex = knexBuilder({ client: 'pg', connection: server.url })
const messages = defineMessages({
  'payment.stored': z.object({ account: z.string(), cents: z.int() }),
  'payment.direct': z.object({ account: z.string(), cents: z.int() }),
})
const box = createBox({ db: fromKnex(knex), messages, schema: SCHEMA })

/** The work: it knows a transaction and a payment, and nothing of inboxes. */
/** @param {import('knex').Knex.Transaction} tx @param {{ account: string, cents: number }} payment */
async function book(tx, { account, cents }) {
  await tx('entry').withSchema(SCHEMA).insert({ account, cents })
}

box.consumer('stored', { 'payment.stored': ({ data }, { tx }) => book(tx, data) })
box.consumer('on-arrival', { 'payment.direct': ({ data }, { tx }) => book(tx, data) }, { mode: 'inline' })

/** @typedef {{ id: string, account: string, cents: number }} Payment */
/** @type {Record<string, (payment: Payment) => Promise<unknown>>} */
const doors = {
  'without an inbox': (payment) => knex.transaction((tx) => book(tx, payment)),
  stored: ({ id, ...data }) => box.receive({ id, type: 'payment.stored', data }),
  'on arrival': ({ id, ...data }) => box.handle({ id, type: 'payment.direct', data }),
  "in a transaction of one's own": (payment) =>
    knex.transaction((tx) => box.once(tx, 'own', { id: payment.id }, () => book(tx, payment))),
}

await knex.raw('drop schema if exists ?? cascade', [SCHEMA])
await box.migrate()
await knex.schema.withSchema(SCHEMA).createTable('entry', (table) => {
  table.text('account')
  table.integer('cents')
})

for (const [door, deliver] of Object.entries(doors)) {
  await knex('entry').withSchema(SCHEMA).del()
  for (let time = 1; time <= 3; time++) await deliver({ id: 'payment-1', account: 'ada', cents: 500 })
  await box.drain()
  const entries = await knex('entry').withSchema(SCHEMA)
  console.log(`${door}, delivered 3 times: ${entries.length} ${entries.length === 1 ? 'entry' : 'entries'}`)
}

await box.stop()
await knex.destroy()
await server.close()
