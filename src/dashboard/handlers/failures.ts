/** Failures: dead messages, grouped by what they died of. A bounded number of them is looked at, the newest first. */
import { BODIES, DEAD, type DeadRow } from '../../postgres/sql/dashboard.js'
import type { FoundRow } from '../../postgres/sql/walk.js'
import { MAX_BIGINT } from '../../postgres/sql/walk.js'
import { runUnjitted } from '../../postgres/unjitted.js'
import type { Runtime } from '../../runtime.js'
import type { FailureGroup, Failures } from '../answers/index.js'
import type { BoxCall } from '../desk.js'
import { seenBy, time, toHead, type Viewer } from '../expose.js'
import { commonWords, fingerprintOf } from '../fingerprint.js'
import { quote } from '../quote.js'
import type { Seen } from '../redact.js'
import type { RouteInput } from '../routes.js'

const MOST = 4_000
const MOST_GROUPS = 500
const MOST_TYPES = 5
const HOURS = 24
const HOUR_MS = 3_600_000

interface Group {
  readonly fingerprint: string
  readonly newest: DeadRow
  readonly types: Set<string>
  readonly hours: number[]
  count: number
  first: number
  last: number
}

export async function failures({ part, viewer }: BoxCall, { consumer }: RouteInput<'failures'>): Promise<Failures> {
  const now = Date.now()
  const rows = await runUnjitted(part.reads.db, DEAD, { consumer: consumer ?? null, position: MAX_BIGINT, limit: MOST })
  const groups = [...groupsOf(rows, now).values()].sort((a, b) => b.count - a.count).slice(0, MOST_GROUPS)
  const seen = await seenSamples(viewer, part.reads, groups)
  return {
    at: time(now),
    groups: groups.map((group, at) => toAnswer(viewer, group, seen[at]!)),
    examined: rows.length,
    complete: rows.length < MOST,
  }
}

function groupsOf(rows: readonly DeadRow[], now: number): Map<string, Group> {
  const groups = new Map<string, Group>()
  for (const row of rows) {
    const fingerprint = fingerprintOf(row)
    const name = JSON.stringify([row.consumer, fingerprint])
    const at = Number(row.at)
    const group = groups.get(name) ?? {
      fingerprint,
      newest: row,
      types: new Set(),
      hours: new Array<number>(HOURS).fill(0),
      count: 0,
      first: at,
      last: at,
    }
    groups.set(name, group)
    group.count += 1
    group.first = Math.min(group.first, at)
    group.last = Math.max(group.last, at)
    if (group.types.size < MOST_TYPES) group.types.add(row.type)
    const hour = HOURS - 1 - Math.floor((now - at) / HOUR_MS)
    if (hour >= 0) group.hours[Math.min(hour, HOURS - 1)]! += 1
  }
  return groups
}

/** The words of a group are those of its newest message: what `redact` takes out of that one is taken out of them. */
async function seenSamples(viewer: Viewer, { db }: Runtime, groups: readonly Group[]): Promise<Pick<Seen, 'mask'>[]> {
  if (!viewer.redact || groups.length === 0) return groups.map(() => ({ mask: (text) => text }))
  const keys = groups.map(({ newest: { consumer, source, id } }) => [consumer, source, id] as const)
  const bodies = new Map((await db.run(BODIES, keys)).map((row) => [Number(row.of), row]))
  return groups.map(({ newest }, at) => {
    const stored = bodies.get(at)
    if (!stored) return { mask: () => '[redacted]' }
    const { consumer, source, id, at: received } = newest
    return seenBy(viewer, {
      ...stored,
      consumer,
      source,
      id,
      received,
      state: 'dead',
      fits: 'true',
      ord: '1',
    } satisfies FoundRow)
  })
}

function toAnswer(viewer: Viewer, group: Group, seen: Pick<Seen, 'mask'>): FailureGroup {
  const { fingerprint, newest, types, hours, count, first, last } = group
  const { consumer, source, id } = newest
  const words = { name: newest.name ?? 'Error', code: newest.code ?? undefined, message: newest.message ?? '' }
  const head = toHead(viewer, words, seen)
  return {
    fingerprint,
    consumer,
    types: [...types].sort(),
    name: head.name,
    ...(head.code !== undefined && { code: head.code }),
    // Masked first: what replaces what varies could hide a part of what is secret, and leave the rest.
    ...(head.message !== undefined && { message: commonWords({ ...newest, message: head.message }) }),
    count,
    firstAt: time(first),
    lastAt: time(last),
    hours,
    sample: { source, id },
    query: `consumer:${quote(consumer)} state:dead fingerprint:${fingerprint}`,
  }
}
