/** The metrics of a box, put together: what this process has counted, and the figures of the database. */
import type { Logger } from '../handler.js'
import type { Database } from '../postgres/database.js'
import { declarationOf, METRIC_NAMES, type MetricName } from './declarations.js'
import type { Metrics } from './metrics.js'
import type { Family } from './prometheus.js'
import { createReader, type Reading } from './reading.js'

/** On a box, for what shows the metrics of several. */
export const METERED: unique symbol = Symbol.for('oncebox.metered') as never

export interface Metered {
  /** What tells its series from those of other boxes: its schema. */
  readonly name: string
  readonly log: Logger
  /** Never rejects, and waits for the database for a few seconds at most: then it tells what is known. */
  collect(): Promise<readonly Family[]>
  /** What this process has counted, and nothing else. */
  counted(): readonly Family[]
}

/** The same, for the box itself. */
export interface OwnMetered extends Metered {
  /** What is known of the whole box, as `collect` waits for it. */
  read(): Promise<Reading | undefined>
}

interface Parts {
  readonly db: Database
  readonly metrics: Metrics
  readonly log: Logger
  /** Told when figures cannot be read, and when they can again. */
  readonly trouble: { failed(error: unknown): void; worked(): void }
}

/** Scrapers give up after ten seconds, as a rule. */
const PATIENCE_MS = 4_000

export function createMetered({ db, metrics, log, trouble }: Parts): OwnMetered {
  const reader = createReader(db, {
    read: () => trouble.worked(),
    failed(error) {
      metrics.readingFailed()
      trouble.failed(error)
    },
  })
  const familiesOf = (values: readonly Value[]): Family[] => METRIC_NAMES.map((name) => familyOf(name, metrics, values))
  return {
    name: db.schema,
    log,
    async collect() {
      const reading = await reader.read(PATIENCE_MS)
      return familiesOf([...ofDatabase(reading), ...ofPool(db)])
    },
    counted: () => familiesOf([]),
    read: () => reader.read(PATIENCE_MS),
  }
}

type Value = readonly [name: MetricName, labels: readonly string[], value: number]

function ofDatabase(reading: Reading | undefined): Value[] {
  if (reading === undefined) return []
  return [...reading.figures, ['oncebox.reading.age', [], reading.ageMs / 1_000]]
}

function ofPool({ driver }: Database): Value[] {
  const values: Value[] = []
  if (driver.capacity !== undefined) values.push(['oncebox.pool.capacity', [], driver.capacity])
  if (driver.exhausted !== undefined) values.push(['oncebox.pool.exhausted', [], driver.exhausted ? 1 : 0])
  return values
}

function familyOf(name: MetricName, { registry }: Metrics, values: readonly Value[]): Family {
  const own = values.filter(([of]) => of === name).map(([, labels, value]) => ({ labels, value }))
  if (declarationOf(name).kind === 'gauge') return { name, values: own, histograms: [] }
  const counted = [...registry.counters(name)].map(({ labels, value }) => ({ labels, value }))
  const histograms = [...registry.histograms(name)].map(({ labels, bounds, counts, sum }) => {
    return { labels, bounds, counts: [...counts], sum }
  })
  return { name, values: counted, histograms }
}
