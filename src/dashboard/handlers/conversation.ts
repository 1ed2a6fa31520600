/**
 * The conversation of a message: what caused it, and what it caused, in all boxes of this dashboard that the reader gets to
 * see. What it caused may still be in an outbox.
 */
import { messageOf } from '../../inbox/entry.js'
import { CAUSED, CAUSED_EVENTS, type CausedRow } from '../../postgres/sql/dashboard.js'
import { runUnjitted } from '../../postgres/unjitted.js'
import type { Conversation, Link, StateName } from '../answers/index.js'
import { partsFor, type BoxCall, type Part } from '../desk.js'
import { time } from '../expose.js'
import { notFound } from '../problem.js'
import type { RouteInput } from '../routes.js'
import { rowsAt } from './message.js'

/** So many messages of each consumer are looked at: what is caused arrives soon after its cause, or not cheaply. */
const MOST = 1_000
/** Clocks of two boxes may differ by so much. */
const SLACK_MS = 5_000

export async function conversation(call: BoxCall, { id, source }: RouteInput<'conversation'>): Promise<Conversation> {
  const stored = await rowsAt(call.part.reads, 'ids', { id, source })
  const own = stored.length > 0 ? stored : await rowsAt(call.part.reads, 'outboxIds', { id, source })
  if (own.length === 0) throw notFound('there is no message with this id, or retention has taken it')
  const parts = partsFor(call)
  const { causationId } = messageOf(own[0]!, undefined)
  const cause = causationId === undefined ? undefined : await findCause(parts, causationId)
  const from = Math.min(...own.map(({ received }) => Number(received))) - SLACK_MS
  const [found, sent] = await Promise.all([
    Promise.all(parts.map((part) => causedIn(part, id, from))),
    Promise.all(parts.map((part) => sentIn(part, id, from))),
  ])
  const received = found.flatMap(({ links }) => links)
  return {
    ...(cause && { cause }),
    caused: [...received, ...withoutArrived(sent.flat(), received)],
    complete: found.every(({ complete }) => complete),
  }
}

async function findCause(parts: readonly Part[], id: string): Promise<Link | undefined> {
  for (const { reads, name } of parts) {
    const [row] = await rowsAt(reads, 'ids', { id })
    if (!row) continue
    const { consumer, type, state, received } = row
    const source = row.origin_source ?? row.source
    return { box: name, consumer, source, id, type, state, receivedAt: time(received) }
  }
  return undefined
}

async function causedIn(
  { reads, name }: Part,
  id: string,
  from: number,
): Promise<{ links: Link[]; complete: boolean }> {
  const rows = await runUnjitted(reads.db, CAUSED, { ids: [id], from, limit: MOST })
  const links = rows.map((row) => toLink(name, row))
  // How many were looked at stands in the rows. Where there is none, or one consumer's share is used up, there may be more.
  return { links, complete: rows.length > 0 && Number(rows[0]!.examined) < MOST }
}

async function sentIn({ reads, name }: Part, id: string, from: number): Promise<Link[]> {
  const rows = await runUnjitted(reads.db, CAUSED_EVENTS, { id, from, limit: MOST })
  return rows.map((row) => ({ ...toLink(name, row), outbox: true }))
}

/** A sink may keep what it has published: whoever got it has it already. */
function withoutArrived(sent: readonly Link[], received: readonly Link[]): Link[] {
  const arrived = new Set(received.map(({ source, id }) => JSON.stringify([source, id])))
  return sent.filter(({ source, id, state }) => state !== 'handled' || !arrived.has(JSON.stringify([source, id])))
}

function toLink(box: string, { consumer, source, id, type, state, received, cause }: CausedRow): Link {
  return {
    ...{ box, consumer, source, id, type, state: state as StateName, receivedAt: time(received) },
    ...(cause !== null && { cause }),
  }
}
