/** Quarantine: what is in it by reason, and the two bodies of a conflict. */
import { QUARANTINE_REASONS } from '../../postgres/sql/dashboard.js'
import type { Conflict, Quarantine } from '../answers/index.js'
import { runUnjitted } from '../../postgres/unjitted.js'
import type { BoxCall } from '../desk.js'
import { time } from '../expose.js'
import type { RouteInput } from '../routes.js'
import { heldAt, rowsAt, toFate, toFates } from './message.js'

/** Further is not counted. */
const MOST = 10_000

export async function quarantine({ part }: BoxCall): Promise<Quarantine> {
  const rows = await runUnjitted(part.reads.db, QUARANTINE_REASONS, { limit: MOST })
  return {
    reasons: rows.map(({ consumer, reason, n, oldest }) => ({
      reason,
      consumer,
      count: Number(n),
      atLeast: Number(n) >= MOST,
      ...(oldest !== null && { oldestAt: time(oldest) }),
    })),
  }
}

export async function conflict({ part, viewer }: BoxCall, { n }: RouteInput<'conflict'>): Promise<Conflict> {
  const row = await heldAt(part.reads, n)
  const { consumer, source, id } = row
  // One that was refused for all has no consumer: the first body is any consumer's.
  const whose = { source, ...(consumer !== '' && { consumer }) }
  const stored = id ? await rowsAt(part.reads, 'ids', { id, ...whose }) : []
  const [first] = await toFates(viewer, part.reads, stored.slice(0, 1))
  return { ...(first && { first }), second: toFate(viewer, row, { history: [], effects: [], now: undefined }) }
}
