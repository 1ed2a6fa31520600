/**
 * Batch: a few messages are changed, and the same transaction writes down how many and where the walk stands. A process that is
 * killed has done all of it or nothing, and one that has lost the lease changes nothing.
 */
import type { Change } from '../../admin/bulk.js'
import { discarding } from '../../admin/discard.js'
import { retrying } from '../../admin/retry.js'
import type { Place } from '../../admin/walk.js'
import type { Database } from '../../postgres/database.js'
import { ADVANCE_BULK, LOCK_BULK, type BulkRow } from '../../postgres/sql/bulk-work.js'
import type { MessageKey } from '../../postgres/sql/rules.js'
import type { FoundRow } from '../../postgres/sql/walk.js'
import type { Statement } from '../../postgres/statement.js'
import type { Runtime } from '../../runtime.js'
import type { Inside } from '../options.js'
import type { Plan, Wanted } from './plan.js'

export const LEASE_MS = 10_000
const MOST_FOLLOWED = 20_000

/** A change, as the process that carries it knows it. */
export interface Carried {
  readonly inside: Inside
  readonly id: string
  readonly token: string
  readonly verb: 'retry' | 'discard'
  readonly reason: string | undefined
  /** Keys of which a batch has left something in quarantine: the next ones leave what is behind it. */
  readonly heldBack: Set<string>
}

export interface Batch {
  readonly place: Place
  readonly rows: readonly FoundRow[]
  /** Where the walk stands behind them. */
  readonly plan: Plan
}

/** What became of a batch. The row is as it was before. */
export interface Changed {
  readonly row: BulkRow
  readonly changed: number
}

/** Undefined: another process carries it. Nothing is changed for one that was cancelled. */
export async function changeBatch(carried: Carried, wanted: Wanted, batch: Batch): Promise<Changed | undefined> {
  // They leave the quarantine a few at a time, in transactions of their own, and the next look does not find them.
  const isReleased = carried.verb === 'retry' && batch.place.startsWith('quarantine')
  try {
    return isReleased ? await release(carried, wanted, batch) : await changeAtOnce(carried, wanted, batch)
  } catch (error) {
    if (error instanceof Halted) return error.row && { row: error.row, changed: 0 }
    throw error
  }
}

/** It is not to go on: cancelled, or another's. */
class Halted extends Error {
  constructor(readonly row: BulkRow | undefined) {
    super('the change is not to go on here')
  }
}

function changeAtOnce(carried: Carried, wanted: Wanted, { rows, plan }: Batch): Promise<Changed> {
  const { runtime } = carried.inside.stage
  return runtime.db.transaction(async (tx) => {
    const row = await lock(carried, tx)
    const keys: MessageKey[] = []
    const inside = within(runtime, tx)
    const change = changeOf(carried, inside, (some) => keys.push(...some))
    const { filter, states } = wanted
    const changed = rows.length === 0 ? 0 : await change[filter.box](rows, states)
    await advance(inside.db, carried, { done: changed, skipped: rows.length - changed, plan, keys })
    return { row, changed }
  }, 'read committed')
}

async function release(carried: Carried, { states }: Wanted, { rows, plan }: Batch): Promise<Changed> {
  const { runtime } = carried.inside.stage
  const { db } = runtime
  const transaction: Database['transaction'] = (work, isolation) =>
    db.transaction(async (tx) => {
      await lock(carried, tx)
      const released = await work(tx)
      const { stored } = released as { readonly stored: number }
      await advance(within(runtime, tx).db, carried, { done: stored, skipped: 0 })
      return released
    }, isolation)
  const changed = await changeOf(carried, { ...runtime, db: { ...db, transaction } }).inbox(rows, states)
  return db.transaction(async (tx) => {
    const row = await lock(carried, tx)
    await advance(within(runtime, tx).db, carried, { done: 0, skipped: rows.length - changed, plan })
    return { row, changed }
  }, 'read committed')
}

async function lock({ inside, id, token }: Carried, tx: unknown): Promise<BulkRow> {
  const [row] = await inside.stage.runtime.db.run(LOCK_BULK, { id, token }, tx)
  if (!row || row.cancelled === 'true') throw new Halted(row)
  return row
}

interface Advance {
  readonly done: number
  readonly skipped: number
  readonly plan?: Plan
  readonly keys?: readonly MessageKey[]
}

async function advance(db: Database, { id }: Carried, { done, skipped, plan, keys = [] }: Advance): Promise<void> {
  const kept = plan && JSON.stringify(plan)
  await db.run(ADVANCE_BULK, { id, done, skipped, plan: kept, keys, mostFollowed: MOST_FOLLOWED, leaseMs: LEASE_MS })
}

/** Every statement in this transaction. */
function within(runtime: Runtime, tx: unknown): Runtime {
  const { db } = runtime
  const run = <In, Out>(statement: Statement<In, Out>, param: In): Promise<readonly Out[]> =>
    db.run(statement, param, tx)
  return { ...runtime, db: { ...db, run } }
}

/** `note` is told of the messages that run again. */
export function changeOf(
  { inside: { stage }, verb, reason, heldBack }: Pick<Carried, 'inside' | 'verb' | 'reason'> & Partial<Carried>,
  runtime: Runtime = stage.runtime,
  note?: (keys: readonly MessageKey[]) => void,
): Change {
  if (verb === 'retry') return retrying(runtime, stage.consumers(), { note, heldBack })
  return discarding(runtime, stage.consumers().map(({ name }) => name), reason ?? '') // prettier-ignore
}
