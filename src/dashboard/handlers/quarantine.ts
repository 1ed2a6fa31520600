/** Quarantine: what is in it by reason, and the two bodies of a conflict. */
import { READ_QUARANTINED } from '../../postgres/sql/bulk.js'
import { QUARANTINE_REASONS } from '../../postgres/sql/dashboard.js'
import type { Conflict, Quarantine } from '../answers/index.js'
import { runUnjitted } from '../../postgres/unjitted.js'
import type { BoxCall } from '../desk.js'
import { time } from '../expose.js'
import { notFound, Problem } from '../problem.js'
import type { RouteInput } from '../routes.js'
import { rowsAt, toFate, toFates } from './message.js'

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
  if (!/^\d{1,18}$/.test(n))
    throw new Problem('INPUT_INVALID', 'n must be the number of a row in quarantine', { field: 'n' })
  const [held] = await part.reads.db.run(READ_QUARANTINED, { rows: [n], bytes: 1 })
  if (!held?.id) throw notFound('there is no such row in quarantine; somebody may have decided about it')
  const { consumer, source, id } = held
  const row = (await rowsAt(part.reads, 'quarantineIds', { id, source, consumer })).find((one) => one.n === n)
  if (!row) throw notFound('there is no such row in quarantine; somebody may have decided about it')
  // One that was refused for all has no consumer: the first body is any consumer's.
  const stored = await rowsAt(part.reads, 'ids', { id, source, ...(consumer !== '' && { consumer }) })
  const [first] = await toFates(viewer, part.reads, stored.slice(0, 1))
  return { ...(first && { first }), second: toFate(viewer, row, { history: [], effects: [], now: undefined }) }
}
