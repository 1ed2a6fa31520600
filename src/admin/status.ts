/** How many messages there are, by consumer and state, and how far behind each consumer is. */
import { OUTBOX_STATUS, STATUS, type CountsRow } from '../postgres/sql/admin.js'
import { runUnjitted } from '../postgres/unjitted.js'
import type { Runtime } from '../runtime.js'
import { STATES } from './filter.js'
import type { Counts, Status } from './types.js'

export async function status({ db }: Runtime, local: readonly string[]): Promise<Status> {
  const inbox = await runUnjitted(db, STATUS, local)
  const outbox = await runUnjitted(db, OUTBOX_STATUS, null)
  return {
    consumers: byName(inbox.map((row) => [row.name, { ...counts(row), ...(row.paused === 'true' && PAUSED) }])),
    outbox: byName(outbox.map((row) => [row.type, counts(row)])),
  }
}

const PAUSED = { paused: true } as const
const ESTIMATED = { estimated: true } as const

function counts(row: CountsRow): Counts {
  const byState = Object.fromEntries(STATES.map((state) => [state, Number(row[state] ?? 0)]))
  return { ...byState, lagMs: Number(row.lag), ...(row.estimated === 'true' && ESTIMATED) } as Counts
}

/** `__proto__` is a name like any other. */
function byName<T>(entries: [string, T][]): Record<string, T> {
  return Object.fromEntries(entries)
}
