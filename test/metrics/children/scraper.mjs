/** A process of a box: scrapes itself when it is told to, and says what it read. Arguments: connection string, schema. */
import pg from 'pg'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { command, emit } from '../../support/child.mjs'

const [url, schema] = process.argv.slice(2)
const pool = new pg.Pool({ connectionString: url, max: 2 })
pool.on('error', () => {})
const box = createBox({ db: fromPg(pool), schema, logger: { debug() {}, info() {}, warn() {}, error() {} } })
emit('ready')
for (;;) {
  await command('scrape')
  const text = await box.metrics()
  emit('scraped', { text })
}
