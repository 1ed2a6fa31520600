/**
 * Failures: dead messages, grouped by what they died of. The groups come from an index, each with its count; what an older version
 * has recorded has no fingerprint until the janitor gives it one, and is put into its group here.
 */
import { BLOCKING_GROUPS, type BlockingGroupRow } from '../../postgres/sql/blocked.js'
import {
  FAILURE_GROUPS,
  UNGROUPED,
  type GroupRow,
  type UngroupedRow,
  type CausedRow,
} from '../../postgres/sql/failures.js'
import { readJson } from '../../postgres/statement.js'
import { runUnjitted } from '../../postgres/unjitted.js'
import type { Runtime } from '../../runtime.js'
import type { FailureGroup, Failures } from '../answers/index.js'
import type { BoxCall, BoxViewer } from '../desk.js'
import { time, toHead, type Viewer } from '../expose.js'
import { commonWords, fingerprintOf } from '../../fingerprint.js'
import { MASK } from '../mask.js'
import { cursorInvalid } from '../problem.js'
import { quote } from '../quote.js'
import type { Seen } from '../redact.js'
import type { RouteInput } from '../routes.js'
import { seenStored } from '../seen-stored.js'

/** So many are counted, shared out among the groups. */
const MOST = 200_000
const MOST_UNGROUPED = 1_000
/** Of one consumer, and on the page. */
const MOST_FOUND = 2_000
const MOST_GROUPS = 100
const MOST_KEYS = 1_000
const MOST_TYPES = 5
const HOURS = 24
const HOUR_MS = 3_600_000

interface Group {
  readonly fingerprint: string
  readonly newest: Newest
  readonly types: Set<string>
  readonly hours: number[]
  count: number
  atLeast: boolean
  first: number
  last: number
}

type Newest = CausedRow & { readonly consumer: string; readonly source: string; readonly id: string }

export async function failures(call: BoxCall, input: RouteInput<'failures'>): Promise<Failures> {
  const { part, viewer } = call
  const now = Date.now()
  const { consumer = null, minutes = null } = input
  const skipped = input.cursor === undefined ? 0 : openCursor(call, input, input.cursor)
  const ungrouped = await runUnjitted(part.reads.db, UNGROUPED, { consumer, limit: MOST_UNGROUPED })
  // They may be of any group: then all of them are on one page.
  const shown = ungrouped.length === 0 ? MOST_GROUPS : MOST_FOUND
  const limits = { groups: MOST_FOUND, limit: MOST, shown, skipped }
  const [found, blocking] = await Promise.all([
    runUnjitted(part.reads.db, FAILURE_GROUPS, { consumer, minutes, ...limits }),
    runUnjitted(part.reads.db, BLOCKING_GROUPS, { consumer, limit: MOST_KEYS }),
  ])
  const all = new Map(found.map((row) => [nameOf(row.consumer, row.fingerprint), toGroup(row, now)]))
  const since = minutes === null ? -Infinity : now - minutes * 60_000
  const late = ungrouped.filter((row) => Number(row.at) >= since)
  for (const row of late) addTo(all, row, now)
  const groups = [...all.values()].sort((a, b) => b.count - a.count)
  const seen = await seenSamples(viewer, part.reads, groups)
  const blocks = new Map(blocking.map((row) => [nameOf(row.consumer, row.fingerprint), toBlocks(row)]))
  const [first] = found
  const total = Number(first?.groups ?? 0) + all.size - found.length
  const next = skipped + groups.length
  return {
    at: time(now),
    groups: groups.map((group, at) => {
      const blocked = blocks.get(nameOf(group.newest.consumer, group.fingerprint))
      return { ...toAnswer(viewer, group, seen[at]!), ...(blocked && { blocks: blocked }) }
    }),
    total,
    examined: Number(first?.messages ?? 0) + late.length,
    complete: ungrouped.length < MOST_UNGROUPED && first?.cut !== 'true',
    ...(next < total && groups.length > 0 && { cursor: sealCursor(call, input, next) }),
  }
}

type Asked = Pick<RouteInput<'failures'>, 'consumer' | 'minutes'>

/** What a cursor carries. */
interface Place extends Asked {
  readonly from: number
}

function bearerOf({ access, part }: BoxCall): { kind: 'page'; subject: string; box: string } {
  return { kind: 'page', subject: access.subject, box: `failures ${part.name}` }
}

function sealCursor(call: BoxCall, { consumer, minutes }: Asked, from: number): string {
  return call.desk.signer.seal(bearerOf(call), { consumer, minutes, from } satisfies Place)
}

function openCursor(call: BoxCall, { consumer, minutes }: Asked, cursor: string): number {
  const place = call.desk.signer.open(bearerOf(call), cursor) as Place | undefined
  if (place && place.consumer === consumer && place.minutes === minutes) return place.from
  throw cursorInvalid('list')
}

function nameOf(consumer: string, fingerprint: string): string {
  return JSON.stringify([consumer, fingerprint])
}

function toBlocks({ keys, cut }: BlockingGroupRow): FailureGroup['blocks'] {
  return { keys: Number(keys), atLeast: cut === 'true' }
}

function toGroup(row: GroupRow, now: number): Group {
  const hours = new Array<number>(HOURS).fill(0)
  // What is a moment ahead of this statement's clock is of the last hour, too.
  for (const [hour, n] of Object.entries(readJson(row.hours))) hours[Math.min(Number(hour), HOURS) - 1]! += n
  return {
    fingerprint: row.fingerprint,
    newest: row,
    types: new Set(readJson(row.types)),
    hours,
    count: Number(row.n),
    atLeast: Number(row.n) >= Number(row.most),
    first: Number(row.first ?? now),
    last: Number(row.last ?? now),
  }
}

function addTo(groups: Map<string, Group>, row: UngroupedRow, now: number): void {
  const fingerprint = fingerprintOf(row)
  const name = nameOf(row.consumer, fingerprint)
  const at = Number(row.at)
  const empty = { types: new Set<string>(), hours: new Array<number>(HOURS).fill(0), count: 0, first: at, last: at }
  const group = groups.get(name) ?? { fingerprint, newest: row, atLeast: false, ...empty }
  groups.set(name, group)
  group.count += 1
  group.first = Math.min(group.first, at)
  group.last = Math.max(group.last, at)
  if (group.types.size < MOST_TYPES) group.types.add(row.type)
  const hour = HOURS - 1 - Math.floor((now - at) / HOUR_MS)
  if (hour >= 0) group.hours[Math.min(hour, HOURS - 1)]! += 1
}

/** The words of a group are those of its newest message: what `redact` takes out of that one is taken out of them. */
async function seenSamples(viewer: Viewer, reads: Runtime, groups: readonly Group[]): Promise<Pick<Seen, 'mask'>[]> {
  if (!viewer.redact) return groups.map(() => ({ mask: (text) => text }))
  const seen = await seenStored(viewer, reads, groups.map(({ newest, last }) => ({ ...newest, at: last }))) // prettier-ignore
  return seen.map((one) => one ?? { mask: () => MASK })
}

function toAnswer(viewer: BoxViewer, group: Group, seen: Pick<Seen, 'mask'>): FailureGroup {
  const { newest, types, hours, count, atLeast, first, last } = group
  const { consumer, source, id } = newest
  const fingerprint = viewer.fingerprints.show(group.fingerprint)
  const words = { name: newest.name ?? 'Error', code: newest.code ?? undefined, message: newest.message ?? '' }
  const head = toHead(viewer, words, seen)
  const cause = newest.cause === null ? undefined : toCause(viewer, newest.cause, seen)
  return {
    fingerprint,
    consumer,
    types: [...types].sort(),
    name: head.name,
    ...(head.code !== undefined && { code: head.code }),
    ...(cause !== undefined && { cause }),
    // Masked first: what replaces what varies could hide a part of what is secret, and leave the rest.
    ...(head.message !== undefined && { message: commonWords({ ...newest, message: head.message }) }),
    count,
    ...(atLeast && { atLeast }),
    firstAt: time(first),
    lastAt: time(last),
    hours,
    sample: { source, id },
    query: `consumer:${quote(consumer)} state:dead fingerprint:${fingerprint}`,
  }
}

/** Its name and its code are the program's, and plain. */
function toCause(viewer: BoxViewer, recorded: string, seen: Pick<Seen, 'mask'>): string {
  const [inner, number] = JSON.parse(recorded) as readonly (string | null)[]
  const { name, code } = toHead(viewer, { name: inner ?? 'Error', code: number ?? undefined, message: '' }, seen)
  return code === undefined ? name : `${name} ${code}`
}
