/**
 * `npm run bench:peers -- [--json] [--repeats n] [--messages n] [--warm n] [--only name] [--only name] …`
 *
 * The library beside its peers: the same messages, the same handler, the same durable server, a process each, in turn.
 * Peers are installed here on the first run, with a Node.js that all of them support; every contender runs on it.
 */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { median } from '../measure.mjs'
import { startServer } from '../server.mjs'

/** By shape: what the handler does, and who takes part, with what it promises. `share`: of the messages, for slow ones. */
const SHAPES = {
  each: {
    title: 'one INSERT per message',
    contenders: {
      oncebox: { what: 'mark and effect in one transaction, groups as they fit' },
      'oncebox, together': { module: 'oncebox', as: 'together', what: 'the same, handlers of a group side by side' },
      'by hand, together': { module: 'by-hand', what: 'the same in SQL on pg alone' },
      'pg-boss, batches of 100': { module: 'pg-boss', what: 'one transaction per batch, one failure fails it' },
      'pg-boss, batches of 2': { module: 'pg-boss', as: 'small', what: 'one transaction per batch, 24 at once' },
      'pg-transactional-outbox': { share: 0.2, what: 'one transaction per message, 24 at once' },
      'graphile-worker': { what: 'effect and mark apart: may run twice' },
    },
  },
  many: {
    title: 'one INSERT per batch of 1 000',
    contenders: {
      'oncebox, batch()': { module: 'oncebox', what: 'one transaction per batch, bisected if it fails' },
      'pg-boss, batches of 1 000': { module: 'pg-boss', what: 'one transaction per batch, one failure fails it' },
    },
  },
}
const here = fileURLToPath(new URL('.', import.meta.url))
const node = `${here}node_modules/.bin/node`

const { values: options } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    repeats: { type: 'string', default: '3' },
    messages: { type: 'string', default: '10000' },
    warm: { type: 'string', default: '0' },
    only: { type: 'string', multiple: true },
  },
})
const messages = Number(options.messages)

if (!existsSync(node)) {
  process.stderr.write('installing the peers, once\n')
  const { status } = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--prefix', here], { stdio: ['ignore', 2, 2] })
  if (status !== 0) throw new Error(`the peers could not be installed; run: npm ci --prefix bench/peers`)
}

const server = await startServer()
const admin = new pg.Client({ connectionString: server.url })
await admin.connect()
const results = []
try {
  for (const [shape, { title, contenders: all }] of Object.entries(SHAPES)) {
    const chosen = ([name]) => !options.only || options.only.includes(name)
    const contenders = Object.fromEntries(Object.entries(all).filter(chosen))
    if (Object.keys(contenders).length === 0) continue
    const samples = Object.fromEntries(Object.keys(contenders).map((name) => [name, []]))
    for (let repeat = 1; repeat <= Number(options.repeats); repeat++) {
      for (const [name, { module = name, as = shape, share = 1 }] of Object.entries(contenders)) {
        const sample = await measure(module, as, Math.round(messages * share))
        samples[name].push(sample)
        process.stderr.write(`${name} ${repeat}/${options.repeats}: handles ${Math.round(sample.handle)}/s\n`)
      }
    }
    results.push({ shape, title, contenders: compare(contenders, samples) })
  }
} finally {
  await admin.end()
  await server.stop()
}
if (options.json) process.stdout.write(`${JSON.stringify({ messages, results }, null, 2)}\n`)
else for (const { title, contenders } of results) print(title, contenders)

/** A database of its own for each run, so that nobody inherits another's dead rows. */
async function measure(module, shape, count) {
  const database = `bench_peer_${process.pid}`
  await admin.query(`drop database if exists ${database} with (force)`)
  await admin.query(`create database ${database}`)
  const url = new URL(server.url)
  url.pathname = `/${database}`
  const child = spawn(node, [`${here}contender.mjs`, module, shape, String(count), options.warm], {
    env: { ...process.env, BENCH_URL: url.href },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const limit = setTimeout(() => child.kill('SIGKILL'), 300_000)
  try {
    let answer
    for await (const line of createInterface({ input: child.stdout })) if (line.startsWith('{"store"')) answer = line
    if (answer === undefined) throw new Error(`${module} ended without an answer`)
    const sample = JSON.parse(answer)
    const right = sample.n === count && sample.ids === sample.n
    if (!right) throw new Error(`${module}: ${count} messages, ${sample.n} effects of ${sample.ids}`)
    return sample
  } finally {
    clearTimeout(limit)
    child.kill('SIGKILL')
  }
}

function compare(contenders, samples) {
  const rates = Object.entries(contenders).map(([name, { module = name, what }]) => ({
    name,
    version: versionOf(module),
    what,
    store: Math.round(median(samples[name].map(({ store }) => store))),
    handle: Math.round(median(samples[name].map(({ handle }) => handle))),
    cpu: Math.round(median(samples[name].map(({ cpu }) => cpu))),
  }))
  const own = rates[0].handle
  return rates.map((rate) => ({ ...rate, ratio: Number((own / rate.handle).toFixed(1)) }))
}

function versionOf(module) {
  const file = ['oncebox', 'by-hand'].includes(module) ? '../../package.json' : `node_modules/${module}/package.json`
  return JSON.parse(readFileSync(`${here}${file}`, 'utf8')).version
}

function print(title, contenders) {
  process.stdout.write(`${title}, ${messages} messages, medians of ${options.repeats}\n`)
  console.table(
    Object.fromEntries(
      contenders.map(({ name, version, store, handle, cpu, ratio, what }) => [
        `${name} (${version})`,
        { 'stored/s': store, 'handled/s': handle, 'Node.js, µs each': cpu, 'first / it': ratio, what },
      ]),
    ),
  )
}
