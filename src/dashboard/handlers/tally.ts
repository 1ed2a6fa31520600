/**
 * Tally: how many messages fit a query, by state. What asks for consumers alone is answered from the overview; else each state is
 * walked through, as far as that is cheap.
 */
import { looksIntoBodies, type CheckedFilter } from '../../admin/filter.js'
import { placesOf, possibleStates, startOf, step, type Place, type Position } from '../../admin/walk.js'
import type { State } from '../../message.js'
import type { Runtime } from '../../runtime.js'
import type { Overview, StateCount, Tally } from '../answers/index.js'
import type { BoxCall } from '../desk.js'
import type { RouteInput } from '../routes.js'
import { readQuery } from './messages.js'

/** What is looked at for one state, and how much of it at once. */
const LEAN = { most: 2_000, atOnce: 1_000 }
/** Each may have a megabyte. */
const WITH_BODIES = { most: 300, atOnce: 100 }
/** After so long nothing more is begun. */
const ENOUGH_MS = 150

/** Those of a group are in the same places, and are counted in one walk. */
const GROUPS: readonly (readonly State[])[] = [
  ['pending', 'processing'],
  ['handled'],
  ['dead'],
  ['quarantined'],
  ['discarded'],
]

export async function tally(call: BoxCall, { q = '', zone = 0 }: RouteInput<'tally'>): Promise<Tally> {
  const { part } = call
  const { filter } = readQuery(call, q, { nowMs: Date.now(), zone })
  const states = possibleStates(filter, filter.states)
  if (asksForConsumersAlone(filter)) return { states: ofOverview(await part.hub.overview(), filter.consumer, states) }
  const until = performance.now() + ENOUGH_MS
  const groups = GROUPS.map((group) => group.filter((state) => states.includes(state))).filter(
    ({ length }) => length > 0,
  )
  const counted = await Promise.all(groups.map((group) => countWalk(part.reads, filter, group, until)))
  return { states: Object.assign({}, ...counted) as Tally['states'] }
}

function asksForConsumersAlone({ box, states: _, consumer: __, ...rest }: CheckedFilter): boolean {
  return box === 'inbox' && Object.values(rest).every((criterion) => criterion === undefined)
}

function ofOverview({ consumers }: Overview, consumer: string | undefined, states: readonly State[]): Tally['states'] {
  const own = consumers.filter(({ name }) => consumer === undefined || name === consumer)
  const isEstimated = own.some(({ estimated }) => estimated)
  return Object.fromEntries(states.map((state): [State, StateCount] => {
    const count = own.reduce((sum, one) => sum + one[state], 0)
    return [state, { count, atLeast: false, ...(isEstimated && { estimated: true }) }]
  })) // prettier-ignore
}

/** Counts what fits, newest first, until there is no more, or enough was looked at. */
async function countWalk(
  reads: Runtime,
  filter: CheckedFilter,
  states: readonly State[],
  until: number,
): Promise<Tally['states']> {
  const bounds = looksIntoBodies(filter) ? WITH_BODIES : LEAN
  const counts = new Map(states.map((state) => [state, 0]))
  let isWhole = true
  const look = async (place: Place): Promise<void> => {
    let position: Position | undefined = await startOf(reads, place, filter, 'newest')
    for (let left = bounds.most; ;) {
      const count = Math.min(left, bounds.atOnce)
      const found = await step(reads, place, filter, { direction: 'newest', states, position, count, bodies: false })
      for (const { state } of found.rows) counts.set(state, (counts.get(state) ?? 0) + 1)
      if (found.done) return
      left -= found.examined
      if (left <= 0 || performance.now() > until) return void (isWhole = false)
      position = found.position
    }
  }
  for (const place of await placesOf(reads, filter, states)) await look(place)
  return Object.fromEntries([...counts].map(([state, count]) => [state, { count, atLeast: !isWhole }]))
}
