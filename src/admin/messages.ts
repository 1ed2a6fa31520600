/** Lists messages, newest first: the places that hold them are walked side by side and merged by time of receipt. */
import type { Entry } from '../hooks.js'
import { toEntry } from '../inbox/entry.js'
import type { MessageMap } from '../message.js'
import { resolve } from '../options.js'
import type { FoundRow } from '../postgres/sql/walk.js'
import type { Runtime } from '../runtime.js'
import { readCursor, writeCursor } from './cursor.js'
import { checkFilter, type CheckedFilter } from './filter.js'
import { PAGE, type Page } from './page.js'
import type { Filter } from './types.js'
import {
  examinedAtOnce, placesOf, positionOf, possibleStates, startOf, step, type Place, type Position, type Step,
} from './walk.js' // prettier-ignore

/** What one call may examine in one place before it answers with what it has, and a cursor. */
const MOST = 20_000

export async function messages<M extends MessageMap>(
  runtime: Runtime,
  filter: Filter | undefined,
  page: Page = {},
): Promise<{ entries: Entry<M>[]; cursor?: string }> {
  const { cursor: from, limit } = resolve('messages', page, PAGE)
  const { rows, cursor } = await find(runtime, checkFilter(filter), { cursor: from, limit, bodies: true })
  const entries = rows.map((row) => toEntry<M>(row))
  return cursor === undefined ? { entries } : { entries, cursor }
}

export interface Wanted {
  readonly cursor: string | undefined
  readonly limit: number
  readonly bodies: boolean
  /** What one call may examine in one place, and how much of it at once. */
  readonly examine?: Bounds
}

interface Bounds {
  readonly most: number
  readonly atOnce: number
  /** After so long no more is looked at, but for what a first look takes. Default: no limit. */
  readonly ms?: number
}

/** A page of rows, newest first, and where the next one begins. */
export async function find(
  runtime: Runtime,
  filter: CheckedFilter,
  { cursor, limit, bodies, examine = { most: MOST, atOnce: examinedAtOnce(filter) } }: Wanted,
): Promise<{ rows: readonly FoundRow[]; cursor: string | undefined }> {
  const trails = await startTrails(runtime, filter, { cursor, most: examine.most })
  const until = performance.now() + (examine.ms ?? Infinity)
  const rows = await merge(runtime, { filter, bodies, atOnce: examine.atOnce, until }, trails, limit)
  const open = trails.filter(({ buffer, done }) => buffer.length > 0 || !done)
  if (open.length === 0) return { rows, cursor: undefined }
  return { rows, cursor: writeCursor(filter, new Map(open.map((trail) => [trail.place, trail.consumed]))) }
}

interface Search {
  readonly filter: CheckedFilter
  readonly bodies: boolean
  readonly atOnce: number
  readonly until: number
}

/** The walk through one place. */
interface Trail {
  readonly place: Place
  /** Found, and not on the page yet. */
  buffer: readonly FoundRow[]
  /** Behind the last row that is on the page, or was passed over. */
  consumed: Position | undefined
  /** Behind the last row examined. */
  examined: Position | undefined
  /** When that row was received: what is newer was seen. */
  frontier: number
  /** How many rows it may still examine. */
  left: number
  done: boolean
}

async function startTrails(
  runtime: Runtime,
  filter: CheckedFilter,
  { cursor, most }: { readonly cursor: string | undefined; readonly most: number },
): Promise<Trail[]> {
  const positions: [Place, Position | undefined][] = []
  if (cursor !== undefined) positions.push(...readCursor(filter, cursor))
  else {
    for (const place of await placesOf(runtime, filter, possibleStates(filter, filter.states))) {
      positions.push([place, await startOf(runtime, place, filter, 'newest')])
    }
  }
  return positions.map(([place, at]) => ({
    place,
    buffer: [],
    consumed: at,
    examined: at,
    frontier: Infinity,
    left: most,
    done: false,
  }))
}

async function merge(
  runtime: Runtime,
  search: Search,
  trails: readonly Trail[],
  limit: number,
): Promise<readonly FoundRow[]> {
  const page: FoundRow[] = []
  let count = Math.min(limit + 1, search.atOnce)
  for (;;) {
    for (const trail of trails) {
      while (trail.buffer.length === 0 && !trail.done && trail.left > 0) {
        const found = await look(runtime, search, trail, Math.min(count, search.atOnce, trail.left))
        trail.left = performance.now() > search.until ? 0 : trail.left - found.examined
        count *= 2
      }
    }
    const next = newest(trails)
    if (!next || page.length === limit) return page
    const [row, ...rest] = next.buffer
    // A place that was not searched as far back as this could hold a newer one.
    if (trails.some(({ buffer, done, frontier }) => buffer.length === 0 && !done && frontier > receivedMs(row!)))
      return page
    page.push(row!)
    next.buffer = rest
    next.consumed = rest.length === 0 ? next.examined : positionOf(next.place, row!)
  }
}

async function look(runtime: Runtime, { filter, bodies }: Search, trail: Trail, count: number): Promise<Step> {
  const states = possibleStates(filter, filter.states)
  const options = { direction: 'newest', states, position: trail.examined, count, bodies } as const
  const found = await step(runtime, trail.place, filter, options)
  trail.buffer = found.rows
  trail.examined = found.position
  trail.frontier = found.receivedMs ?? trail.frontier
  trail.done = found.done
  if (found.rows.length === 0) trail.consumed = found.position
  return found
}

function newest(trails: readonly Trail[]): Trail | undefined {
  let best: Trail | undefined
  for (const trail of trails) {
    if (trail.buffer.length === 0) continue
    if (!best || receivedMs(trail.buffer[0]!) > receivedMs(best.buffer[0]!)) best = trail
  }
  return best
}

function receivedMs({ received }: FoundRow): number {
  return Number(received)
}
