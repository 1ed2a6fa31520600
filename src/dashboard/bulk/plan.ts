/** Plan: where the walk of a change stands, so that another process can go on behind the last message that was looked at. */
import { endsOf, statesOf, type Change } from '../../admin/bulk.js'
import type { CheckedFilter } from '../../admin/filter.js'
import { examinedAtOnce, placesOf, positionOf, startOf, step, type Place, type Position } from '../../admin/walk.js'
import type { State } from '../../message.js'
import type { WalkEnd } from '../../postgres/sql/bulk.js'
import type { FoundRow } from '../../postgres/sql/walk.js'
import type { Runtime } from '../../runtime.js'

/** Kept as JSON. What holds for the whole walk is fixed when it begins: another look may choose other places. */
export interface Plan {
  readonly places: readonly Place[]
  /** What has come since it was counted is not part of it. */
  readonly ends: Partial<Record<Place, string>>
  /** Which of the places; as many as there are: it is through. */
  readonly at: number
  readonly position?: Position | undefined
}

export interface Wanted {
  readonly filter: CheckedFilter
  readonly states: readonly State[]
  /** How far messages had come when they were counted. */
  readonly end: WalkEnd
}

/** What a verb takes of a filter: of messages that were as they are when they were counted, for others have died or come since. */
export async function wantedOf(filter: CheckedFilter, change: Change, end: WalkEnd): Promise<Wanted> {
  const asked = statesOf(filter, change)
  // What was published is gone.
  const states = filter.box === 'outbox' ? asked.filter((state) => state !== 'handled') : asked
  const narrowed = (await change.narrow?.(filter, states)) ?? filter
  return { filter: { ...narrowed, asOf: end.at }, states, end }
}

export interface Found {
  readonly place: Place
  readonly rows: readonly FoundRow[]
  /** Where the walk stands when so many of the rows were taken. */
  after(taken: number): Plan
}

export async function beginPlan(runtime: Runtime, { filter, states, end }: Wanted): Promise<Plan> {
  const places = states.length === 0 ? [] : await placesOf(runtime, filter, states)
  return enter(runtime, filter, { places, ends: endsOf(end), at: 0 })
}

/** The next rows, oldest first; none if what was looked at does not fit. Undefined: it is through. */
export async function lookFurther(
  runtime: Runtime,
  { filter, states }: Wanted,
  plan: Plan,
): Promise<Found | undefined> {
  const place = plan.places[plan.at]
  if (place === undefined) return undefined
  const { position } = plan
  const until = plan.ends[place]
  const count = examinedAtOnce(filter)
  const options = { direction: 'oldest', states, position, count, bodies: false } as const
  const found = await step(runtime, place, filter, { ...options, ...(until !== undefined && { until }) })
  const { rows } = found
  const behind = found.done
    ? await enter(runtime, filter, { ...plan, at: plan.at + 1 })
    : { ...plan, position: found.position }
  return {
    place,
    rows,
    after: (taken) => (taken < rows.length ? { ...plan, position: positionOf(place, rows[taken - 1]!) } : behind),
  }
}

async function enter(runtime: Runtime, filter: CheckedFilter, { position: _, ...plan }: Plan): Promise<Plan> {
  const place = plan.places[plan.at]
  if (place === undefined) return plan
  return { ...plan, position: await startOf(runtime, place, filter, 'oldest') }
}
