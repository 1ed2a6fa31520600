/**
 * Minutes: what this process has counted goes into a table once a minute, for charts: what came in, was handled, failed or was a
 * copy, by consumer, and what was published, by sink. Each process adds its own. With it goes what was read of the whole box, by
 * one process for all. Nothing of it is on the way of a message: it is what the counters say anyway.
 */
import { sleep } from '../backoff.js'
import { beginTurn, type OwnTurn, type Turn } from '../lifecycle.js'
import type { Database } from '../postgres/database.js'
import { ADD_MINUTE, type MinuteRow, type SinkMinuteRow } from '../postgres/sql/minutes.js'
import { NOBODY } from './declarations.js'
import type { Metrics } from './metrics.js'
import type { Figure, Reading } from './reading.js'

const MINUTE_MS = 60_000
/** Processes that wake at the same second share what is read, which is good for ten; at the same moment they would all ask. */
const SPREAD_MS = 4_000
/** A stop does not wait for a slow database. */
const PATIENCE_MS = 2_000

export interface Minutes {
  start(): void
  /** Writes down what is left. Resolves then, and after so long at the latest. */
  stop(timeoutMs: number): Promise<void>
}

export interface MinutesParts {
  readonly db: Database
  readonly metrics: Metrics
  /** Told when it cannot be written, and when it can again. */
  readonly trouble: { failed(error: unknown): void; worked(): void }
  /** What is known of the whole box. Never rejects. */
  read(): Promise<Reading | undefined>
  /** Default: a minute. */
  readonly everyMs?: number
}

/** Of a consumer, since this process began. */
interface Counts {
  received: number
  handled: number
  failed: number
  duplicates: number
}

const NOTHING: Counts = { received: 0, handled: 0, failed: 0, duplicates: 0 }

/** Since this process began: counts by consumer, and how many events were published, by sink. */
interface Counted {
  readonly consumers: ReadonlyMap<string, Counts>
  readonly sinks: ReadonlyMap<string, number>
}

export function createMinutes({ db, metrics, trouble, read, everyMs = MINUTE_MS }: MinutesParts): Minutes {
  let turn: OwnTurn | undefined
  let timer: NodeJS.Timeout | undefined
  let written: Counted = { consumers: new Map(), sinks: new Map() }
  let writtenAt = performance.now()
  let writing: Promise<void> = Promise.resolve()

  const write = async (isLast: boolean): Promise<void> => {
    try {
      const counted: Counted = { consumers: countsOf(metrics), sinks: publishedOf(metrics) }
      const deltas = lessOf(counted.consumers, written.consumers)
      const sinks = publishedSince(counted.sinks, written.sinks)
      if (isLast && deltas.size === 0 && sinks.length === 0) return
      const reading = isLast ? undefined : await read()
      const now = performance.now()
      await db.run(ADD_MINUTE, { agoMs: (now - writtenAt) / 2, consumers: rowsOf(deltas, reading), sinks })
      written = counted
      writtenAt = now
      trouble.worked()
    } catch (error) {
      // What was not written is counted with the next minute.
      if (!isLast) trouble.failed(error)
    }
  }
  // One after the other: two at once would both write what neither has written yet.
  const writeNext = (isLast: boolean): Promise<void> => (writing = writing.then(() => write(isLast)))
  const schedule = (own: Turn): void => {
    // At the end of a minute of the clock, so that what was counted is of one minute.
    const delay = everyMs - (Date.now() % everyMs) + Math.random() * Math.min(SPREAD_MS, everyMs)
    timer = setTimeout(() => {
      // After a slow write the next turn may have begun, which has a timer of its own.
      void writeNext(false).then(() => (own.goesOn() ? schedule(own) : undefined))
    }, delay)
    timer.unref()
  }
  return {
    start() {
      if (turn) return
      turn = beginTurn()
      writtenAt = performance.now()
      schedule(turn)
    },
    async stop(timeoutMs) {
      if (!turn) return
      turn.end()
      turn = undefined
      clearTimeout(timer)
      await sleep(Math.min(timeoutMs, PATIENCE_MS), writeNext(true))
    },
  }
}

/** What became of runs that did not end well. One that was postponed, or met a lock, says nothing about its message. */
const FAILED = new Set(['failed', 'dead', 'quarantined'])

function countsOf(metrics: Metrics): ReadonlyMap<string, Counts> {
  const counts = new Map<string, Counts>()
  const add = (consumer: string, what: keyof Counts, value: number): void => {
    // The whole box first: what no consumer is known of is its alone.
    for (const of of consumer === '' ? [''] : ['', consumer]) {
      const own = counts.get(of) ?? { received: 0, handled: 0, failed: 0, duplicates: 0 }
      counts.set(of, own)
      own[what] += value
    }
  }
  const named = (label: string | undefined): string => (label === undefined || label === NOBODY ? '' : label)
  for (const [consumer, value] of metrics.received) add(consumer, 'received', value)
  for (const { labels, value } of metrics.registry.counters('oncebox.duplicates')) {
    add(named(labels[0]), 'duplicates', value)
  }
  for (const { labels, value } of metrics.registry.counters('oncebox.consumer.outcomes')) {
    const [consumer, , outcome = ''] = labels
    if (outcome === 'handled') add(named(consumer), 'handled', value)
    else if (FAILED.has(outcome)) add(named(consumer), 'failed', value)
  }
  return counts
}

function publishedOf(metrics: Metrics): ReadonlyMap<string, number> {
  const published = new Map<string, number>()
  for (const { labels, value } of metrics.registry.counters('messaging.client.sent.messages')) {
    const [sink = '', outcome] = labels
    if (outcome === 'published') published.set(sink, value)
  }
  return published
}

/** What has been counted since; those of which nothing was are left out. */
function lessOf(now: ReadonlyMap<string, Counts>, before: ReadonlyMap<string, Counts>): ReadonlyMap<string, Counts> {
  const deltas = new Map<string, Counts>()
  for (const [consumer, counts] of now) {
    const old = before.get(consumer)
    const delta = {
      received: counts.received - (old?.received ?? 0),
      handled: counts.handled - (old?.handled ?? 0),
      failed: counts.failed - (old?.failed ?? 0),
      duplicates: counts.duplicates - (old?.duplicates ?? 0),
    }
    if (Object.values(delta).some((value) => value !== 0)) deltas.set(consumer, delta)
  }
  return deltas
}

function publishedSince(now: ReadonlyMap<string, number>, before: ReadonlyMap<string, number>): SinkMinuteRow[] {
  return [...now].flatMap(([sink, count]): SinkMinuteRow[] => {
    const published = count - (before.get(sink) ?? 0)
    return published === 0 ? [] : [[sink, published]]
  })
}

interface Read {
  pending: number
  /** Undefined while it is paused: then nobody is behind. */
  lagMs: number | undefined
  dead: number
  quarantined: number
}

/** One of the whole box in any case: it says that somebody was there. A consumer with nothing to tell has none. */
function rowsOf(deltas: ReadonlyMap<string, Counts>, reading: Reading | undefined): MinuteRow[] {
  const read = reading ? readOf(reading.figures) : new Map<string, Read>()
  const names = new Set([
    '',
    ...deltas.keys(),
    ...[...read].filter(([, one]) => hasSomething(one)).map(([name]) => name),
  ])
  return [...names].map((name): MinuteRow => {
    const { received, handled, failed, duplicates } = deltas.get(name) ?? NOTHING
    const one = read.get(name)
    const found = one ? ([one.pending, one.lagMs ?? null, one.dead, one.quarantined] as const) : NOT_READ
    return [name, received, handled, failed, duplicates, ...found]
  })
}

const NOT_READ = [null, null, null, null] as const

function hasSomething({ pending, lagMs = 0, dead, quarantined }: Read): boolean {
  return pending + lagMs + dead + quarantined > 0
}

function readOf(figures: readonly Figure[]): ReadonlyMap<string, Read> {
  const all: Read = { pending: 0, lagMs: 0, dead: 0, quarantined: 0 }
  const read = new Map<string, Read>([['', all]])
  const of = (name: string): Read => {
    const own = read.get(name) ?? { pending: 0, lagMs: 0, dead: 0, quarantined: 0 }
    read.set(name, own)
    return own
  }
  for (const [metric, [consumer = '', state], value] of figures) {
    const name = consumer === NOBODY ? '' : consumer
    if (metric === 'oncebox.messages' && (state === 'pending' || state === 'dead' || state === 'quarantined')) {
      if (name !== '') of(name)[state] = value
      all[state] += value
    } else if (metric === 'oncebox.consumer.lag') of(name).lagMs = Math.round(value * 1_000)
  }
  for (const [metric, [consumer = ''], value] of figures) {
    if (metric === 'oncebox.consumer.paused' && value === 1) of(consumer).lagMs = undefined
  }
  for (const [name, { lagMs = 0 }] of read) if (name !== '') all.lagMs = Math.max(all.lagMs ?? 0, lagMs)
  return read
}
