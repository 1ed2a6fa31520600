/**
 * `npm run bench -- [--quick] [--full] [--json] [--only name,…] [--repeats n] [--messages n]`
 *
 * Measures the library against hand-written SQL that does the same durable work (limit.mjs says what it does and does
 * not), in one process and on one server, by turns. See README.md.
 */
import { parseArgs } from 'node:util'
import { describeMachine } from './machine.mjs'
import { measureShape } from './measure.mjs'
import { printTable } from './report.mjs'
import { startServer } from './server.mjs'
import { SHAPES } from './shapes.mjs'
import { median, rounded, spread } from './spread.mjs'

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    full: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    only: { type: 'string' },
    repeats: { type: 'string' },
    messages: { type: 'string' },
  },
})
const repeats = positive('repeats', options.repeats) ?? (options.quick ? 3 : 5)
const messages = positive('messages', options.messages)
const shapes = choose(options.only?.split(',').map((name) => name.trim()))
const say = (line) => process.stderr.write(`${line}\n`)

const server = await startServer()
try {
  const machine = await describeMachine(server)
  const results = []
  for (const shape of shapes) {
    const count = messages ?? shape.messages[options.quick ? 'quick' : 'full']
    say(`${shape.name}: ${shape.title}, ${count} messages`)
    results.push(shape.measure ? await other(shape, count) : await compared(shape, count))
  }
  const report = { command: `npm run bench -- ${process.argv.slice(2).join(' ')}`.trim(), ...machine, repeats, results }
  if (options.json) process.stdout.write(`${JSON.stringify(report, null, 2)}\n`)
  else printTable(report)
} finally {
  await server.stop()
}

async function compared(shape, count) {
  const sides = await measureShape(shape, { server, count, repeats, say })
  const rates = Object.fromEntries(
    sides.map(({ name, samples }) => [
      name,
      {
        ...spread(samples.map(({ rate }) => rate)),
        cpu: {
          node: rounded(median(samples.map(({ cpu }) => cpu.node))),
          postgres: rounded(median(samples.map(({ cpu }) => cpu.postgres))),
        },
        wal: rounded(median(samples.map(({ wal }) => wal))),
        ...(samples[0].others && { others: rounded(median(samples.map(({ others }) => others))) }),
      },
    ]),
  )
  const checks = shape.checks.map(({ of, to, target, metric = 'median' }) => {
    const ratio = Number((rates[of][metric] / rates[to][metric]).toFixed(3))
    const what = metric === 'median' ? `${of} / ${to}` : `${of} / ${to} (${metric})`
    return { what, ratio, target: target ?? null, pass: target === undefined ? null : ratio >= target }
  })
  return { name: shape.name, title: shape.title, messages: count, rates, checks }
}

async function other(shape, count) {
  const perSecond = await shape.measure(server.url, count, say)
  const steady = median(perSecond.slice(5))
  const first = median(perSecond.slice(0, 3))
  const ratio = Number((first / steady).toFixed(3))
  const checks = [{ what: 'first 3 s / after 5 s', ratio, target: 0.5, pass: ratio >= 0.5 }]
  const rates = { first: { median: first }, steady: { median: steady } }
  return { name: shape.name, title: shape.title, messages: count, rates, perSecond, checks }
}

function choose(names) {
  const unknown = names?.filter((name) => !SHAPES.some((shape) => shape.name === name))
  if (unknown?.length) {
    throw new Error(`there is no shape ${unknown.join(', ')}; there are ${SHAPES.map(({ name }) => name).join(', ')}`)
  }
  return SHAPES.filter(({ name, fullOnly }) => (names ? names.includes(name) : options.full || !fullOnly))
}

function positive(name, text) {
  if (text === undefined) return undefined
  const number = Number(text)
  if (!Number.isInteger(number) || number < 1) throw new Error(`--${name} must be a whole number of at least 1`)
  return number
}
