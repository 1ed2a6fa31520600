/** Overview: one reading of a box for everybody who looks. What of it not everybody may see, `shownOverview` takes out. */
import type { Counts as AdminCounts } from '../admin/types.js'
import { consumerCounts, outboxCounts } from '../admin/status.js'
import { GONE_MS } from '../figures.js'
import { DELIVERIES, VOCABULARY, type SinkRow } from '../postgres/sql/dashboard.js'
import { BLOCKED_CONSUMERS, type BlockedConsumerRow } from '../postgres/sql/blocked.js'
import { readJson } from '../postgres/statement.js'
import type { Runtime } from '../runtime.js'
import { runUnjitted } from '../postgres/unjitted.js'
import type { ConsumerStatus, FailureHead, Finding, Outbox, Overview, SinkStatus } from './answers/index.js'
import { withoutWords } from '../health.js'
import { maySeeBodies, time, toHead, type Viewer } from './expose.js'
import type { Inside } from './options.js'
import { readLastMinute, type LastMinute } from './history.js'
import { EVERYBODY } from './everybody.js'
import { readPauses, withSince } from './since.js'

/** Further is not counted. */
const MOST_EVENTS = 10_000
const MOST_KEYS = 1_000
const MOST_BEHIND = 10_000
/** A consumer, or a sink, that is behind by more than this is said to be. */
export const BEHIND_MS = 120_000

export async function readOverview({ name, box, stage }: Inside, reads: Runtime): Promise<Overview> {
  const declared = stage.consumers()
  const began = performance.now()
  const [known] = await reads.db.run(VOCABULARY, null)
  const ms = Math.round((performance.now() - began) * 10) / 10
  const now = Date.now()
  const [counted, sinks, blocked, health, minute] = await Promise.all([
    consumerCounts(reads, declared.map((one) => one.name)),
    readSinks(reads, stage.failing()),
    runUnjitted(reads.db, BLOCKED_CONSUMERS, { keys: MOST_KEYS, waiting: MOST_BEHIND }),
    box.health(),
    readLastMinute(reads),
  ]) // prettier-ignore
  const pauses = Object.values(counted).some(({ paused }) => paused) ? await readPauses(reads) : undefined
  const stuck = new Map(blocked.map((row) => [row.consumer, Number(row.keys)]))
  const registered = new Map(readJson(known!.consumers).map((one) => [one.name, one]))
  const consumers = Object.entries(counted).map(([consumer, counts]): ConsumerStatus => {
    const local = declared.find((one) => one.name === consumer)
    const { paused, ...rest } = counts
    const own = consumer === '' ? undefined : minute.ratesOf(consumer)
    const pausedAt = paused ? pauses?.get(consumer) : undefined
    const blockedKeys = stuck.get(consumer)
    return {
      name: consumer,
      ...rest,
      paused: paused === true,
      ...(pausedAt !== undefined && { pausedAt: time(pausedAt) }),
      ...(blockedKeys !== undefined && { blockedKeys }),
      order: local?.options.order ?? registered.get(consumer)?.order ?? 'none',
      types: registered.get(consumer)?.types ?? local?.types ?? [],
      ...(local && { mode: local.options.mode }),
      ...(consumer !== '' && { limitMs: BEHIND_MS }),
      ...(own && { rates: own }),
    }
  })
  const { reasons = [], ...healthy } = health
  const all = minute.ratesOf('')
  const overview = {
    at: new Date(now).toISOString(),
    box: name,
    health: { ...healthy, reasons, attached: stage.runtime.origins.length },
    server: { version: known!.server, ms },
    consumers,
    ...(all && { rates: all }),
    sinks: sinks.map((sink) => withRate(sink, minute)),
    blocked: blockedOf(blocked),
  }
  const recorded = { limitMs: BEHIND_MS, blockedAt: firstOf(blocked) }
  return { ...overview, findings: await withSince(reads, findingsOf(overview), recorded) }
}

function blockedOf(rows: readonly BlockedConsumerRow[]): Overview['blocked'] {
  const sum = (column: 'keys' | 'waiting'): number => rows.reduce((all, row) => all + Number(row[column]), 0)
  const [keys, waiting] = [sum('keys'), sum('waiting')]
  const complete = keys < MOST_KEYS
  return { keys, complete, waiting, atLeast: !complete || waiting >= MOST_BEHIND }
}

/** When the first of the keys was blocked. */
function firstOf(rows: readonly BlockedConsumerRow[]): number | undefined {
  const times = rows.flatMap(({ since }) => (since === null ? [] : Number(since)))
  return times.length === 0 ? undefined : Math.min(...times)
}

/**
 * Why a box is not healthy may quote an error: the words are for those who may see them. An error of a whole sink is of no one
 * message that `redact` could be asked about, so with it nobody gets them.
 */
export function shownOverview(viewer: Viewer, { health, findings, sinks, ...overview }: Overview): Overview {
  const shown = maySeeWords(viewer) ? (reason: string) => reason : withoutWords
  return {
    ...overview,
    sinks: sinks.map((sink) => shownSink(viewer, sink)),
    health: { ...health, reasons: health.reasons.map(shown) },
    findings: findings.map((one) => (one.text === undefined ? one : { ...one, text: shown(one.text) })),
  }
}

function maySeeWords(viewer: Viewer): boolean {
  return maySeeBodies(viewer) && !viewer.redact
}

/** Its error is of one of many events, and it is not known here of which: with `redact` nobody gets its words. */
function shownSink(viewer: Viewer, sink: SinkStatus): SinkStatus {
  if (maySeeWords(viewer)) return sink
  const { error, deadError, ...rest } = sink
  return { ...rest, ...(error && { error: wordless(error) }), ...(deadError && { deadError: wordless(deadError) }) }
}

function wordless({ message: _, ...error }: FailureHead): FailureHead {
  return error
}

export async function readOutbox({ stage }: Inside, reads: Runtime, viewer: Viewer): Promise<Outbox> {
  const [counted, sinks, minute] = await Promise.all([
    outboxCounts(reads),
    readSinks(reads, stage.failing()),
    readLastMinute(reads),
  ])
  return { types: typesOf(counted), sinks: sinks.map((sink) => shownSink(viewer, withRate(sink, minute))) }
}

/** '' is no sink: nothing is published to it. */
function withRate(sink: SinkStatus, minute: LastMinute): SinkStatus {
  const publishedPerSecond = sink.name === '' ? undefined : minute.publishedTo(sink.name)
  return { ...sink, ...(publishedPerSecond !== undefined && { publishedPerSecond }) }
}

function typesOf(outbox: Readonly<Record<string, AdminCounts>>): Outbox['types'] {
  return Object.entries(outbox).map(([type, counts]) => ({ type, ...counts }))
}

/** With the words of their errors, which are not for everybody. */
async function readSinks({ db }: Runtime, failing: ReadonlyMap<string, number>): Promise<SinkStatus[]> {
  const rows = await runUnjitted(db, DELIVERIES, { limit: MOST_EVENTS, goneMs: GONE_MS })
  return rows.map((row) => {
    const since = failing.get(row.sink)
    return { ...toSink(row), ...(since !== undefined && { failing: true as const, failingSince: time(since) }) }
  })
}

function toSink({ sink, types, hosts, ready, delayed, dead, died, lag, error, fatal, held }: SinkRow): SinkStatus {
  const [failure, last] = [headOf(error), headOf(fatal)]
  return {
    name: sink,
    ...(types !== null && { types: readJson(types) }),
    processes: readJson(hosts),
    ready: Number(ready),
    delayed: Number(delayed),
    dead: Number(dead),
    ...(died !== null && { deadSince: time(died) }),
    most: MOST_EVENTS,
    lagMs: Number(lag),
    held: held === 'true',
    ...(failure && { error: failure }),
    ...(last && { deadError: last }),
  }
}

function headOf(recorded: string | null): FailureHead | undefined {
  if (recorded === null) return undefined
  const failure = JSON.parse(recorded) as { name: string; code?: string; message: string }
  return toHead(EVERYBODY, failure, { mask: (text) => text })
}

/** Paused consumers are not behind: somebody wants it so. */
function findingsOf({ consumers, sinks, blocked, health }: Omit<Overview, 'findings'>): Finding[] {
  const sum = (state: 'dead' | 'quarantined'): number => consumers.reduce((all, one) => all + one[state], 0)
  const behind = consumers
    .filter(({ paused, lagMs }) => !paused && lagMs > BEHIND_MS)
    .sort((a, b) => b.lagMs - a.lagMs)
    .map(({ name, lagMs, pending }): Finding => ({
      code: 'behind',
      severity: 'serious',
      consumer: name,
      lagMs,
      count: pending,
    }))
  const unwell = health.ok ? [] : health.reasons.map((text) => unhealthy(text, sinks))
  const isTold = (name: string): boolean => unwell.some(({ sink }) => sink === name)
  const late = sinks
    .filter(({ name, lagMs }) => name !== '' && lagMs > BEHIND_MS && !isTold(name))
    .map(({ name, lagMs, ready }): Finding => ({
      code: 'sink-behind',
      severity: 'serious',
      sink: name,
      lagMs,
      count: ready,
    }))
  const refused = sinks
    .filter(({ dead }) => dead > 0)
    .map(({ name, dead, deadSince }): Finding => ({
      ...{ code: 'sink-dead', severity: 'warning', sink: name, count: dead },
      ...(deadSince !== undefined && { since: deadSince }),
    }))
  const counted = (code: Finding['code'], severity: Finding['severity'], count: number): Finding[] =>
    count > 0 ? [{ code, severity, count }] : []
  return [
    ...unwell,
    ...behind,
    ...late,
    ...counted('blocked', 'serious', blocked.keys),
    ...counted('quarantined', 'warning', sum('quarantined')),
    ...counted('dead', 'warning', sum('dead')),
    ...refused,
  ]
}

/** Of a sink that is down it is known which, and since when. */
function unhealthy(text: string, sinks: readonly SinkStatus[]): Finding {
  const down = sinks.find(({ name, failing }) => failing && withoutWords(text) === `sink ${name} is down`)
  return {
    code: 'unhealthy',
    severity: 'serious',
    text,
    ...(down && { sink: down.name, count: down.ready + down.delayed }),
    ...(down?.failingSince !== undefined && { since: down.failingSince }),
  }
}
