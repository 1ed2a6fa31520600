/** A process that charges cards through an effect. The gateway kills it in the middle of a call. */
import pg from 'pg'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { command, emit } from '../support/child.mjs'

const { DATABASE, GATEWAY, ON_UNKNOWN } = process.env
const pool = new pg.Pool({ connectionString: DATABASE, max: 4 })
pool.on('error', () => {})
const box = createBox({ db: fromPg(pool), logger: { debug() {}, info() {}, warn() {}, error() {} } })

box.consumer(
  'pay',
  {
    async order({ id }, { tx, effect }) {
      const charge = await effect(
        'charge',
        async ({ idempotencyKey, signal }) => {
          const body = JSON.stringify({ id, idempotencyKey, pid: process.pid })
          const response = await fetch(GATEWAY, { method: 'POST', body, signal })
          return response.json()
        },
        { onUnknown: ON_UNKNOWN },
      )
      await tx.query('insert into paid (id, charge) values ($1, $2)', [id, charge.id])
    },
  },
  // One at a time, so that a kill takes one call down.
  { concurrency: 1, group: { messages: 1 }, leaseMs: 3_000, retry: { attempts: 20, baseMs: 10, maxMs: 50 } },
)
await box.start()
emit('started')
await command('stop')
await box.stop()
await pool.end()
process.exit(0)
