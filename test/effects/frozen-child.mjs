/** A process that charges cards through an effect, to be frozen while it does. */
import pg from 'pg'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { command, emit } from '../support/child.mjs'

const { DATABASE, ON_UNKNOWN } = process.env
const pool = new pg.Pool({ connectionString: DATABASE, max: 4 })
pool.on('error', () => {})
const box = createBox({ db: fromPg(pool), logger: { debug() {}, info() {}, warn() {}, error() {} } })
box.consumer(
  'pay',
  {
    async order({ id }, { effect }) {
      await effect('charge', () => emit('charged', { id }), { onUnknown: ON_UNKNOWN })
    },
  },
  { concurrency: 1, group: { messages: 1 }, leaseMs: 2_000 },
)
await box.start()
emit('started')
await command('stop')
await box.stop()
await pool.end()
process.exit(0)
