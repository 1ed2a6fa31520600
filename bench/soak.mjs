/**
 * A worker left running, on an idle database and then on a busy one: memory must stay flat, the log silent, and no
 * session idle in a transaction. `npm run soak -- --minutes 10`. Prints a sample per interval and exits 1 on a finding.
 */
import { parseArgs } from 'node:util'
import pg from 'pg'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { startServer } from './server.mjs'

const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '10' }, rate: { type: 'string', default: '500' } },
})
const minutes = Number(values.minutes)
const perSecond = Number(values.rate)
const SAMPLES = 20

const findings = []
const server = await startServer()
const pool = new pg.Pool({ connectionString: server.url, max: 16 })
const watch = new pg.Pool({ connectionString: server.url, max: 1, application_name: 'watch' })

try {
  await phase('idle', () => undefined)
  await phase('busy', (box, n) => box.receive(batch(n)))
} finally {
  await pool.end()
  await watch.end()
  await server.stop()
}
for (const finding of findings) console.log(`FOUND ${finding}`)
process.exitCode = findings.length > 0 ? 1 : 0

async function phase(name, load) {
  const complain = (o, m) => findings.push(`${name}: logged ${m} ${JSON.stringify(o)}`)
  const logger = { debug() {}, info() {}, warn: complain, error: complain }
  const box = createBox({ db: fromPg(pool), schema: `soak_${name}`, logger })
  const table = `soak_${name}_effects`
  await pool.query(`create table ${table} (id text)`)
  let handled = 0
  const handlers = {
    tick: async (message, { tx }) => {
      handled++
      await tx.query({ name: table, text: `insert into ${table} values ($1)`, values: [message.id] })
    },
  }
  box.consumer('plain', handlers)
  box.consumer('ordered', handlers, { order: 'key' })
  box.consumer('short', handlers, { leaseMs: 300 })
  await box.migrate()
  await box.start()
  const samples = []
  const end = performance.now() + minutes * 60_000
  const every = (minutes * 60_000) / SAMPLES
  let next = performance.now() + every
  for (let n = 0; performance.now() < end; n++) {
    await load(box, n)
    if (performance.now() >= next) {
      next += every
      samples.push(await sample(name, handled))
    }
    await new Promise((resolve) => setTimeout(resolve, 1_000))
  }
  await box.stop()
  judge(name, samples)
}

/** One second's worth, on a hundred keys. */
function batch(n) {
  return Array.from({ length: perSecond }, (_, at) => ({
    id: `m${n}-${at}`,
    type: 'tick',
    key: `k${at % 100}`,
    data: { n, at, text: 'x'.repeat(100) },
  }))
}

async function sample(name, handled) {
  globalThis.gc?.()
  const heapMb = process.memoryUsage().heapUsed / 1_048_576
  const { rows } = await watch.query(
    `select count(*)::int n from pg_stat_activity where state like 'idle in transaction%'
       and now() - state_change > interval '1 second'`,
  )
  if (rows[0].n > 0) findings.push(`${name}: ${rows[0].n} sessions idle in transaction`)
  console.log(`${name} heap ${heapMb.toFixed(1)} MB, handled ${handled}, idle in transaction ${rows[0].n}`)
  return heapMb
}

/** Flat: the last quarter is no more than a fifth and 5 MB above the second quarter. */
function judge(name, samples) {
  const mean = (list) => list.reduce((sum, one) => sum + one, 0) / list.length
  const quarter = Math.floor(samples.length / 4)
  const early = mean(samples.slice(quarter, 2 * quarter))
  const late = mean(samples.slice(-quarter))
  if (late > early * 1.2 + 5) findings.push(`${name}: memory grew from ${early.toFixed(1)} to ${late.toFixed(1)} MB`)
}
