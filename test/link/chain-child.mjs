/** Three boxes in one process: the first two share a database, the third is elsewhere. Its death takes all three. */
import pg from 'pg'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { link } from 'oncebox/link'
import { command, emit } from '../support/child.mjs'

const { HERE, ELSEWHERE, FIRST, SECOND, THIRD } = process.env
const here = new pg.Pool({ connectionString: HERE, max: 8 })
const elsewhere = new pg.Pool({ connectionString: ELSEWHERE, max: 8 })
for (const pool of [here, elsewhere]) pool.on('error', () => {})
const logger = { debug() {}, info() {}, warn() {}, error() {} }
const db = fromPg(here)
const first = createBox({ db, schema: FIRST, source: 'first', logger })
const second = createBox({ db, schema: SECOND, source: 'second', logger })
const third = createBox({ db: fromPg(elsewhere), schema: THIRD, source: 'third', logger })
const consumer = { leaseMs: 2_000, concurrency: 2, order: 'key', retry: { attempts: 1_000, baseMs: 10, maxMs: 50 } }

first.consumer('start', { start: (m, { send }) => send('step', m.data, { key: m.key }) }, consumer)
second.consumer('step', { step: (m, { send }) => send('end', m.data, { key: m.key }) }, consumer)
third.consumer(
  'end',
  {
    end: async ({ key, data, correlationId }, { tx }) => {
      await tx.query('insert into effect (key, data, correlation) values ($1, $2, $3)', [key, data.n, correlationId])
    },
  },
  consumer,
)
first.to(link({ to: second }), { leaseMs: 1_000, batch: 50 })
second.to(link({ to: third }), { leaseMs: 1_000, batch: 50 })
for (const box of [third, second, first]) await box.start()
emit('ready')
await command('stop')
for (const box of [first, second, third]) await box.stop()
await Promise.all([here.end(), elsewhere.end()])
emit('stopped')
process.exit(0)
