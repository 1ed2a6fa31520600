/** One client in a process of its own: `child.mjs <subject> <url> [directory of its packages]`. Each line asks for a round, `warm` or `measure`. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { createInterface } from 'node:readline'
import pg from 'pg'
import { createBox } from 'oncebox'
import { replaying } from './replay.mjs'

const [subject, url, from] = process.argv.slice(2)
const COUNT = Number(process.env.BENCH_MESSAGES ?? 2_000)
/** V8 compiles most of what a message needs within so many. */
const WARM = Number(process.env.BENCH_WARM ?? 10_000)
/** Messages of one kind before the other has its turn: a millisecond or two. */
const TURN = 10
/** Messages of a transaction. Prisma ends those of its own after five seconds. */
const TOGETHER = 200
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

/** CPU in µs. */
async function cpu(work) {
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return user + system
}

async function onOwn(tx) {
  await client.insert(tx, row)
  // MikroORM looks at all that it knows whenever it flushes; on a loan it knows what is of one message.
  if (subject === 'mikro-orm') tx.clear()
}

async function onLoan(tx, work) {
  const loan = client.driver.lend(tx)
  const call = async () => work(loan.tx)
  await (loan.run ? loan.run(call) : call())
  await loan.giveBack()
}

const insert = (tx) => client.insert(tx, row)
const nothing = () => undefined

/** Of each message. */
const turn = async (work) =>
  (await cpu(() =>
    replaying(async () => {
      for (let n = 0; n < TURN; n++) await work()
    }),
  )) / TURN

/**
 * So many messages of each kind by turns, each first as often as second: the machine changes its speed within seconds. Both
 * transactions are open meanwhile, so that what begins and ends them is not counted.
 */
async function turns(count) {
  const figures = { own: [], lent: [], bind: [] }
  for (let left = count; left > 0; left -= TOGETHER) {
    await client.own((begun) =>
      client.driver.transaction(async (tx) => {
        const own = () => onOwn(begun)
        const lent = () => onLoan(tx, insert)
        // The first of a transaction has statements beside it.
        for (const first of [own, lent, own, lent]) await first()
        for (let n = 0; n < TOGETHER; n += 2 * TURN) {
          figures.own.push(await turn(own))
          figures.lent.push(await turn(lent), await turn(lent))
          figures.own.push(await turn(own))
          figures.bind.push(await turn(() => onLoan(tx, nothing)))
        }
      }),
    )
  }
  return figures
}

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
  const spent = await cpu(async () => {
    const began = performance.now()
    await box.drain()
    seconds = (performance.now() - began) / 1_000
  })
  await box.stop()
  const { rows } = await side.query('select count(distinct id)::int as n from effect')
  if (rows[0].n !== COUNT) throw new Error(`${rows[0].n} effects of ${COUNT}`)
  await side.query(`drop schema ${schema} cascade`)
  return { rate: COUNT / seconds, handledCpu: spent / COUNT }
}

for await (const line of createInterface({ input: process.stdin })) {
  const figures = { ...(await turns(line === 'warm' ? WARM : COUNT)), ...(await handled()) }
  console.log(JSON.stringify({ version, ...figures }))
}
await side.end()
await client.close()
