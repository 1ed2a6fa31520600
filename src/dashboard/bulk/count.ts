/** Counts what a change would take, exactly: messages are walked through as the change would, and left alone. */
import { endOf, endsOf, type Change } from '../../admin/bulk.js'
import type { CheckedFilter } from '../../admin/filter.js'
import { placesOf, possibleStates, startOf, step, type Position } from '../../admin/walk.js'
import type { State } from '../../message.js'
import type { WalkEnd } from '../../postgres/sql/bulk.js'
import type { FoundRow } from '../../postgres/sql/walk.js'
import type { Runtime } from '../../runtime.js'
import { Problem } from '../problem.js'

const EXAMINE = 2_000
/** With bodies: each may have a megabyte. */
const EXAMINE_BODIES = 100
const MOST_MS = 30_000

export interface Total {
  readonly count: number
  readonly states: Partial<Record<State, number>>
  /** How far messages had come. */
  readonly end: WalkEnd
}

/** The filter, for messages that were as they are when they were counted: others have died or come since. */
export function asCounted(filter: CheckedFilter, { at }: WalkEnd): CheckedFilter {
  return { ...filter, asOf: at }
}

/** What a verb takes of a filter. */
export function statesFor(filter: CheckedFilter, { takes, unlessTold }: Change): State[] {
  const asked = (filter.states ?? unlessTold).filter((state) => takes.includes(state))
  // What was published is gone.
  return possibleStates(filter, filter.box === 'outbox' ? asked.filter((state) => state !== 'handled') : asked)
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
  for await (const rows of walk(reads, asCounted(filter, end), statesFor(filter, change), endsOf(end))) {
    for (const { state } of rows) states[state] = (states[state] ?? 0) + 1
    count += rows.length
    if (performance.now() > deadline) {
      throw new Problem(
        'TOO_MANY',
        `more than ${count} messages match, and to count them takes too long; narrow the query down`,
      )
    }
  }
  return { count, states, end }
}

/** How many rows one statement looks at. */
export function examineOf({ data, judge }: CheckedFilter): number {
  return data !== undefined || judge?.bodies ? EXAMINE_BODIES : EXAMINE
}

/** All that fits, oldest first. */
async function* walk(
  runtime: Runtime,
  filter: CheckedFilter,
  states: readonly State[],
  ends: ReturnType<typeof endsOf>,
): AsyncGenerator<readonly FoundRow[]> {
  if (states.length === 0) return
  const count = examineOf(filter)
  for (const place of await placesOf(runtime, filter, states)) {
    let position: Position | undefined = await startOf(runtime, place, filter, 'oldest')
    for (let done = false; !done;) {
      const options = { direction: 'oldest', states, position, until: ends[place], count, bodies: false } as const
      const found = await step(runtime, place, filter, options)
      position = found.position
      done = found.done
      yield found.rows
    }
  }
}
