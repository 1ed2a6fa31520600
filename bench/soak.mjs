/**
 * A worker left running, on an idle database and then on a busy one, at about half of what two cores can do: the heap, the
 * tables and the time from receive to handler must stay flat, the log silent, and no session idle in a transaction.
 *
 *   npm run soak [-- --minutes 10 --idle 2 --rate 500]
 *
 * Every message is handled by three consumers, one of them in order, one with a short lease. They are remembered for a minute,
 * so that after two of them as many go as come. Prints a sample per interval and a verdict; exits with 1 if something is found.
 */
import { parseArgs } from 'node:util'
import pg from 'pg'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { startServer } from './server.mjs'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    idle: { type: 'string', default: '2' },
    rate: { type: 'string', default: '500' },
  },
})
const perSecond = Number(values.rate)
const TICKS = 20
const SAMPLES = 20
const RETAIN_MS = 60_000

const findings = []
const server = await startServer()
const pool = new pg.Pool({ connectionString: server.url, max: 16 })
const watch = new pg.Pool({ connectionString: server.url, max: 1, application_name: 'watch' })

try {
  await phase('idle', Number(values.idle), () => undefined)
  await phase('busy', Number(values.minutes), (box, n) => box.receive(batch(n)))
} finally {
  await pool.end()
  await watch.end()
  await server.stop()
}
for (const finding of findings) console.log(`FOUND ${finding}`)
console.log(findings.length > 0 ? `NOT FLAT: ${findings.length} findings` : 'FLAT: nothing was found')
process.exitCode = findings.length > 0 ? 1 : 0

async function phase(name, minutes, load) {
  const complain = (o, m) => findings.push(`${name}: logged ${m} ${JSON.stringify(o)}`)
  const logger = { debug() {}, info() {}, warn: complain, error: complain }
  const schema = `soak_${name}`
  const box = createBox({ db: fromPg(pool), schema, logger })
  const table = `soak_${name}_effects`
  await pool.query(`create table ${table} (id text)`)
  let latencies = []
  let handled = 0
  const handlers = {
    tick: async ({ id, data }, { tx }) => {
      handled++
      latencies.push(performance.now() - data.sentAt)
      await tx.query({ name: table, text: `insert into ${table} values ($1)`, values: [id] })
    },
  }
  box.consumer('plain', handlers, { retainMs: RETAIN_MS })
  box.consumer('ordered', handlers, { retainMs: RETAIN_MS, order: 'key' })
  box.consumer('short', handlers, { retainMs: RETAIN_MS, leaseMs: 300 })
  await box.migrate()
  await box.start()
  const samples = []
  const started = performance.now()
  const end = started + minutes * 60_000
  const every = (minutes * 60_000) / SAMPLES
  let next = started + every
  for (let n = 0; performance.now() < end; n++) {
    await load(box, n)
    if (performance.now() >= next) {
      next += every
      samples.push(await sample(name, schema, handled, latencies))
      latencies = []
    }
    // By the clock: a pause of fixed length would slow down with the machine.
    const due = started + ((n + 1) * 1_000) / TICKS
    await new Promise((resolve) => setTimeout(resolve, Math.max(1, due - performance.now())))
  }
  await box.stop()
  judge(name, samples)
}

/** A tick's worth, on a hundred keys. */
function batch(n) {
  return Array.from({ length: Math.ceil(perSecond / TICKS) }, (_, at) => ({
    id: `m${n}-${at}`,
    type: 'tick',
    key: `k${(n + at) % 100}`,
    data: { n, at, sentAt: performance.now(), text: 'x'.repeat(100) },
  }))
}

async function sample(name, schema, handled, latencies) {
  globalThis.gc?.()
  const heapMb = process.memoryUsage().heapUsed / 1_048_576
  const { rows } = await watch.query(
    `select (select count(*)::int from pg_stat_activity where state like 'idle in transaction%'
        and now() - state_change > interval '1 second') idle,
      (select sum(pg_total_relation_size(c.oid)) / 1048576.0 from pg_class c
        where c.relnamespace = $1::regnamespace and c.relkind = 'r')::float8 mb`,
    [schema],
  )
  const [{ idle, mb: tablesMb }] = rows
  if (idle > 0) findings.push(`${name}: ${idle} sessions idle in transaction`)
  const sorted = latencies.sort((a, b) => a - b)
  const [p50, p99] = [0.5, 0.99].map((share) => sorted[Math.floor(sorted.length * share)] ?? 0)
  const figures = { heapMb, tablesMb, p50, p99 }
  const text = Object.entries(figures).map(([figure, value]) => `${figure} ${value.toFixed(1)}`)
  console.log(`${name} handled ${handled}, ${text.join(', ')}, idle in transaction ${idle}`)
  return figures
}

/** Flat: the mean of the last quarter is no more than a fifth, and a little, above that of the second quarter. */
function judge(name, samples) {
  const mean = (list) => list.reduce((sum, one) => sum + one, 0) / list.length
  const quarter = Math.floor(samples.length / 4)
  for (const [figure, little] of Object.entries({ heapMb: 5, tablesMb: 5, p50: 5, p99: 50 })) {
    const early = mean(samples.slice(quarter, 2 * quarter).map((one) => one[figure]))
    const late = mean(samples.slice(-quarter).map((one) => one[figure]))
    const isFlat = late <= early * 1.2 + little
    console.log(`${name} ${figure}: ${early.toFixed(1)} in the second quarter, ${late.toFixed(1)} in the last`)
    if (!isFlat) findings.push(`${name}: ${figure} grew from ${early.toFixed(1)} to ${late.toFixed(1)}`)
  }
}
