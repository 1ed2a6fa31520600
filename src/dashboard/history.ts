/** History: what the last hours and days were like, in steps that a chart has room for, and what the last minute was like. */
import { READ_MINUTE, READ_MINUTES, READ_PUBLISHED, type LastRow, type StepRow } from '../postgres/sql/minutes.js'
import { runUnjitted } from '../postgres/unjitted.js'
import type { Runtime } from '../runtime.js'
import type { History, Rates, Series } from './answers/index.js'

const MOST_STEPS = 300
const MOST_CONSUMERS = 100
/** In minutes: people can tell what they see. */
const STEPS = [1, 2, 3, 5, 10, 15, 20, 30, 40]
const MINUTE_MS = 60_000
/** After the end of a minute everybody has had the time to write it down. */
const GRACE_MS = 10_000

interface Steps {
  /** In minutes since 1970. */
  readonly from: number
  readonly step: number
  readonly count: number
}

/** The last step ends with the last minute that everybody has written down: every step is whole. */
export function stepsOf(minutes: number, nowMs: number): Steps {
  const step = STEPS.find((one) => minutes / one <= MOST_STEPS) ?? STEPS.at(-1)!
  const count = Math.ceil(minutes / step)
  return { from: lastOf(nowMs) + 1 - count * step, step, count }
}

function lastOf(nowMs: number): number {
  return Math.floor((nowMs - GRACE_MS) / MINUTE_MS) - 1
}

export async function readHistory({ db }: Runtime, minutes: number): Promise<History> {
  const now = Date.now()
  const steps = stepsOf(minutes, now)
  const rows = await runUnjitted(db, READ_MINUTES, { ...steps, limit: MOST_CONSUMERS })
  const byConsumer = new Map<string, StepRow[]>()
  for (const row of rows) byConsumer.set(row.consumer, [...(byConsumer.get(row.consumer) ?? []), row])
  const box = byConsumer.get('') ?? []
  const consumers = [...byConsumer].filter(([name]) => name !== '')
  return {
    at: new Date(now).toISOString(),
    stepMs: steps.step * MINUTE_MS,
    times: Array.from({ length: steps.count }, (_, at) => (steps.from + at * steps.step) * 60),
    total: seriesOf(steps, box, box),
    consumers: Object.fromEntries(consumers.map(([name, own]) => [name, seriesOf(steps, own, box)])),
  }
}

/** A step that nobody recorded of the box is a gap. One of the box alone is nothing of the consumer. */
function seriesOf({ count }: Steps, own: readonly StepRow[], box: readonly StepRow[]): Series {
  const at = (rows: readonly StepRow[]): ReadonlyMap<number, StepRow> =>
    new Map(rows.map((row) => [Number(row.step), row]))
  const [owned, recorded] = [at(own), at(box)]
  const draw = (column: Exclude<keyof StepRow, 'consumer' | 'step'>): (number | null)[] =>
    Array.from({ length: count }, (_, step) => {
      const row = owned.get(step)
      if (row) return row[column] === null ? null : Number(row[column])
      return recorded.get(step)?.[column] == null ? null : 0
    })
  return {
    received: draw('received'),
    handled: draw('handled'),
    failed: draw('failed'),
    duplicates: draw('duplicates'),
    pending: draw('pending'),
    lagMs: draw('lag'),
  }
}

/** Of the last whole minute; undefined if nobody recorded it. */
export interface LastMinute {
  /** Of a consumer, or of '' for all. */
  ratesOf(consumer: string): Rates | undefined
  /** How many events a second were published to a sink. */
  publishedTo(sink: string): number | undefined
}

export async function readLastMinute({ db }: Runtime): Promise<LastMinute> {
  const minute = lastOf(Date.now())
  const rows = new Map((await db.run(READ_MINUTE, { minute })).map((row) => [row.consumer, row]))
  if (!rows.has('')) return { ratesOf: () => undefined, publishedTo: () => undefined }
  const published = new Map((await db.run(READ_PUBLISHED, { minute })).map((row) => [row.sink, row.published]))
  return {
    ratesOf: (consumer) => toRates(rows.get(consumer)),
    publishedTo: (sink) => perSecond(published.get(sink)),
  }
}

function toRates(row: LastRow | undefined): Rates {
  return {
    inPerSecond: perSecond(row?.received),
    outPerSecond: perSecond(row?.handled),
    duplicatesPerSecond: perSecond(row?.duplicates),
    failedPerSecond: perSecond(row?.failed),
  }
}

function perSecond(count: string | undefined): number {
  return Math.round((Number(count ?? 0) / 60) * 1_000) / 1_000
}
