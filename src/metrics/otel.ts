/**
 * The same metrics for OpenTelemetry, where the application has registered a meter provider. Counters and gauges are asked for
 * when they are collected; histograms are told of each observation, for there is no other way, when they are collected too.
 */
import { declarationOf, METRIC_NAMES, type Declaration, type Label, type MetricName } from './declarations.js'
import type { Family } from './prometheus.js'
import { registered } from '../telemetry/otel.js'
import type { Registry } from './registry.js'

type Attributes = Readonly<Record<string, string>>

interface Instrument {
  readonly description: string
  readonly unit: string
  readonly advice?: { readonly explicitBucketBoundaries: number[] }
}

interface Observer {
  observe(instrument: object, value: number, attributes: Attributes): void
}

interface Meter {
  createHistogram(name: string, options: Instrument): { record(value: number, attributes: Attributes): void }
  createObservableCounter(name: string, options: Instrument): object
  createObservableGauge(name: string, options: Instrument): object
  addBatchObservableCallback(observe: (observer: Observer) => Promise<void>, instruments: object[]): void
}

/** The names that OpenTelemetry has for what we call otherwise. */
const ATTRIBUTES: Readonly<Record<Label, string>> = {
  consumer: 'messaging.consumer.group.name',
  source: 'messaging.destination.name',
  sink: 'messaging.destination.name',
  type: 'oncebox.message.type',
  outcome: 'oncebox.outcome',
  state: 'oncebox.state',
  reason: 'oncebox.reason',
  what: 'oncebox.what',
}

const OPERATIONS: Partial<Record<MetricName, string>> = {
  'messaging.client.consumed.messages': 'receive',
  'messaging.process.duration': 'process',
  'messaging.client.sent.messages': 'publish',
}

export interface Observed {
  /** What tells its series from those of other boxes. */
  readonly name: string
  readonly registry: Registry
  collect(): Promise<readonly Family[]>
  /** Told of the first thing that the meter throws; of which metric, if it was one. */
  failed(error: unknown, metric: MetricName | undefined): void
}

/** Once for a box. Answers false if the application has registered no meter provider (yet). */
export function observeWithOtel({ name: box, registry, collect, failed }: Observed): boolean {
  const provider = registered().metrics
  if (!provider) return false
  const careful = new Careful(failed)
  const meter = careful.ask(undefined, () => provider.getMeter('oncebox') as Meter)
  if (!meter) return true
  const instruments = new Map<MetricName, object>()
  for (const name of METRIC_NAMES) {
    const instrument = careful.ask(name, () => observableOf(meter, name))
    if (instrument) instruments.set(name, instrument)
  }
  const untold: Untold[] = []
  const observe = async (observer: Observer): Promise<void> => {
    for (const one of untold) one.tell()
    for (const { name, values } of await collect()) {
      const instrument = instruments.get(name)
      if (!instrument) continue
      for (const { labels, value } of values) {
        careful.ask(name, () => observer.observe(instrument, value, attributesOf(name, labels, box)))
      }
    }
  }
  const isCollected = careful.ask(undefined, () => {
    meter.addBatchObservableCallback(observe, [...instruments.values()])
    return true
  })
  registry.eachHistogram((name, histogram) => {
    const instrument = careful.ask(name, () => meter.createHistogram(name, instrumentOf(name)))
    if (!instrument) return
    const attributes = attributesOf(name, histogram.labels, box)
    const record = (value: number): void => void careful.ask(name, () => instrument.record(value, attributes))
    const own = new Untold(record, isCollected ? MOST_UNTOLD : 1)
    untold.push(own)
    histogram.tap = (value) => own.add(value)
  })
  return true
}

/** Where nobody collects, they are told when there are so many. */
const MOST_UNTOLD = 1_000

/** What was observed and not told yet. It is told in one go, and not between messages, which costs them more. */
class Untold {
  readonly #record: (value: number) => void
  readonly #most: number
  #values: number[] = []

  constructor(record: (value: number) => void, most: number) {
    this.#record = record
    this.#most = most
  }

  add(value: number): void {
    this.#values.push(value)
    if (this.#values.length >= this.#most) this.tell()
  }

  tell(): void {
    const values = this.#values
    this.#values = []
    for (const value of values) this.#record(value)
  }
}

/**
 * The one way to ask anything of the meter. It is the application's, and may throw, into a transaction or after its COMMIT:
 * whoever counts must not fail by it. A metric that it threw at is not told to it again, and the first is told to the log.
 */
class Careful {
  readonly #failed: Observed['failed']
  readonly #letBe = new Set<MetricName | undefined>()

  constructor(failed: Observed['failed']) {
    this.#failed = failed
  }

  ask<T>(metric: MetricName | undefined, question: () => T): T | undefined {
    if (metric !== undefined && this.#letBe.has(metric)) return undefined
    try {
      return question()
    } catch (error) {
      if (this.#letBe.size === 0) this.#failed(error, metric)
      this.#letBe.add(metric)
      return undefined
    }
  }
}

function observableOf(meter: Meter, name: MetricName): object | undefined {
  const { kind } = declarationOf(name)
  if (kind === 'counter') return meter.createObservableCounter(name, instrumentOf(name))
  return kind === 'gauge' ? meter.createObservableGauge(name, instrumentOf(name)) : undefined
}

function instrumentOf(name: MetricName): Instrument {
  const { help, unit, buckets }: Declaration = declarationOf(name)
  const described = { description: help, unit: unit ?? (name in OPERATIONS ? '{message}' : '') }
  return { ...described, ...(buckets && { advice: { explicitBucketBoundaries: [...buckets] } }) }
}

function attributesOf(name: MetricName, labels: readonly string[], box: string): Attributes {
  const attributes: Record<string, string> = { 'oncebox.box': box }
  const operation = OPERATIONS[name]
  if (operation) {
    attributes['messaging.system'] = 'oncebox'
    attributes['messaging.operation.name'] = operation
  }
  declarationOf(name).labels.forEach((label, at) => {
    attributes[ATTRIBUTES[label]] = labels[at]!
    if (label === 'outcome' && labels[at] === 'error') attributes['error.type'] = '_OTHER'
  })
  return attributes
}
