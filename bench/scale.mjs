/**
 * Ten million rows: how long people wait for an answer when a box has kept ten million handled messages and a million wait.
 * Times `admin.status()`, `admin.doctor()`, first pages of `admin.messages()` and typical queries of the views, and reads the plan
 * of each statement: one that reads more than 100 000 rows of a table that grows with the messages fails the run.
 *
 *   npm run bench:status [-- --handled 10000000 --pending 1000000 --repeats 5]
 *
 * Takes 5 GB of disk and some minutes, most of which fill the tables, past the front door.
 */
import { parseArgs } from 'node:util'
import pg from 'pg'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { bindTo } from '../dist/postgres/database.js'
import { OUTBOX_STATUS, STATUS } from '../dist/postgres/sql/admin.js'
import * as inbox from '../dist/postgres/sql/doctor-inbox.js'
import * as outbox from '../dist/postgres/sql/doctor-outbox.js'
import * as looks from '../dist/postgres/sql/doctor-server.js'
import { filled } from './filled.mjs'
import { startServer } from './server.mjs'

const { values } = parseArgs({
  options: {
    handled: { type: 'string', default: '10000000' },
    pending: { type: 'string', default: '1000000' },
    repeats: { type: 'string', default: '5' },
  },
})
const HANDLED = Number(values.handled)
const PENDING = Number(values.pending)
const REPEATS = Number(values.repeats)
const LARGE = ['message', 'handled', 'work', 'outbox', 'delivery']
/** What a statement may read of one of them: the counts of several consumers, each with its end. */
const MOST_ROWS = 100_000
const LIMITS = { 'admin.status()': 300, 'admin.doctor()': 5_000 }

const schema = 'scale'
const bind = bindTo(schema)

const FILL = [
  ...filled({ handled: HANDLED, pending: PENDING }),
  // Dead letters among what was kept.
  `insert into ob.work (consumer, source, id, seq, due_at, attempts, parked, error)
   select consumer, source, id, n, 'infinity', 10, 'dead', '{"message":"no"}' from ob.message where n <= 100000 and consumer = 'mail'`,
]

/** Whoever counts much reads much: the planner may hash what is unsettled, and be right. */
const COUNTS = ['messages: an hour of a consumer, by state']

const HOUR = `between ob.now() - interval '10 days 1 hour' and ob.now() - interval '10 days'`
const QUERIES = {
  'lag, all of it': 'select * from ob.lag',
  'messages: one by consumer, source and id': `select * from ob.messages where consumer = 'orders' and source = 'shop' and id = '5000001'`,
  'messages: 50 dead ones, newest first': `select * from ob.messages where state = 'dead' and consumer = 'mail' order by received_at desc limit 50`,
  'messages: all dead ones, counted': `select consumer, count(*) from ob.messages where state = 'dead' group by consumer`,
  'messages: what a consumer works at': `select * from ob.messages where state = 'processing' and consumer = 'orders' limit 50`,
  'messages: five minutes of a consumer': `select * from ob.messages where consumer = 'orders' and received_at > ob.now() - interval '5 minutes'`,
  'messages: an hour of a consumer, by state': `select state, count(*) from ob.messages where consumer = 'orders' and received_at ${HOUR} group by state`,
  'outbox_events: one by source and id': `select * from ob.outbox_events where source = 'box' and id = '950000'`,
  'outbox_events: dead ones of a sink': `select * from ob.outbox_events where sink = 'broker' and state = 'dead' limit 50`,
}

const server = await startServer()
const pool = new pg.Pool({ connectionString: server.url, max: 4 })
const client = new pg.Client({ connectionString: server.url })
await client.connect()
let failed = false

try {
  const box = createBox({ db: fromPg(pool), schema, logger: { debug() {}, info() {}, warn() {}, error() {} } })
  await box.migrate()
  await client.query('set synchronous_commit = off')
  for (const statement of FILL) {
    console.error(statement.slice(0, 60).replaceAll(/\s+/g, ' '), '…')
    await client.query(bind(statement))
  }
  console.error('vacuum analyze …')
  await client.query('vacuum analyze')
  await client.query('checkpoint')

  console.log(`${HANDLED} handled, ${PENDING} pending, medians of ${REPEATS} (first)\n`)
  await time('admin.status()', () => box.admin.status())
  await time('admin.doctor()', () => box.admin.doctor())
  await time('admin.messages()', () => box.admin.messages())
  await time(`admin.messages({ state: 'dead' })`, () => box.admin.messages({ state: 'dead' }))
  await time(`admin.messages({ state: 'pending' })`, () => box.admin.messages({ state: 'pending' }))
  await time('admin.messages({ id })', () => box.admin.messages({ id: '5000001' }))
  for (const [name, query] of Object.entries(QUERIES)) await time(name, () => client.query(bind(query)))

  for (const [name, query] of Object.entries(QUERIES)) if (!COUNTS.includes(name)) await judge(name, bind(query))
  const statements = { STATUS, OUTBOX_STATUS, ...pick(inbox), ...pick(outbox), ...pick(looks) }
  for (const [name, text] of Object.entries(statements)) {
    const given =
      name === 'STATUS'
        ? []
        : name === 'LOOK_SINKS'
          ? { goneMs: 90_000 }
          : name === 'LOOK_OBJECTS'
            ? { own: bind('ob.') }
            : null
    await judge(name, bind(text).replaceAll('$1', client.escapeLiteral(JSON.stringify(given))))
  }
  if (!failed) console.log('\nno statement reads a table as a whole')
} finally {
  await client.query(`drop schema if exists ${schema} cascade`)
  await client.end()
  await pool.end()
  await server.stop()
}
process.exit(failed ? 1 : 0)

function pick(module) {
  return Object.fromEntries(
    Object.entries(module).filter(([name, value]) => /^LOOK_/.test(name) && typeof value === 'string'),
  )
}

async function time(name, work) {
  const times = []
  for (let n = 0; n < REPEATS; n++) {
    const started = performance.now()
    await work()
    times.push(performance.now() - started)
  }
  const [first] = times
  const median = times.sort((one, other) => one - other)[Math.floor(REPEATS / 2)]
  const limit = LIMITS[name]
  if (limit !== undefined && median > limit) failed = true
  console.log(
    `${name.padEnd(45)} ${median.toFixed(0).padStart(6)} ms (${first.toFixed(0)} ms)${limit ? `, at most ${limit} ms` : ''}`,
  )
}

async function judge(name, query) {
  await client.query('set jit = off')
  const { rows: plans } = await client.query(`explain (analyze, timing off, format json) ${query}`)
  const read = new Map()
  for (const node of nodesOf(plans[0]['QUERY PLAN'][0].Plan)) {
    const table = node['Relation Name']
    if (!LARGE.includes(table) || !/Scan$/.test(node['Node Type'])) continue
    const count = ((node['Actual Rows'] ?? 0) + (node['Rows Removed by Filter'] ?? 0)) * (node['Actual Loops'] ?? 0)
    read.set(table, (read.get(table) ?? 0) + count)
  }
  for (const [table, count] of read) {
    if (count <= MOST_ROWS) continue
    failed = true
    console.log(`${name} reads ${count} rows of ${table}`)
  }
}

function* nodesOf(node) {
  yield node
  for (const inner of node.Plans ?? []) yield* nodesOf(inner)
}
