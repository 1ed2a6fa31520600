/** A relay in a process of its own. Its broker is a table: what is in there has been confirmed. */
import pg from 'pg'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { command, emit } from '../support/child.mjs'

const { DATABASE_URL, SCHEMA, SINK = 'broker', TABLE = 'published' } = process.env
const pool = new pg.Pool({ connectionString: DATABASE_URL, max: 4 })
pool.on('error', () => {})
const box = createBox({
  db: fromPg(pool),
  schema: SCHEMA,
  source: 'shop',
  logger: { debug() {}, info() {}, warn() {}, error() {} },
})
let refuse = 0

box.to(
  {
    name: SINK,
    async publish(batch) {
      // Now and then one is refused, and with it what follows in its key.
      const refused = new Set()
      const answers = batch.map(({ key }) => {
        if (refused.has(key) || ++refuse % 97 === 0) {
          refused.add(key)
          return { error: new Error('refused'), retry: true }
        }
        return undefined
      })
      const rows = batch.filter((_, at) => !answers[at]).map(({ id, key }) => ({ id, key }))
      await pool.query(
        `insert into ${TABLE} (id, key) select id, key from json_to_recordset($1) as r(id text, key text)`,
        [JSON.stringify(rows)],
      )
      return answers
    },
    async close() {
      emit('closed')
    },
  },
  { leaseMs: 300, batch: 20, retry: { attempts: 1_000, baseMs: 20, maxMs: 50 } },
)
await box.start()
emit('ready')
await command('stop')
await box.stop()
await pool.end()
process.exit(0)
