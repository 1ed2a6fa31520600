/** A process that publishes what is in the outbox to a broker. `BROKER` holds the settings, see faults.ts. */
import pg from 'pg'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { command, emit } from '../../support/child.mjs'

const { adapter: file, settings, url, schema } = JSON.parse(process.env.BROKER)
const adapter = await import(file)
const pool = new pg.Pool({ connectionString: url, max: 4, application_name: 'broker-relay' })
pool.on('error', () => {})
const box = createBox({
  db: fromPg(pool),
  schema,
  hooks: { error: (error) => emit('trouble', { message: String(error?.message ?? error) }) },
  logger: { debug() {}, info() {}, warn() {}, error() {} },
})
box.to(adapter.sink(settings), { leaseMs: 1_000 })
emit('ready')
await command('start')
await box.start()
emit('started')
