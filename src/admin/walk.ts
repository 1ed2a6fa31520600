/**
 * Walk: goes through the messages that fit a filter, by keyset, a bounded number of rows at a time.
 *
 * Messages live in several places (the journal, what is parked, what waits, the quarantine), each with an index that
 * gives them in order. A walk goes through the fewest of them that hold the wanted states.
 */
import { CALENDAR } from '../figures.js'
import type { State } from '../message.js'
import { OUTBOX, OUTBOX_BY_ID, OUTBOX_PARKED } from '../postgres/sql/search-outbox.js'
import { QUARANTINED, QUARANTINED_BY_ID, QUARANTINED_OF, SEEK_QUARANTINE } from '../postgres/sql/search-quarantine.js'
import { BLOCKED_KEYS } from '../postgres/sql/blocked.js'
import { ALIKE, FRONTS } from '../postgres/sql/search-failures.js'
import { BACKLOG, BY_ID, JOURNAL, PARKED, WAITING } from '../postgres/sql/search.js'
import type { FoundRow, Walk } from '../postgres/sql/walk.js'
import type { Runtime } from '../runtime.js'
import { runUnjitted } from '../postgres/unjitted.js'
import { contains } from './contains.js'
import { looksIntoBodies, STATES, type CheckedFilter } from './filter.js'

export type Place = keyof typeof PLACES

/** Where a walk stands: `[received, consumer, source, id]`, a number as text, or `[number, sink]`. */
export type Position = string | readonly string[]

const PLACES = {
  journal: JOURNAL,
  parked: PARKED,
  waiting: WAITING,
  alike: ALIKE,
  fronts: FRONTS,
  ids: BY_ID,
  quarantine: QUARANTINED,
  quarantineOf: QUARANTINED_OF,
  quarantineIds: QUARANTINED_BY_ID,
  outbox: OUTBOX,
  outboxParked: OUTBOX_PARKED,
  outboxIds: OUTBOX_BY_ID,
} satisfies Record<string, Walk>

/** Up to so many, messages that wait are sorted; more of them are found faster in the journal. */
const SMALL_BACKLOG = 10_000
/** Up to so many, keys that are blocked are sorted by the messages in front. */
const FEW_KEYS = 5_000

/** The places that hold what the filter wants. */
export async function placesOf(runtime: Runtime, filter: CheckedFilter, states: readonly State[]): Promise<Place[]> {
  const wants = (...some: State[]): boolean => some.some((state) => states.includes(state))
  if (filter.box === 'outbox') {
    return [filter.ids ? 'outboxIds' : wants('pending', 'processing', 'handled') ? 'outbox' : 'outboxParked']
  }
  if (isOfFailures(filter)) return [await placeOfFailures(runtime, filter)]
  const places: Place[] = []
  if (filter.ids) places.push('ids')
  else if (wants('handled')) places.push('journal')
  else if (wants('pending', 'processing') && !(await isBacklogSmall(runtime, filter))) places.push('journal')
  else {
    if (wants('pending', 'processing')) places.push('waiting')
    if (wants('pending', 'dead', 'quarantined', 'discarded')) places.push('parked')
  }
  if (wants('quarantined', 'discarded')) {
    places.push(filter.ids ? 'quarantineIds' : filter.consumer === undefined ? 'quarantine' : 'quarantineOf')
  }
  return places
}

/** What these criteria select is in no quarantine: it was stored, and then it failed. */
function isOfFailures({ fingerprints, blocking }: CheckedFilter): boolean {
  return fingerprints !== undefined || blocking !== undefined
}

async function placeOfFailures({ db }: Runtime, { ids, fingerprints, consumer }: CheckedFilter): Promise<Place> {
  if (ids) return 'ids'
  if (fingerprints) return 'alike'
  const [row] = await runUnjitted(db, BLOCKED_KEYS, { consumer: consumer ?? null, limit: FEW_KEYS + 1 })
  return Number(row!.keys) <= FEW_KEYS ? 'fronts' : 'parked'
}

/** Whether a walk for this filter may go through the place: another may lack one of its criteria. */
export function reaches(filter: CheckedFilter, place: Place): boolean {
  if (filter.box === 'outbox')
    return filter.ids ? place === 'outboxIds' : place === 'outbox' || place === 'outboxParked'
  if (isOfFailures(filter)) {
    return filter.ids
      ? place === 'ids'
      : filter.fingerprints
        ? place === 'alike'
        : place === 'fronts' || place === 'parked'
  }
  if (filter.ids) return place === 'ids' || place === 'quarantineIds'
  if (place === 'journal' || place === 'waiting' || place === 'parked') return true
  return place === (filter.consumer === undefined ? 'quarantine' : 'quarantineOf')
}

async function isBacklogSmall({ db }: Runtime, { consumer }: CheckedFilter): Promise<boolean> {
  const [row] = await runUnjitted(db, BACKLOG, { consumer, limit: SMALL_BACKLOG + 1 })
  return Number(row!.backlog) <= SMALL_BACKLOG
}

/** States that the other criteria leave possible: what is handled has no error, and what blocks its key waits for a person. */
export function possibleStates(filter: CheckedFilter, states: readonly State[] = STATES): State[] {
  return states.filter((state) => {
    if (filter.error !== undefined && state === 'handled') return false
    if (filter.fingerprints && (state === 'handled' || state === 'processing')) return false
    if (filter.blocking && state !== 'dead' && state !== 'quarantined') return false
    return filter.reason === undefined || state === 'quarantined' || state === 'discarded'
  })
}

/** How many rows a walk examines in one statement: fewer where it reads bodies, each of which may have a megabyte. */
export function examinedAtOnce(filter: CheckedFilter): number {
  return looksIntoBodies(filter) ? 100 : 2_000
}

export interface Step {
  /** Those that fit. */
  readonly rows: readonly FoundRow[]
  /** Behind the last row examined. */
  readonly position: Position | undefined
  readonly examined: number
  /** When the last row examined was received. */
  readonly receivedMs: number | undefined
  readonly done: boolean
}

export interface StepOptions {
  readonly direction: keyof Walk
  readonly states: readonly State[]
  readonly position: Position | undefined
  /** Ends a walk upwards. */
  readonly until?: string
  /** How many rows to examine. */
  readonly count: number
  readonly bodies: boolean
}

/** Examines the next rows of a place. */
export async function step(runtime: Runtime, place: Place, filter: CheckedFilter, options: StepOptions): Promise<Step> {
  const { box: _, states: __, data, judge, ...criteria } = filter
  const { direction, states, position, until, count, bodies } = options
  const lean = !bodies && !looksIntoBodies(filter)
  // What cannot be decoded has no data to fit.
  const decoded = data !== undefined
  const param = { ...criteria, states, position, until, limit: count, lean, decoded }
  const rows = await runUnjitted(runtime.db, PLACES[place][direction], param)
  const last = rows.at(-1)
  const examined = Number(last?.ord ?? 0)
  return {
    rows: rows.filter(
      (row) => row.fits === 'true' && (data === undefined || contains(dataOf(row), data)) && (judge?.fits(row) ?? true),
    ),
    position: last ? positionOf(place, last) : position,
    examined,
    receivedMs: last ? Number(last.received) : undefined,
    done: examined < count || isBeyond(place, filter, direction, last),
  }
}

/** The quarantine has no index by time, but its rows are numbered as they come: within this of each other. */
const OUT_OF_ORDER_MS = 600_000

/** Where a walk begins: in the quarantine, near the first row that the filter's times allow. */
export async function startOf(
  { db }: Runtime,
  place: Place,
  { before, after }: CheckedFilter,
  direction: keyof Walk,
): Promise<Position | undefined> {
  const bound = direction === 'newest' ? before : after
  if (bound === undefined || !isQuarantine(place)) return undefined
  const slack = direction === 'newest' ? OUT_OF_ORDER_MS : -OUT_OF_ORDER_MS
  const at = Math.min(Math.max(Date.parse(bound) + slack, CALENDAR.first), CALENDAR.last)
  const time = new Date(at).toISOString()
  const [row] = await db.run(SEEK_QUARANTINE, { time })
  const n = BigInt(row!.n)
  return String(direction === 'newest' ? n + 1n : n)
}

/** Is all that follows in the quarantine outside the filter's times? */
function isBeyond(
  place: Place,
  { before, after }: CheckedFilter,
  direction: keyof Walk,
  last: FoundRow | undefined,
): boolean {
  if (!last || !isQuarantine(place)) return false
  const received = Number(last.received)
  if (direction === 'newest') return after !== undefined && received < Date.parse(after) - OUT_OF_ORDER_MS
  return before !== undefined && received > Date.parse(before) + OUT_OF_ORDER_MS
}

function isQuarantine(place: Place): boolean {
  return place === 'quarantine' || place === 'quarantineOf'
}

/** The data of a row; undefined where it cannot be decoded. */
export function dataOf({ body }: FoundRow): unknown {
  if (body === null) return undefined
  try {
    return JSON.parse(body) as unknown
  } catch {
    return undefined
  }
}

export function positionOf(place: Place, row: FoundRow): Position {
  const columns = COLUMNS[SHAPES[place]]
  const values = columns.map((column) => row[column] ?? '')
  return columns.length === 1 ? values[0]! : values
}

const SHAPES: Record<Place, keyof typeof COLUMNS> = {
  journal: 'time',
  ids: 'time',
  parked: 'sequence',
  waiting: 'sequence',
  alike: 'sequence',
  fronts: 'sequence',
  quarantine: 'number',
  quarantineOf: 'number',
  quarantineIds: 'number',
  outbox: 'delivery',
  outboxParked: 'delivery',
  outboxIds: 'delivery',
}

const COLUMNS = {
  time: ['at', 'consumer', 'source', 'id'],
  sequence: ['seq'],
  number: ['n'],
  delivery: ['n', 'consumer'],
} as const

export function isPlace(name: string): name is Place {
  return Object.hasOwn(PLACES, name)
}

/** A position comes back in a cursor, from outside: one that is ill-formed would fail in the database. */
export function isPosition(place: Place, value: unknown): value is Position {
  const shape = SHAPES[place]
  const [first, ...rest] = typeof value === 'string' ? [value] : Array.isArray(value) ? (value as unknown[]) : []
  if (rest.length + 1 !== COLUMNS[shape].length || (typeof value === 'string') !== (rest.length === 0)) return false
  if (typeof first !== 'string' || !(shape === 'time' ? isTime(first) : /^\d{1,18}$/.test(first))) return false
  return rest.every((part) => typeof part === 'string' && part.isWellFormed() && !part.includes('\0'))
}

function isTime(text: string): boolean {
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/.test(text) && !Number.isNaN(Date.parse(text))
}
