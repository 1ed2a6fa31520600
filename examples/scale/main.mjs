/**
 * A bank whose accounts are on two PostgreSQL servers: six boxes, three on each, and the account decides which. Workers
 * are processes. Transfers go from account to account, over links between boxes, and money is neither lost nor made,
 * though one worker is killed and one box moves to the other server. Needs `psql` and `pg_dump`.
 *
 * Starts two servers of its own, or uses those at SCALE_URLS=postgres://…,postgres://…
 */
import { execFile, fork } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { promisify } from 'node:util'
import { openTwoServers } from './servers.mjs'
import { BOXES, migrate, openShards, schemaOf, shardOf } from './shards.mjs'
import { spreadReceive } from './spread.mjs'

const ACCOUNTS = Array.from({ length: 40 }, (_, index) => `account-${index}`)
const MOVED = 3
const run = promisify(execFile)

const servers = await openTwoServers()
/** @type {import('node:child_process').ChildProcess[]} */
let workers = []
/** Where each box is: this, and nothing else, changes when one moves. */
const placement = Array.from({ length: BOXES }, (_, shard) => servers.urls[shard % 2] ?? '')
let shards = openShards(placement)
try {
  for (const shard of placement.keys()) await shards.query(shard, `drop schema if exists ${schemaOf(shard)} cascade`)
  await migrate(shards)
  console.log(`${BOXES} boxes on two servers: ${onEach().join(' and ')}`)

  // Two for the first server, so that another one goes on when one is killed.
  await startWorkers([...servers.urls, servers.urls[0]])
  const first = ACCOUNTS.flatMap((from, index) => transfersOf(from, ACCOUNTS[(index * 7 + 1) % ACCOUNTS.length] ?? ''))
  console.log(`transfers: ${await handIn(first)}; the same again: ${await handIn(first)}`)
  workers[0]?.kill('SIGKILL')
  await settled(first.length)
  await report()

  await stopWorkers()
  await shards.close()
  const from = placement[MOVED] ?? ''
  const to = servers.urls.find((url) => url !== from) ?? ''
  await run('sh', [path.join(import.meta.dirname, 'move.sh'), schemaOf(MOVED), from, to], { env: servers.env })
  placement[MOVED] = to
  shards = openShards(placement)
  console.log(`box ${MOVED} has moved: ${onEach().join(' and ')}`)

  await startWorkers(servers.urls)
  const more = ACCOUNTS.map((account) => transfer(account, 'account-0', 11))
  console.log(`transfers: ${await handIn(more)}; the earlier ones again: ${await handIn(first)}`)
  await settled(first.length + more.length)
  await report()
} finally {
  await stopWorkers()
  await shards.close()
  await servers.close()
}

function onEach() {
  return servers.urls.map((url) => placement.filter((place) => place === url).length)
}

/** @param {readonly string[]} on the server whose boxes each of them runs */
async function startWorkers(on) {
  for (const url of on) {
    const run = placement.flatMap((place, shard) => (place === url ? [shard] : []))
    const env = { ...process.env, SCALE_WORKER: JSON.stringify({ placement, run }) }
    workers.push(fork(new URL('worker.mjs', import.meta.url), { env }))
  }
  await Promise.all(workers.map((worker) => once(worker, 'message')))
}

async function stopWorkers() {
  const running = workers.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null)
  workers = []
  await Promise.all(
    running.map(async (worker) => {
      worker.kill('SIGTERM')
      await once(worker, 'exit')
    }),
  )
}

/** @param {string} from @param {string} to */
function transfersOf(from, to) {
  return Array.from({ length: 10 }, (_, index) => transfer(from, to, index + 1))
}

/** @param {string} from @param {string} to @param {number} n */
function transfer(from, to, n) {
  return { id: `${from}/${n}`, type: 'transfer.ordered', key: from, data: { from, to, cents: 100 + n, n } }
}

/** @param {ReturnType<typeof transfer>[]} transfers */
async function handIn(transfers) {
  const outcomes = await spreadReceive(shards.boxes, shardOf)(transfers)
  const count = (/** @type {string} */ status) => outcomes.filter((outcome) => outcome.status === status).length
  return ['stored', 'duplicate', 'busy']
    .flatMap((status) => (count(status) ? `${status} ${count(status)}` : []))
    .join(', ')
}

/** Until each transfer is booked on both of its accounts. @param {number} transfers */
async function settled(transfers) {
  for (;;) {
    const { out, arrived } = await totals()
    if (out >= transfers && arrived >= transfers) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

async function totals() {
  const rows = await Promise.all(
    shards.boxes.map(async (_, shard) => {
      const [row] = await shards.query(
        shard,
        `select count(n)::int as out, (count(*) - count(n))::int as arrived, coalesce(sum(cents), 0)::int as cents,
           (count(*) filter (where n <> coalesce(after, 0) + 1))::int as "wrongOrder" from ${schemaOf(shard)}.entry`,
      )
      return row
    }),
  )
  /** @param {string} name @returns {number} */
  const sum = (name) => rows.reduce((all, row) => all + row[name], 0)
  return { out: sum('out'), arrived: sum('arrived'), cents: sum('cents'), wrongOrder: sum('wrongOrder') }
}

async function report() {
  const { out, arrived, cents, wrongOrder } = await totals()
  console.log(`booked: ${out} out, ${arrived} in, out of order ${wrongOrder}; the sum of all accounts is ${cents}`)
}
