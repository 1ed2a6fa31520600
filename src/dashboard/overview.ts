/** Overview: one reading of a box for everybody who looks. What of it not everybody may see, `shownOverview` takes out. */
import type { Counts as AdminCounts } from '../admin/types.js'
import { consumerCounts, outboxCounts } from '../admin/status.js'
import { GONE_MS } from '../figures.js'
import { DELIVERIES, VOCABULARY, type SinkRow } from '../postgres/sql/dashboard.js'
import { BLOCKED_KEYS } from '../postgres/sql/failures.js'
import { readJson } from '../postgres/statement.js'
import type { Runtime } from '../runtime.js'
import { runUnjitted } from '../postgres/unjitted.js'
import type { ConsumerStatus, FailureHead, Finding, Outbox, Overview, SinkStatus } from './answers/index.js'
import { withoutWords } from '../health.js'
import { maySeeBodies, toHead, type Viewer } from './expose.js'
import type { Inside } from './options.js'
import { readRates, withSince } from './history.js'
import { EVERYBODY } from './everybody.js'

/** Further is not counted. */
const MOST_EVENTS = 10_000
const MOST_KEYS = 1_000
/** A consumer, or a sink, that is behind by more than this is said to be. */
export const BEHIND_MS = 120_000

export async function readOverview({ name, box, stage }: Inside, reads: Runtime): Promise<Overview> {
  const declared = stage.consumers()
  const began = performance.now()
  const [known] = await reads.db.run(VOCABULARY, null)
  const ms = Math.round((performance.now() - began) * 10) / 10
  const now = Date.now()
  const [counted, sinks, blocked, health, rates] = await Promise.all([
    consumerCounts(reads, declared.map((one) => one.name)),
    readSinks(reads, EVERYBODY, stage.failing()),
    runUnjitted(reads.db, BLOCKED_KEYS, { consumer: null, limit: MOST_KEYS }),
    box.health(),
    readRates(reads),
  ]) // prettier-ignore
  const registered = new Map(readJson(known!.consumers).map((one) => [one.name, one]))
  const consumers = Object.entries(counted).map(([consumer, counts]): ConsumerStatus => {
    const local = declared.find((one) => one.name === consumer)
    const { paused, ...rest } = counts
    const own = consumer === '' ? undefined : rates(consumer)
    return {
      name: consumer,
      ...rest,
      paused: paused === true,
      order: local?.options.order ?? registered.get(consumer)?.order ?? 'none',
      types: registered.get(consumer)?.types ?? local?.types ?? [],
      ...(local && { mode: local.options.mode }),
      ...(consumer !== '' && { limitMs: BEHIND_MS }),
      ...(own && { rates: own }),
    }
  })
  const keys = Number(blocked[0]!.keys)
  const { reasons = [], ...healthy } = health
  const all = rates('')
  const overview = {
    at: new Date(now).toISOString(),
    box: name,
    health: { ...healthy, reasons },
    server: { version: known!.server, ms },
    consumers,
    ...(all && { rates: all }),
    sinks,
    blocked: { keys, complete: keys < MOST_KEYS },
  }
  return { ...overview, findings: await withSince(reads, findingsOf(overview), BEHIND_MS) }
}

/**
 * Why a box is not healthy may quote an error: the words are for those who may see them. An error of a whole sink is of no one
 * message that `redact` could be asked about, so with it nobody gets them.
 */
export function shownOverview(viewer: Viewer, { health, findings, ...overview }: Overview): Overview {
  const shown = maySeeBodies(viewer) && !viewer.redact ? (reason: string) => reason : withoutWords
  return {
    ...overview,
    health: { ...health, reasons: health.reasons.map(shown) },
    findings: findings.map((one) => (one.text === undefined ? one : { ...one, text: shown(one.text) })),
  }
}

export async function readOutbox({ stage }: Inside, reads: Runtime, viewer: Viewer): Promise<Outbox> {
  const [counted, sinks] = await Promise.all([outboxCounts(reads), readSinks(reads, viewer, stage.failing())])
  return { types: typesOf(counted), sinks }
}

function typesOf(outbox: Readonly<Record<string, AdminCounts>>): Outbox['types'] {
  return Object.entries(outbox).map(([type, counts]) => ({ type, ...counts }))
}

async function readSinks({ db }: Runtime, viewer: Viewer, failing: readonly string[]): Promise<SinkStatus[]> {
  const rows = await runUnjitted(db, DELIVERIES, { limit: MOST_EVENTS, goneMs: GONE_MS })
  return rows.map((row) => ({ ...toSink(row, viewer), ...(failing.includes(row.sink) && { failing: true as const }) }))
}

function toSink(
  { sink, types, hosts, ready, delayed, dead, oldest, error, held }: SinkRow,
  viewer: Viewer,
): SinkStatus {
  const failure = error === null ? undefined : (JSON.parse(error) as { name: string; code?: string; message: string })
  return {
    name: sink,
    ...(types !== null && { types: readJson(types) }),
    processes: readJson(hosts),
    ready: Number(ready),
    delayed: Number(delayed),
    dead: Number(dead),
    most: MOST_EVENTS,
    lagMs: oldest === null ? 0 : Math.max(0, Date.now() - Number(oldest)),
    held: held === 'true',
    ...(failure && { error: headOf(viewer, failure) }),
  }
}

/** It is the error of one of many events, and it is not known here of which: with `redact` nobody gets its words. */
function headOf(viewer: Viewer, failure: Parameters<typeof toHead>[1]): FailureHead {
  const { message, ...head } = toHead(viewer, failure, { mask: (text) => text })
  return viewer.redact || message === undefined ? head : { ...head, message }
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
  const late = sinks
    .filter(({ name, lagMs }) => name !== '' && lagMs > BEHIND_MS)
    .map(({ name, lagMs, ready }): Finding => ({
      code: 'sink-behind',
      severity: 'serious',
      sink: name,
      lagMs,
      count: ready,
    }))
  const counted = (code: Finding['code'], severity: Finding['severity'], count: number): Finding[] =>
    count > 0 ? [{ code, severity, count }] : []
  return [
    ...(health.ok ? [] : health.reasons.map((text): Finding => ({ code: 'unhealthy', severity: 'serious', text }))),
    ...behind,
    ...late,
    ...counted('blocked', 'serious', blocked.keys),
    ...counted('quarantined', 'warning', sum('quarantined')),
    ...counted('dead', 'warning', sum('dead')),
  ]
}
