/** A message: everything known of an id. */
import { checkFilter, STATES } from '../../admin/filter.js'
import { step, type Place, type Position } from '../../admin/walk.js'
import { idempotencyKey } from '../../effects/effect.js'
import { messageOf } from '../../inbox/entry.js'
import { parseFailure } from '../../inbox/outcome.js'
import { ATTEMPTS, type AttemptRow } from '../../postgres/sql/admin.js'
import { EFFECTS_OF, FATES, HELD_UNTIL, type EffectRow, type FateRow } from '../../postgres/sql/dashboard.js'
import type { MessageKey } from '../../postgres/sql/rules.js'
import type { FoundRow } from '../../postgres/sql/walk.js'
import type { Runtime } from '../../runtime.js'
import type { Attempt, Effect, Fate, MessageAnswer } from '../answers/index.js'
import { maySeeBodies, type BoxCall, type BoxViewer, type Part } from '../desk.js'
import { part as partOf, seenBy, time, toItem, toPayload, toTree, type Viewer } from '../expose.js'
import { notFound, Problem } from '../problem.js'
import type { Seen } from '../redact.js'
import type { RouteInput } from '../routes.js'
import { timelineOf } from '../timeline.js'

/** Of one id: consumers times sources, and bodies in quarantine. */
const MOST = 200

export interface At {
  readonly id: string
  readonly source?: string | undefined
  readonly consumer?: string | undefined
}

export async function message({ part, viewer }: BoxCall, { n, ...at }: RouteInput<'message'>): Promise<MessageAnswer> {
  if (n !== undefined) return { fates: await toHeldFates(viewer, part.reads, [await heldAt(part.reads, n, at)]) }
  const stored = await rowsAt(part.reads, 'ids', at)
  const held = await rowsAt(part.reads, 'quarantineIds', at)
  const fates = (await toFates(viewer, part.reads, stored)).map((fate) => withMost(fate, attemptsOf(part, fate)))
  const others = await toHeldFates(viewer, part.reads, held)
  if (fates.length + others.length > 0) return { fates: [...fates, ...others] }
  const sent = await rowsAt(part.reads, 'outboxIds', at)
  if (sent.length === 0) throw notFound('there is no message with this id, or retention has taken it')
  const events = sent.map((row): Fate => ({ ...toFate(viewer, row, NOTHING), outbox: true }))
  return { fates: events.map((fate) => withMost(fate, part.stage.attemptsOf(fate.consumer))) }
}

function attemptsOf({ stage }: Part, { consumer }: Fate): number | undefined {
  return stage.consumers().find(({ name }) => name === consumer)?.options.attempts
}

function withMost(fate: Fate, mostAttempts: number | undefined): Fate {
  return mostAttempts === undefined ? fate : { ...fate, mostAttempts }
}

export async function rowsAt(reads: Runtime, place: Place, { id, source, consumer }: At): Promise<readonly FoundRow[]> {
  const filter = checkFilter({
    id,
    ...(source !== undefined && { source }),
    ...(consumer !== undefined && { consumer }),
  })
  const position: Position | undefined = undefined
  const options = { direction: 'newest', states: STATES, position, count: MOST, bodies: true } as const
  return (await step(reads, place, filter, options)).rows
}

/** A body in quarantine, by its number: it may have no id. What else is said of it has to be so. */
export async function heldAt(reads: Runtime, n: string, at?: At): Promise<FoundRow> {
  if (!/^\d{1,18}$/.test(n)) {
    throw new Problem('INPUT_INVALID', 'n must be the number of a row in quarantine', { field: 'n' })
  }
  const position = String(BigInt(n) + 1n)
  const options = { direction: 'newest', states: STATES, position, count: 1, bodies: true } as const
  const [row] = (await step(reads, 'quarantine', checkFilter({}), options)).rows
  if (row?.n === n && (!at || isAt(row, at))) return row
  throw notFound('there is no such row in quarantine; somebody may have decided about it')
}

function isAt(row: FoundRow, { id, source = row.source, consumer = row.consumer }: At): boolean {
  return (row.id ?? '') === id && row.source === source && row.consumer === consumer
}

/** What is known beside the row itself. */
interface More {
  readonly history: readonly AttemptRow[]
  readonly effects: readonly EffectRow[]
  readonly now: FateRow | undefined
}

const NOTHING: More = { history: [], effects: [], now: undefined }

export async function toFates(viewer: BoxViewer, { db }: Runtime, rows: readonly FoundRow[]): Promise<Fate[]> {
  if (rows.length === 0) return []
  const keys = rows.map(({ consumer, source, id }): MessageKey => [consumer, source, id])
  const [attempts, effects, fates] = await Promise.all([
    db.run(ATTEMPTS, keys),
    db.run(EFFECTS_OF, keys),
    db.run(FATES, keys),
  ])
  const of = <R extends { readonly of: string }>(all: readonly R[], at: number): R[] =>
    all.filter((one) => Number(one.of) === at)
  return rows.map((row, at) =>
    toFate(viewer, row, { history: of(attempts, at), effects: of(effects, at), now: of(fates, at)[0] }),
  )
}

export function toFate(viewer: BoxViewer, row: FoundRow, { history, effects, now }: More): Fate {
  const seen = seenBy(viewer, row)
  const bodies = maySeeBodies(viewer)
  const { correlationId, causationId, time: sent } = messageOf(row, undefined)
  const item = toItem(viewer, row, seen)
  const tried = history.map((one): Attempt => ({
    attempt: Number(one.attempt),
    at: time(one.at),
    ...(one.ms !== null && { ms: Number(one.ms) }),
    ...(one.worker !== null && { worker: one.worker }),
    error: toTree(viewer, parseFailure(one.error), seen),
  })) // prettier-ignore
  const called = effects.map((one) => toEffect(viewer, row, one, seen))
  const isWaiting = item.state === 'pending' && now?.due != null
  const dueAt = isWaiting ? time(now.due) : undefined
  return {
    ...item,
    correlationId,
    ...(causationId !== undefined && { causationId }),
    ...(sent && { time: sent.toISOString() }),
    ...(bodies && { headers: seen.headers, ...(seen.subject !== undefined && { subject: seen.subject }) }),
    body: toPayload(viewer, seen, row),
    ...(row.result != null && { result: resultOf(viewer, row.result, seen) }),
    ...(row.error != null && { failure: toTree(viewer, parseFailure(row.error), seen) }),
    ...(item.state === 'dead' &&
      now?.fingerprint != null && { fingerprint: viewer.fingerprints.show(now.fingerprint) }),
    history: tried,
    effects: called,
    ...(dueAt !== undefined && { dueAt }),
    ...(now?.kept != null && { keptUntil: time(now.kept) }),
    blocked: now?.blocked === 'true',
    timeline: timelineOf({ item, sent, history: tried, effects: called, dueAt }),
  }
}

/** Of rows in quarantine. */
async function toHeldFates(viewer: BoxViewer, { db }: Runtime, rows: readonly FoundRow[]): Promise<Fate[]> {
  if (rows.length === 0) return []
  const kept = new Map((await db.run(HELD_UNTIL, rows.map(({ n }) => n!))).map((row) => [row.n, row.kept])) // prettier-ignore
  return rows.map((row) => {
    const until = kept.get(row.n!) ?? undefined
    return { ...toFate(viewer, row, NOTHING), ...(until !== undefined && { keptUntil: time(until) }) }
  })
}

function resultOf(viewer: Viewer, stored: string, seen: Seen): Fate['result'] {
  const bytes = Buffer.byteLength(stored)
  if (!maySeeBodies(viewer)) return { bytes, whole: false, withheld: 'hidden' }
  if (seen.unredactable) return { bytes, whole: false, withheld: 'unredactable' }
  return { bytes, ...partOf(seen.result), ...(seen.result !== stored && viewer.redact && { redacted: true as const }) }
}

function toEffect(viewer: Viewer, { consumer, source, id }: FoundRow, effect: EffectRow, seen: Seen): Effect {
  const { name, state, result, called, done, calls } = effect
  return {
    name,
    state: state === 'done' ? 'done' : 'unknown',
    idempotencyKey: idempotencyKey({ consumer, source, id }, name),
    calledAt: time(called),
    ...(done !== null && { doneAt: time(done) }),
    calls: Number(calls),
    ...(result !== null && maySeeBodies(viewer) && { result: seen.mask(result) }),
  }
}
