/**
 * A process with a dashboard. Arguments: connection string, schema. Told `retry <rate>` it counts what is dead and retries it, and says
 * the id of the job.
 */
import pg from 'pg'
import { createBox } from 'oncebox'
import { dashboard } from 'oncebox/dashboard'
import { createClient } from 'oncebox/dashboard/client'
import { fromPg } from 'oncebox/pg'
import { command, emit } from '../../support/child.mjs'

const [url, schema, perSecond] = process.argv.slice(2)
const pool = new pg.Pool({ connectionString: url, max: 4 })
pool.on('error', () => {})
const box = createBox({ db: fromPg(pool), schema, logger: { debug() {}, info() {}, warn() {}, error() {} } })
const ops = dashboard({ shop: box }, { authorize: () => ({ may: 'all', by: 'child' }) })
const base = 'http://ops.example.com'
const client = createClient({
  url: base,
  headers: { origin: base, host: 'ops.example.com' },
  fetch: (address, init) => ops.fetch(new globalThis.Request(address, init)),
})
emit('ready')
await command('retry')
const { confirmation } = await client.countRetry({ box: 'shop', q: 'state:dead' })
const { id } = await client.retry({ box: 'shop', confirmation, perSecond: Number(perSecond), reason: 'it is back' })
emit('started', { id })
await command('close')
await ops.close()
emit('closed')
