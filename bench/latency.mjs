/**
 * `npm run bench:latency -- [--json] [--rates 10,200,1000] [--seconds 20] [--warm 5] [--only name,…]`
 *
 * How long a message takes from the call that stores it to the commit of what its handler wrote, across processes: one
 * stores messages one at a time, another runs the handler. Contenders run in turn, each in a database of its own on one
 * durable server, which says itself when each transaction committed (`track_commit_timestamp`).
 */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { describeMachine } from './machine.mjs'
import { startServer } from './server.mjs'

const CONTENDERS = ['oncebox', 'graphile-worker', 'pg-boss']
const { values: options } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    rates: { type: 'string', default: '10,200,1000' },
    seconds: { type: 'string', default: '20' },
    warm: { type: 'string', default: '5' },
    only: { type: 'string', default: CONTENDERS.join(',') },
  },
})
const numbers = (text) => text.split(',').map(Number)
const [seconds] = numbers(options.seconds)
const [warm] = numbers(options.warm)
const peers = fileURLToPath(new URL('peers/', import.meta.url))
const node = `${peers}node_modules/.bin/node`

if (!existsSync(node)) {
  const { status } = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--prefix', peers], { stdio: ['ignore', 2, 2] })
  if (status !== 0) throw new Error('the peers could not be installed; run: npm ci --prefix bench/peers')
}

const server = await startServer({ track_commit_timestamp: 'on' })
const admin = new pg.Client({ connectionString: server.url })
await admin.connect()
const results = []
try {
  const machine = await describeMachine(server)
  for (const rate of numbers(options.rates)) {
    for (const name of options.only.split(',')) {
      const result = { rate, name, ...(await measure(name, rate)) }
      results.push(result)
      process.stderr.write(`${rate}/s ${name}: p50 ${result.p50} ms, p99 ${result.p99} ms\n`)
    }
  }
  const command = `npm run bench:latency -- ${process.argv.slice(2).join(' ')}`.trim()
  if (options.json) process.stdout.write(`${JSON.stringify({ command, ...machine, seconds, results }, null, 2)}\n`)
  else console.table(results)
} finally {
  await admin.end()
  await server.stop()
}

async function measure(name, rate) {
  const database = `bench_latency_${process.pid}`
  await admin.query(`drop database if exists ${database} with (force)`)
  await admin.query(`create database ${database}`)
  const url = new URL(server.url)
  url.pathname = `/${database}`
  const client = new pg.Client({ connectionString: url.href })
  await client.connect()
  let consumer
  try {
    await client.query('create table effect (id text not null, sent bigint not null)')
    consumer = await begin(url, name, 'consume')
    await ended(await begin(url, name, 'produce', rate, warm))
    await arrived(client, rate * warm)
    await client.query('truncate effect')
    await admin.query('checkpoint').catch(() => {})
    await ended(await begin(url, name, 'produce', rate, seconds))
    await arrived(client, rate * seconds)
    return await readLatencies(client)
  } finally {
    consumer?.stdin.end()
    if (consumer) await ended(consumer).catch(() => {})
    await client.end()
    await admin.query(`drop database if exists ${database} with (force)`)
  }
}

/** Starts one side; resolves when it is ready. */
async function begin(url, ...args) {
  const child = spawn(node, [`${peers}latency.mjs`, ...args.map(String)], {
    env: { ...process.env, BENCH_URL: url.href },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  for await (const line of createInterface({ input: child.stdout })) if (line === 'ready') return child
  throw new Error(`${args.join(' ')} ended before it was ready`)
}

async function ended(child) {
  const limit = setTimeout(() => child.kill('SIGKILL'), (seconds + warm + 60) * 1_000)
  const code = child.exitCode ?? (await new Promise((resolve) => child.once('exit', resolve)))
  clearTimeout(limit)
  if (code !== 0) throw new Error(`a side of the benchmark ended with ${code}`)
}

async function arrived(client, count) {
  const end = performance.now() + 60_000
  for (;;) {
    const { rows } = await client.query('select count(*)::int n, count(distinct id)::int ids from effect')
    if (rows[0].n >= count) {
      if (rows[0].n > count) throw new Error(`${count} messages, ${rows[0].n} effects of ${rows[0].ids}`)
      return
    }
    if (performance.now() > end) throw new Error(`${count} messages, ${rows[0].n} effects after a minute`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** In ms. What commits together has its time by the transaction, so there are no more of them than transactions. */
async function readLatencies(client) {
  const { rows } = await client.query(`
    select percentile_cont(array[0.5, 0.99, 0.999]) within group (order by ms) ms, max(ms) worst from (
      select extract(epoch from pg_xact_commit_timestamp(xmin))::float8 * 1000 - sent / 1000.0 ms from effect) x`)
  const [p50, p99, p999] = rows[0].ms.map((ms) => Number(ms.toFixed(1)))
  return { p50, p99, p999, max: Number(rows[0].worst.toFixed(1)) }
}
