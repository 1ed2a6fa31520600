/** How many messages there are, by consumer and state, and how far behind each consumer is. */
import { OUTBOX_STATUS, STATUS, type CountsRow } from '../postgres/sql/admin.js'
import { runUnjitted } from '../postgres/unjitted.js'
import type { Runtime } from '../runtime.js'
import { STATES } from './filter.js'
import type { Counts, Status } from './types.js'

export async function status(runtime: Runtime, local: readonly string[]): Promise<Status> {
  return { consumers: await consumerCounts(runtime, local), outbox: await outboxCounts(runtime) }
}

export async function consumerCounts({ db }: Runtime, local: readonly string[]): Promise<Status['consumers']> {
  const rows = await runUnjitted(db, STATUS, local)
  return byName(rows.map((row) => [row.name, { ...counts(row), ...(row.paused === 'true' && PAUSED) }]))
}

export async function outboxCounts({ db }: Runtime): Promise<Status['outbox']> {
  const rows = await runUnjitted(db, OUTBOX_STATUS, null)
  return byName(rows.map((row) => [row.type, counts(row)]))
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
