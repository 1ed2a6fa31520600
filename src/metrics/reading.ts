/**
 * The figures of the database: lag, depth by state, what is to be published. They are read when somebody asks for metrics and
 * the last reading is over its time, by one process for all: it holds the lock of the row that the reading is kept in. The
 * others show what is in that row. No session lock and no timer: it works behind a pooler that shares connections by the
 * transaction, and where nobody asks nothing is read.
 */
import { sleep } from '../backoff.js'
import type { Database } from '../postgres/database.js'
import {
  ELECT_READER,
  READ_CONSUMERS,
  READ_QUARANTINE,
  READ_READING,
  READ_SINKS,
  READ_SIZES,
  WRITE_READING,
  type ConsumerFigures,
  type QuarantineFigures,
  type SinkFigures,
} from '../postgres/sql/reading.js'
import { readJson } from '../postgres/statement.js'
import { declarationOf, METRICS, NOBODY, type LabelsOf, type MetricName } from './declarations.js'

/** A value of a metric: its name, its labels in the order of their declaration, and the number. */
export type Figure = readonly [name: MetricName, labels: readonly string[], value: number]

export interface Reading {
  readonly figures: readonly Figure[]
  readonly ageMs: number
}

/** At most so often for all processes. */
export const EVERY_MS = 10_000
/** So many rows of an index a count goes through. */
const MOST = 20_000
const MOST_QUARANTINED = 10_000
/** What was read so long ago is shown once more: scrapers that ask at once share a look. */
const FRESH_MS = 1_000

export interface Reader {
  /** The newest reading that is to be had within so long; undefined if there is none. Never rejects. */
  read(patienceMs: number): Promise<Reading | undefined>
}

interface Listener {
  read(): void
  /** Why figures could not be read; what was read before is answered. */
  failed(error: unknown): void
}

export function createReader(db: Database, listener: Listener): Reader {
  let last: { readonly reading: Reading; readonly at: number } | undefined
  let looking: Promise<void> | undefined

  /** Answers whether another reading is due. */
  const look = async (): Promise<boolean> => {
    const kept = await readKept(db)
    if (kept?.reading) last = { reading: kept.reading, at: performance.now() }
    return kept?.due ?? false
  }
  const lookAndRead = async (): Promise<void> => {
    try {
      // What others have read is shown, also under a role that may not read by itself.
      if ((await look()) && (await takeReading(db))) await look()
      listener.read()
    } catch (error) {
      listener.failed(error)
    }
  }
  return {
    async read(patienceMs) {
      if (last === undefined || performance.now() - last.at > FRESH_MS) {
        looking ??= lookAndRead().finally(() => (looking = undefined))
        await sleep(patienceMs, looking)
      }
      if (last === undefined) return undefined
      const { figures, ageMs } = last.reading
      return { figures, ageMs: ageMs + performance.now() - last.at }
    },
  }
}

async function readKept(db: Database): Promise<{ reading: Reading | undefined; due: boolean } | undefined> {
  const [row] = await db.run(READ_READING, null)
  if (!row) return undefined
  const reading = row.age === null ? undefined : { figures: checkFigures(row.figures), ageMs: Number(row.age) }
  return { reading, due: row.due === 'true' }
}

/** Reads the figures, if it is time and nobody else does. Answers whether it has. */
async function takeReading(db: Database): Promise<boolean> {
  return db.transaction(async (tx) => {
    const started = performance.now()
    const [elected] = await db.run(ELECT_READER, null, tx)
    if (!elected) return false
    const consumers = await db.run(READ_CONSUMERS, [MOST], tx)
    const quarantine = await db.run(READ_QUARANTINE, [MOST_QUARANTINED], tx)
    const sinks = await db.run(READ_SINKS, [MOST], tx)
    const [sizes] = await db.run(READ_SIZES, null, tx)
    const kept = sumBy('consumer', quarantine)
    const figures = [
      ...consumers.flatMap((row) => ofConsumer(row, kept.get(row.name) ?? 0)),
      ...[...sumBy('reason', quarantine)].map(([reason, count]) => figure('oncebox.quarantine', [reason], count)),
      // What nobody was asked about is no consumer's.
      figure('oncebox.messages', [NOBODY, 'quarantined'], kept.get('') ?? 0),
      ...sinks.flatMap(ofSink),
      ...Object.entries(readJson(sizes!.sizes)).map(([table, bytes]) => figure('oncebox.table.size', [table], bytes)),
      figure('oncebox.reading.duration', [], (performance.now() - started) / 1_000),
    ]
    await db.run(WRITE_READING, { figures: JSON.stringify(figures), everyMs: EVERY_MS }, tx)
    return true
  })
}

function figure<N extends MetricName>(name: N, labels: LabelsOf<N>, value: number): Figure {
  return [name, labels as readonly string[], value]
}

function ofConsumer(row: ConsumerFigures, inQuarantine: number): Figure[] {
  const { name } = row
  const states = {
    pending: Number(row.pending),
    processing: Number(row.processing),
    dead: Number(row.dead),
    quarantined: Number(row.quarantined) + inQuarantine,
    discarded: Number(row.discarded),
  }
  return [
    ...Object.entries(states).map(([state, count]) => figure('oncebox.messages', [name, state], count)),
    figure('oncebox.consumer.lag', [name], Number(row.lag) / 1_000),
    figure('oncebox.consumer.paused', [name], row.paused === 'true' ? 1 : 0),
    figure('oncebox.retention.horizon', [name], Number(row.retain_ms) / 1_000),
  ]
}

function sumBy(what: 'consumer' | 'reason', quarantine: readonly QuarantineFigures[]): ReadonlyMap<string, number> {
  const sums = new Map<string, number>()
  for (const row of quarantine) sums.set(row[what], (sums.get(row[what]) ?? 0) + Number(row.kept))
  return sums
}

function ofSink({ name, pending, dead, discarded, lag }: SinkFigures): Figure[] {
  const sink = name === '' ? NOBODY : name
  return [
    figure('oncebox.outbox.events', [sink, 'pending'], Number(pending)),
    figure('oncebox.outbox.events', [sink, 'dead'], Number(dead)),
    figure('oncebox.outbox.events', [sink, 'discarded'], Number(discarded)),
    ...(name === '' ? [] : [figure('oncebox.relay.lag', [sink], Number(lag) / 1_000)]),
  ]
}

/** A process of another version may have written it: what this one does not know is left out. */
function checkFigures(text: string): readonly Figure[] {
  const figures: unknown = JSON.parse(text)
  return Array.isArray(figures) ? figures.filter(isFigure) : []
}

function isFigure(given: unknown): given is Figure {
  if (!Array.isArray(given)) return false
  const [name, labels, value] = given as unknown[]
  if (typeof name !== 'string' || !Object.hasOwn(METRICS, name) || typeof value !== 'number') return false
  const declared = declarationOf(name as MetricName)
  return declared.database === true && Array.isArray(labels) && labels.length === declared.labels.length
}
