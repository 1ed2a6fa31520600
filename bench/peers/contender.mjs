/**
 * One contender in a process of its own, which does step by step what run.mjs asks for over its channel, and says how long
 * each step took.
 *
 *   BENCH_URL=… node contender.mjs <module> <shape>
 *
 * A module has `open({ url, shape, work, workMany, handled })`. `work(client, data)` is what the handler does to each message,
 * through a client with `query({ name, text, values })`; where the contender offers a transaction that its own mark is part of,
 * it is that one's. `handled` hears of every message. What is opened:
 *
 *   tables              emptied before each round
 *   left                an SQL expression: is anything not settled?
 *   store(list, many)   in batches of 1 000, so many at a time
 *   storeOne(message)   by the call that is meant for one
 *   start(list, what)   handles what is stored, or the list, if the contender is one that handles on arrival
 *   pause()             until the next start
 *   close()
 */
import { performance } from 'node:perf_hooks'
import pg from 'pg'
import { addEffects, BUSINESS, HANDLERS } from '../handlers.mjs'
import { inFlight, orders } from '../messages.mjs'

const [, , name, shape] = process.argv
const url = process.env.BENCH_URL
const { open } = await import(`./${name}.mjs`)
const admin = new pg.Client({ connectionString: url, application_name: 'bench-admin' })
await admin.connect()
await admin.query(BUSINESS)

let contender
let round
let seen = 0
let allSeen = () => undefined

const steps = {
  async open() {
    contender = await open({
      ...{ url, shape, workMany: addEffects, work: (client, data) => round.work(client, data) },
      handled(many = 1) {
        seen += many
        if (seen >= round.messages.length) allSeen()
      },
    })
    return { tables: contender.tables }
  },

  /** Empty tables, and messages to put into them. */
  async prepare({ handler, bytes, count }) {
    const { work, stock = () => 1_000, skuOf } = HANDLERS[handler]
    round = { handler, work, messages: orders(count, { bytes, skuOf }) }
    await admin.query(`truncate ${[...contender.tables, 'bench.effect', 'bench.stock'].join(', ')}`)
    await admin.query('insert into bench.stock (sku) select generate_series(0, $1::int - 1)', [stock(count)])
  },

  store: ({ many }) => timed(() => contender.store(round.messages, many)),

  /** Each by a call of its own, so many at a time. */
  storeEach: ({ many }) => timed(() => inFlight(many, round.messages, contender.storeOne)),

  /** Until every handler has run and nothing is left to settle. */
  handle: () =>
    timed(async () => {
      seen = 0
      const everySeen = new Promise((resolve) => (allSeen = resolve))
      await contender.start(round.messages, round.handler)
      await everySeen
      while (await isLeft()) await new Promise((resolve) => setTimeout(resolve, 2))
    }),

  pause: () => contender.pause(),

  /** A fast wrong answer is none. */
  async verify() {
    const { rows } = await admin.query(
      `select (select count(*)::int from bench.effect) effects, (select count(distinct id)::int from bench.effect) ids,
        (select sum(reserved)::int from bench.stock) reserved`,
    )
    return { ...rows[0], seen }
  },

  close: () => contender.close(),
}

async function isLeft() {
  const { rows } = await admin.query(`select ${contender.left} as is_left`)
  return rows[0].is_left
}

async function timed(work) {
  globalThis.gc?.()
  const cpu = process.cpuUsage()
  const started = performance.now()
  await work()
  const ms = performance.now() - started
  const { user, system } = process.cpuUsage(cpu)
  return { ms, nodeUs: user + system }
}

process.on('message', async ({ step, ...given }) => {
  try {
    process.send({ answer: (await steps[step](given)) ?? {} })
  } catch (error) {
    process.send({ error: `${step}: ${error.stack}` })
  }
})
