/**
 * What telemetry costs: the same groups, without and with it, in turn, in one process.
 *
 *     npm run bench:telemetry -- [way …]
 *
 * - off: `telemetry: false`, and no OpenTelemetry in the process
 * - absent: telemetry is on, and nobody has registered OpenTelemetry
 * - sdk: `telemetry: false` in an application that uses OpenTelemetry: what its context manager costs every promise
 * - unsampled: spans of traces that nobody samples
 * - spans: every span is recorded, and handed to an exporter that drops it
 * - by hand: `telemetry: false`, and a handler that makes one such span for its message, by the SDK alone: its own share
 * - meter: a meter of OpenTelemetry, read every second, and no spans
 *
 * Each round runs every way once, beginning with another one each time; what counts is the median over the rounds of a way's
 * figure by that of `off` in the same round. CPU is that of Node.js, and steadier than the rate where others use the machine.
 * BENCH_MESSAGES (20000) and BENCH_ROUNDS (7) say how much.
 */
import { context, metrics, propagation, ROOT_CONTEXT, SpanKind, trace } from '@opentelemetry/api'
import { AlwaysOffSampler, AlwaysOnSampler, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { NodeTracerProvider } from '@opentelemetry/sdk-trace-node'
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { installed } from '../tools/installed.mjs'
import { startServer } from './server.mjs'

const COUNT = Number(process.env.BENCH_MESSAGES ?? 20_000)
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 7)
const CHUNK = 1_000

/** A way: the options of its box, and what is registered while it runs. Another kind of telemetry is another entry. */
const WAYS = {
  off: { options: { telemetry: false } },
  absent: { options: {} },
  sdk: { options: { telemetry: false }, register: () => registerTracing(new AlwaysOnSampler()) },
  unsampled: { options: {}, register: () => registerTracing(new AlwaysOffSampler()) },
  spans: { options: {}, register: () => registerTracing(new AlwaysOnSampler()) },
  'by hand': {
    options: { telemetry: false },
    register: () => registerTracing(new AlwaysOnSampler()),
    around: inOwnSpan,
  },
  meter: { options: {}, prepare: observed, register: readEverySecond },
}
const only = process.argv.slice(2)
const ways = Object.entries(WAYS).filter(([name]) => name === 'off' || only.length === 0 || only.includes(name))

let exported = 0
/** Answers what undoes it. */
function registerTracing(sampler) {
  const exporter = {
    export(spans, done) {
      exported += spans.length
      done({ code: 0 })
    },
    shutdown: async () => {},
  }
  const provider = new NodeTracerProvider({
    sampler,
    spanProcessors: [new BatchSpanProcessor(exporter, { maxQueueSize: 100_000, scheduledDelayMillis: 100 })],
  })
  provider.register()
  // As in an application that has served a request: from then on the context is kept for every promise.
  context.with(ROOT_CONTEXT, () => undefined)
  return async () => {
    await provider.shutdown()
    for (const api of [trace, context, propagation]) api.disable()
  }
}

/** The packages are those of test/metrics/otel.test.ts. */
const { MeterProvider, PeriodicExportingMetricReader, AggregationTemporality } = (
  await installed('otel-metrics', ['@opentelemetry/api@1.9.1', '@opentelemetry/sdk-metrics@2.12.0'])
).require('@opentelemetry/sdk-metrics')

let reader
/** A box looks for a meter when it starts, and keeps it. Nobody else gets it. */
async function observed(box) {
  const exporter = {
    export: (_, done) => done({ code: 0 }),
    forceFlush: async () => {},
    shutdown: async () => {},
    selectAggregationTemporality: () => AggregationTemporality.CUMULATIVE,
  }
  reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 86_400_000 })
  metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }))
  await box.start()
  await box.stop()
  metrics.disable()
}

function readEverySecond() {
  const timer = setInterval(() => void reader.forceFlush(), 1_000)
  return async () => clearInterval(timer)
}

/** What an application would write, with the attributes that a box has too. */
function inOwnSpan(handler) {
  return (message, ctx) => {
    const parent = propagation.extract(ROOT_CONTEXT, message.headers)
    const span = trace.getTracer('bench').startSpan(
      `process ${message.type}`,
      {
        kind: SpanKind.CONSUMER,
        links: [{ context: trace.getSpanContext(parent) }],
        attributes: {
          'messaging.system': 'oncebox',
          'messaging.destination.name': message.type,
          'messaging.operation.name': 'process',
          'messaging.operation.type': 'process',
          'messaging.consumer.group.name': 'bench',
          'messaging.message.id': message.id,
          'messaging.message.conversation_id': message.correlationId,
          'oncebox.attempt': message.attempt,
        },
      },
      parent,
    )
    return context.with(trace.setSpan(parent, span), async () => {
      try {
        return await handler(message, ctx)
      } finally {
        span.end()
      }
    })
  }
}

const silent = { debug() {}, info() {}, warn() {}, error() {} }

const handler = ({ id }, { tx }) => tx.query('insert into effect (id) values ($1)', [id])

function open(schema, pool, { options, around }) {
  const box = createBox({ db: fromPg(pool), schema, logger: silent, ...options })
  box.consumer('bench', { put: around ? around(handler) : handler }, { concurrency: 4 })
  return box
}

/** Every message comes from a trace of its own, as those of many requests do. */
async function fill(box, round) {
  for (let at = 0; at < COUNT; at += CHUNK) {
    const batch = Array.from({ length: Math.min(CHUNK, COUNT - at) }, (_, n) => {
      const traceparent = `00-${randomBytes(16).toString('hex')}-${randomBytes(8).toString('hex')}-01`
      return { id: `${round}-${at + n}`, type: 'put', data: { n }, headers: { traceparent } }
    })
    await box.receive(batch)
  }
}

/** Handles what is there. Answers messages per second, and µs of CPU for each. */
async function measure({ box, register }) {
  const unregister = register?.()
  const cpu = process.cpuUsage()
  const began = performance.now()
  await box.drain()
  const seconds = (performance.now() - began) / 1_000
  const { user, system } = process.cpuUsage(cpu)
  await unregister?.()
  return { rate: COUNT / seconds, cpu: (user + system) / COUNT }
}

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]
const percent = (ratio) => `${((ratio - 1) * 100).toFixed(1)} %`

const server = await startServer()
const pool = new pg.Pool({ connectionString: server.url, max: 5 })
await pool.query('create table if not exists effect (id text not null)')
const sides = []
for (const [name, way] of ways) {
  const schema = `telemetry_${name.replace(' ', '_')}`
  await pool.query(`drop schema if exists ${schema} cascade`)
  const box = open(schema, pool, way)
  await box.migrate()
  await way.prepare?.(box)
  sides.push({ name, schema, box, register: way.register, samples: [] })
}

// The first round warms up.
for (let round = 0; round <= ROUNDS; round++) {
  const first = round % sides.length
  for (const side of [...sides.slice(first), ...sides.slice(0, first)]) {
    await pool.query('truncate effect')
    await fill(side.box, round)
    const sample = await measure(side)
    const { rows } = await pool.query('select count(distinct id)::int as n from effect')
    if (rows[0].n !== COUNT) throw new Error(`${side.name}: ${rows[0].n} effects of ${COUNT}`)
    if (round === 0) continue
    side.samples.push(sample)
    console.error(`${round}/${ROUNDS} ${side.name}: ${sample.rate.toFixed(0)}/s, ${sample.cpu.toFixed(1)} µs`)
  }
}

const [yardstick] = sides
console.log('| way | handled/s | CPU of Node.js | rate, to off | CPU, to off |')
console.log('| --- | --- | --- | --- | --- |')
for (const { name, samples } of sides) {
  const to = (figure) => median(samples.map((sample, at) => sample[figure] / yardstick.samples[at][figure]))
  const cells = [
    median(samples.map(({ rate }) => rate)).toFixed(0),
    `${median(samples.map(({ cpu }) => cpu)).toFixed(1)} µs`,
  ]
  console.log(`| ${[name, ...cells, percent(to('rate')), percent(to('cpu'))].join(' | ')} |`)
}
console.error(`${exported} spans exported`)
for (const { schema } of sides) await pool.query(`drop schema ${schema} cascade`)
await pool.query('drop table effect')
await reader?.shutdown()
await pool.end()
await server.stop()
