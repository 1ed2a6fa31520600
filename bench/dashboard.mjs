/**
 * How long the server takes for each page of the dashboard, with ten million messages kept, a million waiting, and a hundred thousand
 * dead in five hundred groups. Every GET route of the table is asked, each time with nothing in a cache; one that takes longer
 * than 300 ms fails the run. Then all the dead of a consumer are retried, with a cancel in the middle, and what the dashboard says of it
 * is compared with the tables: a count that is not exact fails the run as well.
 *
 *   npm run bench:dashboard [-- --handled 10000000 --pending 1000000 --dead 100000 --groups 500 --repeats 5]
 *   npm run bench:dashboard -- --url postgres://…    uses that server, and what an earlier run has left there
 *
 * Takes 6 GB of disk and some minutes, most of which fill the tables, past the front door.
 */
import { parseArgs } from 'node:util'
import pg from 'pg'
import { createBox } from 'oncebox'
import { dashboard } from 'oncebox/dashboard'
import { fromPg } from 'oncebox/pg'
import { bindTo } from '../dist/postgres/database.js'
import { parametersOf, ROUTES } from '../dist/dashboard/routes.js'
import { retryAll } from './bulk-retry.mjs'
import { filled } from './filled.mjs'
import { startServer } from './server.mjs'

const { values } = parseArgs({
  options: {
    handled: { type: 'string', default: '10000000' },
    pending: { type: 'string', default: '1000000' },
    dead: { type: 'string', default: '100000' },
    groups: { type: 'string', default: '500' },
    repeats: { type: 'string', default: '5' },
    url: { type: 'string' },
  },
})
const HANDLED = Number(values.handled)
const PENDING = Number(values.pending)
const DEAD = Number(values.dead)
const GROUPS = Number(values.groups)
const REPEATS = Number(values.repeats)
const LIMIT_MS = 300

const schema = 'bench_dashboard'
const bind = bindTo(schema)
/** Every tenth is for mail, so the dead are among the oldest that mail has. */
const DEAD_UNTIL = Math.min(HANDLED, DEAD * 10)

/** The largest group has about a tenth of all. */
const DIE = `insert into ob.work (consumer, source, id, seq, due_at, attempts, parked, error, fingerprint, failed_at)
   select consumer, source, id, n, 'infinity', 10, 'dead',
     '{"name":"Error","message":"no answer from host ' || g.g || ' after ' || n || ' ms","stack":"' || repeat(md5(n::text), 50) || '"}',
     left(md5(g.g::text), 12), now() - (n % 200000) * interval '1 second'
   from ob.message m cross join lateral (select case when n % 9 = 0 then 0 else (n / 10) % ${GROUPS} end g) g
   where n <= ${DEAD_UNTIL} and consumer = 'mail'`

const FILL = [
  ...filled({ handled: HANDLED, pending: PENDING }),
  `insert into ob.subscription (consumer, type) select name, 't' || i from ob.consumer, generate_series(0, 9) i`,
  DIE,
  `insert into ob.attempt (consumer, source, id, attempt, error, ms, worker)
   select consumer, source, id, attempts, error, 12.5, 'host:1' from ob.work where parked = 'dead'`,
  // A key in ten is blocked by a message that died before those that wait.
  `insert into ob.work (consumer, source, id, seq, lane, due_at, attempts, parked, error, fingerprint, failed_at)
   select consumer, source, id, n, key, 'infinity', 1, 'dead', '{"name":"Error","message":"no account"}', left(md5('account'), 12), received_at
   from ob.message where n > ${HANDLED - 20_000} and n <= ${HANDLED} and n % 10 = 7`,
  `update ob.lane l set blocked = true, due_at = 'infinity', token = null from ob.work w
   where w.consumer = 'ledger' and w.parked = 'dead' and l.consumer = 'ledger' and l.key = w.lane`,
  `insert into ob.audit (action, detail) select 'retry', '{"count":1}' from generate_series(1, 10000)`,
]

const KIND = `left(md5('0'), 12)`
const server = values.url === undefined ? await startServer() : { url: values.url, stop: () => undefined }
const pool = new pg.Pool({ connectionString: server.url, max: 8 })
const client = new pg.Client({ connectionString: server.url })
await client.connect()
let slow = 0
let wrong = []

try {
  const box = createBox({ db: fromPg(pool), schema, logger: { debug() {}, info() {}, warn() {}, error() {} } })
  const { rows } = await client.query(`select to_regnamespace('${schema}') is not null filled`)
  await box.migrate()
  if (!rows[0].filled) await fill()
  const [{ kind, n, id }] = (
    await client.query(
      bind(`select ${KIND} kind, (select max(q.n) from ob.quarantine q)::text n, '${DEAD_UNTIL - 1}' id`),
    )
  ).rows
  console.log(
    `${HANDLED} handled, ${PENDING} pending, ${DEAD} dead in ${GROUPS} groups; medians of ${REPEATS} (first), in ms\n`,
  )
  const searches = [
    '', 'state:dead', 'state:pending', 'state:handled', 'type:t3', 'type:t3 state:dead', 'consumer:ledger state:pending', 'key:k77',
    'error:"host 17"', 'data.orderId:5000001', `fingerprint:${kind}`, 'blocking:true', 'after:90m', 'state:quarantined', 'box:outbox',
  ] // prettier-ignore
  const inputs = {
    messages: searches.map((q) => ({ q })),
    tally: searches.map((q) => ({ q })),
    message: [{ id }],
    body: [{ id, consumer: 'mail' }],
    conversation: [{ id }],
    failures: [{}, { consumer: 'mail' }],
    conflict: [{ n }],
    keys: [{}, { consumer: 'ledger' }],
    history: [{ minutes: 1_440 }],
    // As the page asks, again and again until the doctor has looked at everything.
    doctor: [{ patience: 150 }],
  }
  for (const [name, route] of Object.entries(ROUTES)) {
    if (route.method !== 'GET' || (route.kind !== 'json' && route.kind !== 'text')) continue
    for (const input of inputs[name] ?? [{}]) await time(box, name, route, input)
  }
  wrong = await retryAll({ box, consumer: 'mail', dead: DEAD, limitMs: LIMIT_MS, count })
  console.log(slow === 0 ? `\nnothing takes longer than ${LIMIT_MS} ms` : `\n${slow} take longer than ${LIMIT_MS} ms`)
  console.log(wrong.length === 0 ? 'every count of the retry is exact' : wrong.join('\n'))
  if (values.url !== undefined) await dieAgain()
} finally {
  if (values.url === undefined) await client.query(`drop schema if exists ${schema} cascade`)
  await client.end()
  await pool.end()
  await server.stop()
}
process.exit(slow > 0 || wrong.length > 0 ? 1 : 0)

/** As the tables have it. */
async function count(consumer) {
  const { rows } = await client.query(
    bind(`select count(*) filter (where parked = 'dead')::int dead, count(*) filter (where parked is null)::int pending
          from ob.work where consumer = $1`),
    [consumer],
  )
  return rows[0]
}

/** For the next run on this server. */
async function dieAgain() {
  await client.query(bind(`delete from ob.work where consumer = 'mail' and seq <= ${DEAD_UNTIL}`))
  await client.query(bind(DIE))
  await client.query(bind('vacuum analyze ob.work'))
}

async function fill() {
  await client.query('set synchronous_commit = off')
  for (const statement of FILL) {
    const began = performance.now()
    await client.query(bind(statement))
    const words = statement.slice(0, 60).replaceAll(/\s+/g, ' ')
    console.error(`${words} … ${Math.round((performance.now() - began) / 1000)} s`)
  }
  console.error('vacuum analyze …')
  await client.query('vacuum analyze')
  await client.query('checkpoint')
}

/** A dashboard for each time: nothing is in its cache, and nobody has searched too often. */
async function time(box, name, route, input) {
  const path = parametersOf(route.path).reduce((text, key) => text.replace(`:${key}`, key), route.path)
  const query = new URLSearchParams(input).toString()
  const times = []
  let status = 200
  let bytes = 0
  for (let n = 0; n < REPEATS; n++) {
    const ops = dashboard({ box }, { authorize: () => 'all', onError: (error) => console.error(error) })
    const began = performance.now()
    const response = await ops.fetch(new globalThis.Request(`http://localhost${path}?${query}`))
    bytes = (await response.text()).length
    times.push(performance.now() - began)
    if (response.status !== 200) status = response.status
    await ops.close()
  }
  const [first] = times
  const median = times.sort((one, other) => one - other)[Math.floor(REPEATS / 2)]
  const problem = status !== 200 ? `answered ${status}` : median > LIMIT_MS ? 'too slow' : ''
  if (problem) slow += 1
  const words = `${name} ${query === '' ? '' : decodeURIComponent(query)}`.trim()
  console.log(
    `${words.padEnd(42)} ${median.toFixed(0).padStart(6)} (${first.toFixed(0)})  ${(bytes / 1000).toFixed(0)} kB  ${problem}`,
  )
}
