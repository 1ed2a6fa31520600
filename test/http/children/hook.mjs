/** A webhook into a box on PostgreSQL, for a runtime that may not be Node.js: the test puts its recipe in place of SERVE. */
import pg from 'pg'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { webhook } from 'oncebox/webhook'

const { DATABASE_URL: connectionString, HOOK_SECRET: secret, HOOK_SCHEMA: schema } = process.env
const pool = new pg.Pool({ connectionString, max: 2 })
const box = createBox({ db: fromPg(pool), schema })
box.consumer(
  'a',
  { note: ({ id }, { tx }) => tx.query(`insert into "${schema}".test_ledger (consumer, id) values ('a', $1)`, [id]) },
  { mode: 'inline' },
)
const hook = box.from(webhook({ scheme: 'standard', secret }), { types: 'any' })
/* SERVE */ export { hook }
console.log(JSON.stringify({ event: 'listening' }))
