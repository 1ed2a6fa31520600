/**
 * What a client on top costs: CPU time of Node.js per message, one insert after the other in one transaction.
 *
 *     npm run bench:clients -- [client …] [--json]
 *
 * - own: the client's insert in a transaction that the client has begun
 * - lent: the same insert on a loan, as handlers do it; what it is over the client's own is what the binding costs
 * - bind: lend and give back, without a statement
 * - handled: a message through a box, stored and then handled in groups, with that insert
 *
 * Each client has a process of its own, and works by turns with the others. In it, own and lent take turns of ten messages, on answers
 * from memory (clients/replay.mjs), and what counts is the median of the differences between neighbours, with the range in
 * which it is by 95 %. Handled is on the server; its rates are compared with pg's in the same round.
 *
 * BENCH_WARM (10000), BENCH_MESSAGES (2000) and BENCH_ROUNDS (5) say how much.
 */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { installedClient } from '../tools/installed.mjs'
import { describeMachine } from './machine.mjs'
import { startServer } from './server.mjs'
import { median } from './spread.mjs'
import { clientTable } from './page/clients.mjs'

/** A module of test/clients/subjects; the µs over its own that the binding may cost; packages that package.json has not. */
const CLIENTS = {
  pg: { subject: 'pg', target: 15 },
  'postgres.js': { subject: 'postgres', target: 15 },
  'Drizzle on pg': { subject: 'drizzle-pg', target: 15 },
  'Drizzle on postgres.js': { subject: 'drizzle-postgres', target: 15 },
  Kysely: { subject: 'kysely', target: 15 },
  Knex: { subject: 'knex', target: 15 },
  TypeORM: { subject: 'typeorm', target: 15 },
  Sequelize: { subject: 'sequelize', target: 15 },
  Prisma: { subject: 'prisma', target: 15 },
  MikroORM: {
    subject: 'mikro-orm',
    target: 40,
    packages: ['@mikro-orm/core@7.2.1', '@mikro-orm/postgresql@7.2.1', '@mikro-orm/sql@7.2.1'],
  },
}
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5)
const only = process.argv.slice(2).filter((arg) => !arg.startsWith('--'))
const wanted = Object.entries(CLIENTS).filter(
  ([, { subject }]) => only.length === 0 || subject === 'pg' || only.includes(subject),
)

const rounded = (value, digits = 1) => Number(value.toFixed(digits))

/** The quarter of the pairs that was done soonest, own and lent together: what else the machine does can only add to them. */
function undisturbed({ own, lent }) {
  const pairs = own.map((figure, at) => ({ own: figure, lent: lent[at], over: lent[at] - figure }))
  return pairs.toSorted((a, b) => a.own + a.lent - b.own - b.lent).slice(0, Math.ceil(pairs.length / 4))
}

/** The median, and the range that holds the true one in 95 of 100 runs: by ranks, whatever the distribution. */
function withRange(values) {
  const sorted = values.toSorted((a, b) => a - b)
  const rank = Math.max(0, Math.floor((sorted.length - 1.96 * Math.sqrt(sorted.length)) / 2))
  const [middle, low, high] = [median(sorted), sorted[rank], sorted.at(-1 - rank)].map((figure) => rounded(figure))
  return { over: middle, range: [low, high] }
}

/** A process that measures one round whenever it is asked to. */
async function start(url, { subject, packages }) {
  const from = packages && (await installedClient(...packages))
  const program = fileURLToPath(new URL('clients/child.mjs', import.meta.url))
  const args = [program, subject, url, ...(from ? [from] : [])]
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return {
    async measure(round) {
      child.stdin.write(`${round}\n`)
      const { value, done } = await lines.next()
      if (done) throw new Error(`${subject} has ended`)
      return JSON.parse(value)
    },
    end: () => child.stdin.end(),
  }
}

const server = await startServer()
const side = new pg.Client(server.url)
await side.connect()
await side.query(`create table if not exists effect (n bigint generated always as identity primary key, consumer text not null,
  key text, id text not null, seq int, attempt int not null, pid int not null)`)
const sides = []
for (const [name, client] of wanted) {
  sides.push({ name, ...client, process: await start(server.url, client), samples: [] })
}

for (let round = 0; round <= ROUNDS; round++) {
  const first = round % sides.length
  for (const { name, process: child, samples } of [...sides.slice(first), ...sides.slice(0, first)]) {
    const sample = await child.measure(round === 0 ? 'warm' : 'measure')
    if (round === 0) continue
    samples.push(sample)
    const pairs = undisturbed(sample)
    const figures = ['own', 'lent', 'over'].map(
      (figure) => `${figure} ${rounded(median(pairs.map((pair) => pair[figure])))}`,
    )
    console.error(`${round}/${ROUNDS} ${name}: ${figures.join(', ')}`)
  }
}
for (const { process: child } of sides) child.end()

const [yardstick] = sides
const clients = sides.map(({ name, target, samples }) => {
  const middle = (figure) => median(samples.flatMap(figure))
  const pairs = undisturbed({
    own: samples.flatMap((sample) => sample.own),
    lent: samples.flatMap((sample) => sample.lent),
  })
  const [own, lent] = ['own', 'lent'].map((figure) => rounded(median(pairs.map((pair) => pair[figure]))))
  const { over, range } = withRange(pairs.map((pair) => pair.over))
  const bind = rounded(middle((sample) => sample.bind))
  const cpu = rounded(middle((sample) => sample.handledCpu))
  const rates = samples.map(({ rate }) => rate).sort((a, b) => a - b)
  const rate = { median: Math.round(median(rates)), min: Math.round(rates[0]), max: Math.round(rates.at(-1)) }
  const ofPg = rounded(median(samples.map((sample, at) => sample.rate / yardstick.samples[at].rate)), 2)
  return { client: name, version: samples[0].version, own, lent, over, range, target, bind, cpu, rate, ofPg }
})
const command = ['npm run bench:clients', ...(only.length > 0 ? ['--', ...only] : [])].join(' ')
const report = { command, ...(await describeMachine(server)), repeats: ROUNDS, clients }
console.log(process.argv.includes('--json') ? JSON.stringify(report, null, 1) : clientTable(report))
await side.query('drop table effect')
await side.end()
await server.stop()
