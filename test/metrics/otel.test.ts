/** The same metrics through OpenTelemetry's own SDK. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { observeWithOtel } from '../../src/metrics/otel.js'
import { Registry } from '../../src/metrics/registry.js'
import { notes, recorder, useServer } from '../inbox/fixture.js'
import { installed } from '../support/installed.js'
import { waitUntil } from '../support/wait.js'

const PACKAGES = ['@opentelemetry/api@1.9.1', '@opentelemetry/sdk-metrics@2.12.0']
const server = useServer('metrics_otel')

interface Point {
  readonly attributes: Readonly<Record<string, string>>
  readonly value: number | { count: number; sum: number }
}
interface Collected {
  readonly resourceMetrics: {
    readonly scopeMetrics: {
      readonly scope: { readonly name: string }
      readonly metrics: {
        readonly descriptor: { readonly name: string; readonly unit: string }
        readonly dataPoints: readonly Point[]
      }[]
    }[]
  }
  readonly errors: readonly unknown[]
}
interface Api {
  readonly metrics: { setGlobalMeterProvider(provider: unknown): boolean; disable(): void }
}
interface Sdk {
  readonly MeterProvider: new (options: { readers: unknown[]; views?: unknown[] }) => { shutdown(): Promise<void> }
  readonly MetricReader: new () => { collect(): Promise<Collected> }
}

let api: Api
let sdk: Sdk
let reader: { collect(): Promise<Collected> }
let provider: { shutdown(): Promise<void> }

beforeAll(async () => {
  const packages = await installed('otel-metrics', PACKAGES)
  api = packages.require('@opentelemetry/api') as Api
  sdk = packages.require('@opentelemetry/sdk-metrics') as Sdk
})
afterEach(async () => {
  api.metrics.disable()
  await provider.shutdown()
})
afterAll(() => api.metrics.disable())

function register(views: unknown[] = []): void {
  class Reader extends sdk.MetricReader {
    protected onForceFlush = async (): Promise<void> => {}
    protected onShutdown = async (): Promise<void> => {}
  }
  reader = new Reader()
  provider = new sdk.MeterProvider({ readers: [reader], views })
  api.metrics.setGlobalMeterProvider(provider)
}

/** By name, the points of our own meter. */
async function collect(): Promise<Map<string, readonly Point[]>> {
  const { resourceMetrics, errors } = await reader.collect()
  expect(errors).toEqual([])
  const own = resourceMetrics.scopeMetrics.filter(({ scope }) => scope.name === 'oncebox')
  return new Map(own.flatMap(({ metrics }) => metrics.map((one) => [one.descriptor.name, one.dataPoints] as const)))
}

test('counters, figures of the database and histograms reach a meter provider, with the attributes of the conventions', async () => {
  register()
  await using box = await server.open()
  box.consumer('ledger', { note: (message, { tx }) => box.write(tx, 'ledger', message) })
  await box.start()
  await box.receive(notes(5))
  await waitUntil(async () => (await box.ids()).length === 5)
  const told = await waitUntil(async () => {
    const now = await collect()
    const handled = now.get('oncebox.consumer.outcomes')?.find((one) => one.attributes['oncebox.outcome'] === 'handled')
    return handled?.value === 5 && now
  })
  const [point] = told.get('messaging.process.duration')!
  expect(point!.attributes).toEqual({
    'oncebox.box': box.schema,
    'messaging.system': 'oncebox',
    'messaging.operation.name': 'process',
    'messaging.consumer.group.name': 'ledger',
    'oncebox.message.type': 'note',
    'oncebox.outcome': 'ok',
  })
  expect(point!.value).toMatchObject({ count: 5 })
  expect(told.get('oncebox.consumer.lag')).toMatchObject([
    { attributes: { 'oncebox.box': box.schema, 'messaging.consumer.group.name': 'ledger' } },
  ])
  await box.stop()
  // Nothing asks for it any more.
  await box.sql('drop table ob.reading')
  const after = await collect()
  expect(after.get('oncebox.consumer.outcomes')).toEqual(
    expect.arrayContaining([expect.objectContaining({ value: 5 })]),
  )
  expect(after.get('oncebox.reading.failures')).toMatchObject([{ value: 0 }])
})

test('what was observed is told once, to whoever collects, and before that if it is much', async () => {
  register()
  const recorded: number[] = []
  const meter = new Proxy(
    {},
    {
      get: (_, name) => (name === 'createHistogram' ? () => ({ record: (n: number) => recorded.push(n) }) : () => ({})),
    },
  )
  const registry = new Registry()
  api.metrics.disable()
  api.metrics.setGlobalMeterProvider({ getMeter: () => meter })
  observeWithOtel({ name: 'a', registry, collect: async () => [], failed: broken })
  const sizes = registry.histogram('oncebox.group.size', 'ledger')
  for (let n = 1; n < 1_000; n++) sizes.observe(n)
  expect(recorded).toEqual([])
  sizes.observe(1_000)
  expect(recorded).toEqual(Array.from({ length: 1_000 }, (_, n) => n + 1))
})

test('telemetry: false tells OpenTelemetry nothing, and Prometheus all the same', async () => {
  register()
  await using box = await server.open({ telemetry: false })
  box.consumer('quiet', { note: () => undefined })
  await box.start()
  expect([...(await collect()).keys()]).toEqual([])
  expect(await box.metrics()).toContain('oncebox_dead_letters_total{')
})

const broken = (): never => {
  throw new Error('the meter is broken')
}
const told = (logger: ReturnType<typeof recorder>): unknown[] =>
  logger.lines.filter(({ text }) => text?.includes('OpenTelemetry')).map(({ level, about }) => ({ level, ...about }))

describe('a meter that throws', () => {
  test.for(['messaging.process.duration', 'oncebox.group.size', 'oncebox.duplicate.age'] as const)(
    'at %s: what it is about succeeds and is counted, the log is told once, and the rest is told to it',
    async (instrumentName) => {
      register([{ instrumentName, attributesProcessors: [{ process: broken }] }])
      const logger = recorder()
      await using box = await server.open({ logger })
      let runs = 0
      box.consumer('ledger', { note: () => void runs++ }, { retry: { attempts: 1 } })
      await box.start()
      await box.receive(notes(5))
      await waitUntil(async () => (await box.admin.messages({ state: 'handled' })).entries.length === 5)
      expect((await box.receive(notes(5))).map(({ status }) => status)).toEqual(Array(5).fill('duplicate'))
      await box.stop()
      expect(runs).toBe(5)
      const text = await box.metrics()
      expect(text).toMatch(/oncebox_consumer_outcomes_total\{.*type="note",outcome="handled"\} 5/)
      expect(text).toMatch(/oncebox_duplicates_total\{.*consumer="ledger"\} 5/)
      const duration = (await collect()).get('messaging.process.duration')
      expect(told(logger)).toEqual([{ level: 'warn', metric: instrumentName, error: 'the meter is broken' }])
      if (instrumentName !== 'messaging.process.duration') expect(duration).toMatchObject([{ value: { count: 5 } }])
    },
  )

  test.for(['getMeter', 'createHistogram', 'createObservableCounter', 'addBatchObservableCallback'] as const)(
    'at %s: the box starts and handles, and the log is told once',
    async (method) => {
      register()
      const meter = new Proxy(
        {},
        { get: (_, name) => (name === method ? broken : () => ({ record: () => undefined })) },
      )
      api.metrics.disable()
      api.metrics.setGlobalMeterProvider({ getMeter: method === 'getMeter' ? broken : () => meter })
      const logger = recorder()
      await using box = await server.open({ logger })
      box.consumer('ledger', { note: (message, { tx }) => box.write(tx, 'ledger', message) })
      await box.start()
      await box.receive(notes(2))
      await waitUntil(async () => (await box.ids()).length === 2)
      expect(told(logger)).toMatchObject([{ level: 'warn', error: 'the meter is broken' }])
    },
  )
})
