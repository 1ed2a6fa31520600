/** One client in a process of its own: `child.mjs <subject> <url> [directory of its packages]`. Each line asks for a round. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { createInterface } from 'node:readline'
import pg from 'pg'
import { createBox } from 'oncebox'

const [subject, url, from] = process.argv.slice(2)
const COUNT = Number(process.env.BENCH_MESSAGES ?? 2_000)
const PACKAGES = {
  'drizzle-pg': 'drizzle-orm',
  'drizzle-postgres': 'drizzle-orm',
  prisma: '@prisma/client',
  'mikro-orm': '@mikro-orm/postgresql',
}
const row = { consumer: 'bench', key: null, id: 'm', seq: 1, attempt: 1, pid: 1 }
const schema = 'bench_clients'

const { open } = await import(`../../test/clients/subjects/${subject}.mjs`)
const { hostname: host, port, username: user, pathname } = new URL(url)
const client = await open({ host, port: Number(port), user, database: pathname.slice(1), max: 8, name: 'bench' }, from)
const side = new pg.Client(url)
await side.connect()
const version = versionOf(PACKAGES[subject] ?? subject)

/** Of the package, wherever its exports end. */
function versionOf(name) {
  const { resolve } = createRequire(from ? path.join(from, 'package.json') : import.meta.url)
  const paths = resolve.paths(name).map((directory) => path.join(directory, name, 'package.json'))
  for (const file of paths) {
    try {
      return JSON.parse(readFileSync(file, 'utf8')).version
    } catch {
      // In another directory.
    }
  }
  return undefined
}

/** CPU in µs for each of so many. */
async function cpu(work) {
  const before = process.cpuUsage()
  await work()
  const { user: own, system } = process.cpuUsage(before)
  return (own + system) / COUNT
}

const own = () =>
  client.own(async (tx) => {
    for (let n = 0; n < COUNT; n++) {
      await client.insert(tx, row)
      // MikroORM looks at all that it knows whenever it flushes; on a loan it knows what is of one message.
      if (subject === 'mikro-orm') tx.clear()
    }
  })

const lent = (work) => () =>
  client.driver.transaction(async (tx) => {
    for (let n = 0; n < COUNT; n++) {
      const loan = client.driver.lend(tx)
      const call = async () => work(loan.tx)
      await (loan.run ? loan.run(call) : call())
      await loan.giveBack()
    }
  })

/** Messages through a box that handles what is stored. */
async function handled() {
  await side.query(`drop schema if exists ${schema} cascade`)
  await side.query('truncate effect')
  const box = createBox({ db: client.driver, schema })
  box.consumer('bench', { put: async ({ id }, { tx }) => void (await client.insert(tx, { ...row, id })) })
  await box.migrate()
  for (let at = 0; at < COUNT; at += 500) {
    const length = Math.min(500, COUNT - at)
    await box.receive(Array.from({ length }, (_, n) => ({ id: `m-${at + n}`, type: 'put', data: {} })))
  }
  let seconds = 0
  const handledCpu = await cpu(async () => {
    const began = performance.now()
    await box.drain()
    seconds = (performance.now() - began) / 1_000
  })
  await box.stop()
  const { rows } = await side.query('select count(distinct id)::int as n from effect')
  if (rows[0].n !== COUNT) throw new Error(`${rows[0].n} effects of ${COUNT}`)
  await side.query(`drop schema ${schema} cascade`)
  return { rate: COUNT / seconds, handledCpu }
}

for await (const _ of createInterface({ input: process.stdin })) {
  const figures = {
    own: await cpu(own),
    lent: await cpu(lent((tx) => client.insert(tx, row))),
    bind: await cpu(lent(() => undefined)),
    ...(await handled()),
  }
  console.log(JSON.stringify({ version, ...figures }))
}
await side.end()
await client.close()
