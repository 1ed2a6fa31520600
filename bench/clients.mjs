/**
 * What a client on top costs: CPU time of Node.js per message, one transaction and one insert after the other.
 *
 *     npm run bench:clients -- [client …]
 *
 * - own: the client's insert in a transaction of its own, per message
 * - lent: the same insert on a loan, as handlers do it
 * - bind: lend and give back, without a statement
 * - handled: a message through a box, stored and then handled, with that insert; the ratio is of pg's rate
 *
 * A client is one entry: the module of test/clients/subjects that opens it.
 */
import pg from 'pg'
import { createBox } from 'oncebox'
import { startServer } from './server.mjs'

const CLIENTS = {
  pg: 'pg',
  'Drizzle on pg': 'drizzle-pg',
  'Drizzle on postgres.js': 'drizzle-postgres',
  Kysely: 'kysely',
  Knex: 'knex',
  TypeORM: 'typeorm',
  Sequelize: 'sequelize',
  Prisma: 'prisma',
  MikroORM: 'mikro-orm',
}

const COUNT = Number(process.env.BENCH_MESSAGES ?? 3_000)
const ROUNDS = 3
const only = process.argv.slice(2)

const row = { consumer: 'bench', key: null, id: 'm', seq: 1, attempt: 1, pid: 1 }

/** CPU in µs for each of so many. */
async function cpu(work) {
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / COUNT
}

const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)]

async function measure(subject, url, side) {
  const { open } = await import(`../test/clients/subjects/${subject}.mjs`)
  const { hostname: host, port, username: user, pathname } = new URL(url)
  const client = await open({ host, port: Number(port), user, database: pathname.slice(1), max: 8, name: 'bench' })
  const { driver } = client
  const own = () =>
    client.own(async (tx) => {
      for (let n = 0; n < COUNT; n++) await client.insert(tx, row)
    })
  const lent = (work) => () =>
    driver.transaction(async (tx) => {
      for (let n = 0; n < COUNT; n++) {
        const loan = driver.lend(tx)
        const call = async () => work(loan.tx)
        await (loan.run ? loan.run(call) : call())
        await loan.giveBack()
      }
    })
  const inserted = lent((tx) => client.insert(tx, row))
  const bound = lent(() => undefined)
  const results = { own: [], lent: [], bind: [], rate: [] }
  for (let round = 0; round <= ROUNDS; round++) {
    const figures = { own: await cpu(own), lent: await cpu(inserted), bind: await cpu(bound) }
    figures.rate = await rate(client, side)
    // The first warms up.
    if (round > 0) for (const [name, value] of Object.entries(figures)) results[name].push(value)
  }
  await client.close()
  return Object.fromEntries(Object.entries(results).map(([name, values]) => [name, median(values)]))
}

/** Messages per second through a box that handles what is stored. */
async function rate(client, side) {
  await side.query('drop schema if exists bench_clients cascade; truncate effect')
  const box = createBox({ db: client.driver, schema: 'bench_clients' })
  box.consumer('bench', { put: async ({ id }, { tx }) => void (await client.insert(tx, { ...row, id })) })
  await box.migrate()
  await box.start()
  await box.stop()
  const filled = createBox({ db: client.driver, schema: 'bench_clients' })
  filled.consumer('bench', { put: async ({ id }, { tx }) => void (await client.insert(tx, { ...row, id })) })
  for (let at = 0; at < COUNT; at += 500) {
    const batch = Array.from({ length: Math.min(500, COUNT - at) }, (_, n) => ({
      id: `m-${at + n}`,
      type: 'put',
      data: {},
    }))
    await filled.receive(batch)
  }
  const began = performance.now()
  await filled.drain()
  const seconds = (performance.now() - began) / 1_000
  await filled.stop()
  const { rows } = await side.query('select count(distinct id)::int as n from effect')
  if (rows[0].n !== COUNT) throw new Error(`${rows[0].n} effects of ${COUNT}`)
  return COUNT / seconds
}

const server = await startServer()
const side = new pg.Client(server.url)
await side.connect()
await side.query(`create table if not exists effect (n bigint generated always as identity primary key, consumer text not null,
  key text, id text not null, seq int, attempt int not null, pid int not null)`)
console.log('| client | own insert | on a loan | bind | handled/s | of pg |')
console.log('| --- | --- | --- | --- | --- | --- |')
let yardstick
for (const [name, subject] of Object.entries(CLIENTS)) {
  if (only.length > 0 && !only.includes(subject)) continue
  const { own, lent, bind, rate: perSecond } = await measure(subject, server.url, side)
  yardstick ??= perSecond
  const cells = [`${own.toFixed(0)} µs`, `${lent.toFixed(0)} µs`, `${bind.toFixed(1)} µs`, perSecond.toFixed(0)]
  console.log(`| ${[name, ...cells, (perSecond / yardstick).toFixed(2)].join(' | ')} |`)
}
await side.end()
await server.stop()
