/**
 * `npm run bench:peers -- [--json] [--repeats n] [--messages n] [--handler name] [--payload size] [--all] [--only name] …`
 *
 * The library, its limit by hand and its peers: the same messages, the same handlers, the same durable server. Every
 * contender has a process and a database of its own. All of them live at the same time, and work by turns:
 *
 *   repeat:  each contender starts, and handles its first messages       cold
 *            for each handler and payload, each contender in turn        warm
 *            those that store: one batch at a time, four in flight, and
 *            message by message, 16 in flight                            storing
 *            all of them end
 *
 * `--messages` are those of the warm round with small ones, and of storing; the others have an eighth. Each repeat begins with another
 * contender. What counts is the median over the repeats. By default: every handler with
 * small messages, and every payload with the handler that inserts; `--all` for every handler with every payload, `--handler`,
 * `--payload` and `--only` (any number of each) for some of them.
 *
 * Peers are installed here on the first run, with a Node.js that all of them support; every contender runs on it.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { HANDLERS } from '../handlers.mjs'
import { describeMachine } from '../machine.mjs'
import { startServer } from '../server.mjs'
import { rounded, spread } from '../spread.mjs'
import { Child, NODE } from './child.mjs'
import { COLD, CONTENDERS, PAYLOADS, roundsOf, takesPart } from './contenders.mjs'
import { checksOf, printRounds } from './report.mjs'

const { values: options } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    all: { type: 'boolean', default: false },
    repeats: { type: 'string', default: '3' },
    messages: { type: 'string', default: '40000' },
    handler: { type: 'string', multiple: true, default: Object.keys(HANDLERS) },
    payload: { type: 'string', multiple: true, default: Object.keys(PAYLOADS) },
    only: { type: 'string', multiple: true },
  },
})
const here = fileURLToPath(new URL('.', import.meta.url))
const say = (line) => process.stderr.write(`${line}\n`)
const repeats = Number(options.repeats)
const names = Object.keys(CONTENDERS).filter((name) => options.only?.includes(name) ?? !CONTENDERS[name].asked)
const unknown = options.only?.filter((name) => !(name in CONTENDERS)) ?? []
if (unknown.length > 0) throw new Error(`nobody is called ${unknown}; there are ${Object.keys(CONTENDERS).join(', ')}`)
const warm = roundsOf({ handlers: options.handler, payloads: options.payload, all: options.all })

if (!existsSync(NODE)) {
  say('installing the peers, once')
  const { status } = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--prefix', here], { stdio: ['ignore', 2, 2] })
  if (status !== 0) throw new Error(`the peers could not be installed; run: npm ci --prefix bench/peers`)
}

/** By round and contender, then by step: the samples of all repeats. */
const samples = new Map()
// All contenders are connected all the time.
const server = await startServer({ max_connections: 400 })
const machine = await describeMachine(server)
try {
  for (let repeat = 0; repeat < repeats; repeat++) {
    const at = repeat % names.length
    await runAll([...names.slice(at), ...names.slice(0, at)], `${repeat + 1}/${repeats}`)
  }
} finally {
  await server.stop()
}
const report = {
  command: `npm run bench:peers -- ${process.argv.slice(2).join(' ')}`.trim(),
  ...machine,
  node: versionOf('node'),
  repeats,
  contenders: Object.fromEntries(
    names.map((name) => [name, { version: versionOf(CONTENDERS[name].module), what: CONTENDERS[name].what }]),
  ),
  rounds: [...samples].map(([name, { messages, title, sides }]) => ({
    name,
    title,
    messages,
    contenders: summed(sides),
  })),
}
report.checks = checksOf(report.rounds)
if (options.json) process.stdout.write(`${JSON.stringify(report, null, 1)}\n`)
else printRounds(report)

/** One repeat. Whoever fails is out of it, and says why. */
async function runAll(order, repeat) {
  const children = new Map()
  const each = async (round, part, work) => {
    for (const name of order.filter(part)) {
      const child = children.get(name)
      if (!child) continue
      try {
        say(`${repeat} ${round.name}, ${name}: ${await work(child, name)}`)
      } catch (error) {
        say(`${repeat} ${round.name}, ${name} is out: ${error.message}`)
        children.delete(name)
        await child.stop()
      }
    }
  }
  try {
    for (const [at, name] of order.entries()) children.set(name, new Child(server, `bench_${process.pid}_${at}`))
    await each(
      COLD,
      () => true,
      async (child, name) => {
        await child.start(CONTENDERS[name])
        const result = await runRound(child, name, COLD)
        note(COLD, name, 'dead', { rows: (await child.deadRows()) / countOf(name, COLD) })
        return result
      },
    )
    for (const round of warm)
      await each(
        round,
        (name) => takesPart(CONTENDERS[name], round),
        (child, name) => runRound(child, name, round),
      )
    await each({ name: 'storing' }, (name) => CONTENDERS[name].stores, runStoring)
  } finally {
    for (const child of children.values()) await child.stop()
  }
}

async function runRound(child, name, round) {
  const { handler, payload } = round
  const count = countOf(name, round)
  await child.ask('prepare', { handler, count, bytes: PAYLOADS[payload].bytes })
  if (!CONTENDERS[name].arrives) note(round, name, 'store', await child.measure('store', count, { many: 1 }))
  await child.settle()
  const handled = await child.measure('handle', count)
  await child.ask('pause')
  check(await child.ask('verify'), handler, count)
  note(round, name, 'handle', handled)
  return `${rounded(handled.rate)}/s`
}

/** One batch of 1 000 after the other, and four in flight; then messages one by one, 16 in flight. */
async function runStoring(child, name) {
  const all = Number(options.messages)
  const rates = []
  for (const { step, many, title, count } of [
    { step: 'store', many: 1, title: 'one after the other', count: all },
    { step: 'store', many: 4, title: 'four in flight', count: all },
    { step: 'storeEach', many: 16, title: 'message by message', count: Math.round(all / 2) },
  ]) {
    const round = { name: `storing, ${title}`, payload: '200 B', count }
    await child.ask('prepare', { handler: 'none', count, bytes: PAYLOADS[round.payload].bytes })
    await child.settle()
    const stored = await child.measure(step, count, { many })
    note(round, name, 'store', stored)
    rates.push(`${rounded(stored.rate)}/s`)
  }
  return rates.join(', ')
}

function countOf(name, { payload, share }) {
  const shares = share * (CONTENDERS[name].share ?? 1) * (PAYLOADS[payload].share ?? 1)
  return Math.round(Number(options.messages) * shares)
}

function check({ effects, ids, reserved, seen }, handler, count) {
  const right = {
    insert: effects === count && ids === count,
    update: reserved === count,
    three: effects === count && ids === count && reserved === count,
    none: seen >= count,
  }[handler]
  if (!right) throw new Error(`${count} messages, ${effects} effects of ${ids}, ${reserved} reserved, ${seen} seen`)
}

function note({ name: round, handler, payload, share, count }, name, step, figures) {
  const title = handler ? `${HANDLERS[handler].title}, ${payload}` : payload
  if (!samples.has(round))
    samples.set(round, { title, messages: count ?? countOf('oncebox', { payload, share }), sides: {} })
  const side = (samples.get(round).sides[name] ??= {})
  ;(side[step] ??= []).push(figures)
}

/** Of each contender and step the median of every figure, with its spread. */
function summed(sides) {
  const ofStep = (list) =>
    Object.fromEntries(Object.keys(list[0]).map((figure) => [figure, spread(list.map((one) => one[figure]))]))
  return Object.fromEntries(
    Object.entries(sides).map(([name, steps]) => [
      name,
      Object.fromEntries(Object.entries(steps).map(([step, list]) => [step, ofStep(list)])),
    ]),
  )
}

function versionOf(module) {
  const own = ['oncebox', 'by-hand', 'naive'].includes(module)
  return JSON.parse(readFileSync(`${here}${own ? '../../package.json' : `node_modules/${module}/package.json`}`))
    .version
}
