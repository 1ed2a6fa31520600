/** Counts what a change would take, exactly: messages are walked through as the change would, and left alone. */
import { endOf, type Change } from '../../admin/bulk.js'
import type { CheckedFilter } from '../../admin/filter.js'
import type { State } from '../../message.js'
import type { WalkEnd } from '../../postgres/sql/bulk.js'
import type { Runtime } from '../../runtime.js'
import { Problem } from '../problem.js'
import { beginPlan, lookFurther, wantedOf } from './plan.js'

const MOST_MS = 30_000

export interface Total {
  readonly count: number
  readonly states: Partial<Record<State, number>>
  /** How far messages had come. */
  readonly end: WalkEnd
}

/** Up to where messages are now, or were when they were counted before. */
export async function countAll(
  reads: Runtime,
  filter: CheckedFilter,
  change: Change,
  before?: WalkEnd,
): Promise<Total> {
  const states: Partial<Record<State, number>> = {}
  let count = 0
  const end = before ?? (await endOf(reads))
  const deadline = performance.now() + MOST_MS
  const wanted = await wantedOf(filter, change, end)
  for (let plan = await beginPlan(reads, wanted); ;) {
    const found = await lookFurther(reads, wanted, plan)
    if (!found) return { count, states, end }
    for (const { state } of found.rows) states[state] = (states[state] ?? 0) + 1
    count += found.rows.length
    if (performance.now() > deadline) {
      throw new Problem(
        'TOO_MANY',
        `more than ${count} messages match, and to count them takes too long; narrow the query down`,
      )
    }
    plan = found.after(found.rows.length)
  }
}
