/** Keys: those that are blocked, by which message, and what waits behind it; and those that move and have the most waiting. */
import { BEHIND } from '../../postgres/sql/dashboard.js'
import { DEEPEST, type DepthRow } from '../../postgres/sql/depth.js'
import { BLOCKED, type BlockedRow } from '../../postgres/sql/blocked.js'
import { runUnjitted } from '../../postgres/unjitted.js'
import type { BlockedKey, DeepKey, Keys } from '../answers/index.js'
import type { BoxCall } from '../desk.js'
import { time, toHead } from '../expose.js'
import { MASK } from '../mask.js'
import { cursorInvalid } from '../problem.js'
import type { Seen } from '../redact.js'
import type { RouteInput } from '../routes.js'
import { seenStored } from '../seen-stored.js'

const MOST_KEYS = 100
const MOST_NEXT = 11
/** As far as BLOCKED counts. */
const MOST_WAITING = 1_001
const MOST_DEEP = 10
/** Some 20 000 messages. */
const PAGES = 400

export async function keys(call: BoxCall, { consumer, cursor }: RouteInput<'keys'>): Promise<Keys> {
  const { reads } = call.part
  const position = cursor === undefined ? null : openCursor(call, consumer, cursor)
  const deep = { consumer: consumer ?? null, pages: PAGES, most: MOST_WAITING, limit: MOST_DEEP }
  const [rows, deepest] = await Promise.all([
    runUnjitted(reads.db, BLOCKED, { consumer: consumer ?? null, position, limit: MOST_KEYS }),
    // They are the same on every page.
    cursor === undefined ? runUnjitted(reads.db, DEEPEST, deep) : [],
  ])
  const shown = rows.filter(hasFront)
  const seen = await seenFronts(call, shown)
  const lanes = shown.map(({ consumer: of, lane }) => [of, lane] as const)
  const next = lanes.length === 0 ? [] : await reads.db.run(BEHIND, { lanes, limit: MOST_NEXT })
  const blocked = shown.map((row, at) => ({
    ...toKey(call, row, seen[at]!),
    next: next.filter(({ of }) => Number(of) === at).map(toNext),
  }))
  const deepKeys = await toDeepKeys(call, deepest)
  const last = rows.length < MOST_KEYS ? undefined : rows.at(-1)
  return {
    keys: blocked.sort((a, b) => b.waiting - a.waiting),
    deepest: deepKeys,
    ...(deepest[0]?.sampled === 'true' && { sampled: true as const }),
    ...(last && { cursor: call.desk.signer.seal(bearerOf(call), { consumer, at: [last.consumer, last.lane] }) }),
  }
}

/** A key with the message that blocks it: somebody may have taken that away while the key was looked at. */
type Front = { readonly [K in keyof BlockedRow]: K extends Known ? NonNullable<BlockedRow[K]> : BlockedRow[K] }
type Known = 'source' | 'id' | 'type' | 'parked' | 'attempts' | 'at'

function hasFront(row: BlockedRow): row is Front {
  return row.id !== null && row.type !== null
}

function toKey({ viewer }: BoxCall, row: Front, seen: Pick<Seen, 'mask' | 'key'>): Omit<BlockedKey, 'next'> {
  const { consumer, type, parked, reason, name, code, message, attempts, at, waiting, first } = row
  const words = name === null ? undefined : { name, code: code ?? undefined, message: message ?? '' }
  return {
    consumer,
    key: seen.key ?? MASK,
    front: {
      source: row.origin_source ?? row.source,
      id: row.origin_id ?? row.id,
      type,
      state: parked,
      ...(reason !== null && { reason }),
      attempts: Number(attempts),
      ...(words && { error: toHead(viewer, words, seen) }),
    },
    blockedAt: time(at),
    waiting: Number(waiting),
    atLeast: Number(waiting) >= MOST_WAITING,
    ...(first !== null && { oldestWaitingAt: time(first) }),
  }
}

/** A key is shown as `redact` leaves it in the first of its messages. */
async function toDeepKeys({ part, viewer }: BoxCall, rows: readonly DepthRow[]): Promise<DeepKey[]> {
  const seen = viewer.redact ? await seenStored(viewer, part.reads, rows) : undefined
  return rows.map(({ consumer, lane, key, held, n, at }, place) => {
    const running = held === 'true'
    return {
      consumer,
      key: seen ? (seen[place]?.key ?? MASK) : (key ?? lane),
      running,
      waiting: Number(n) - (running ? 1 : 0),
      atLeast: Number(n) >= MOST_WAITING,
      oldestAt: time(at),
    }
  })
}

interface Next {
  readonly source: string
  readonly id: string
  readonly type: string
  readonly received: string
}

function toNext({ source, id, type, received }: Next): BlockedKey['next'][number] {
  return { source, id, type, receivedAt: time(received) }
}

/** A key is shown as `redact` leaves it in the message that blocks it. */
async function seenFronts({ part, viewer }: BoxCall, rows: readonly Front[]): Promise<Pick<Seen, 'mask' | 'key'>[]> {
  if (!viewer.redact) return rows.map(({ key, lane }) => ({ key: key ?? lane, mask: (text) => text }))
  const seen = await seenStored(viewer, part.reads, rows)
  return seen.map((one) => one ?? { key: undefined, mask: () => MASK })
}

/** What a cursor carries. */
interface Place {
  readonly consumer?: string
  readonly at: readonly [consumer: string, key: string]
}

function bearerOf({ access, part }: BoxCall): { kind: 'page'; subject: string; box: string } {
  return { kind: 'page', subject: access.subject, box: `keys ${part.name}` }
}

function openCursor(call: BoxCall, consumer: string | undefined, cursor: string): Place['at'] {
  const place = call.desk.signer.open(bearerOf(call), cursor) as Place | undefined
  if (place && place.consumer === consumer) return place.at
  throw cursorInvalid('list')
}
