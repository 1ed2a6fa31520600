/**
 * The conversation of a message: what caused it, and what it caused, in all boxes of this dashboard that the reader gets to
 * see.
 */
import { messageOf } from '../../inbox/entry.js'
import { CAUSED } from '../../postgres/sql/dashboard.js'
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
  const own = await rowsAt(call.part.reads, 'ids', { id, source })
  if (own.length === 0) throw notFound('there is no message with this id, or retention has taken it')
  const parts = partsFor(call)
  const { causationId } = messageOf(own[0]!, undefined)
  const cause = causationId === undefined ? undefined : await findCause(parts, causationId)
  const from = Math.min(...own.map(({ received }) => Number(received))) - SLACK_MS
  const found = await Promise.all(parts.map((part) => causedIn(part, id, from)))
  return {
    ...(cause && { cause }),
    caused: found.flatMap(({ links }) => links),
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
  const links = rows.map(({ consumer, source, id: own, type, state, received, cause }): Link => ({
    box: name, consumer, source, id: own, type, state: state as StateName, receivedAt: time(received),
    ...(cause !== null && { cause }),
  })) // prettier-ignore
  // How many were looked at stands in the rows. Where there is none, or one consumer's share is used up, there may be more.
  return { links, complete: rows.length > 0 && Number(rows[0]!.examined) < MOST }
}
