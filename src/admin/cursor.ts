/**
 * Cursors: where a listing goes on. Opaque to callers, and bound to the filter they came from.
 *
 * A cursor says where to go on, and nothing else: which messages are seen is up to the filter, which every statement
 * applies to every row, and to the places that the filter reaches. A cursor that was made up may skip rows, or show some
 * again; it shows nothing that its filter does not.
 */
import { hash } from 'node:crypto'
import { OnceboxError } from '../errors.js'
import type { CheckedFilter } from './filter.js'
import { isPlace, isPosition, reaches, type Place, type Position } from './walk.js'

/** Places that are not through yet, and where each stands. */
export type Positions = ReadonlyMap<Place, Position | undefined>

export function writeCursor(filter: CheckedFilter, positions: Positions): string {
  const places = [...positions].map(([place, position]) => [place, position ?? null])
  return Buffer.from(JSON.stringify([1, fingerprint(filter), places])).toString('base64url')
}

export function readCursor(filter: CheckedFilter, cursor: unknown): Positions {
  const parsed = typeof cursor === 'string' && cursor.length <= MOST_CHARACTERS ? parse(cursor) : undefined
  if (!Array.isArray(parsed) || parsed[0] !== 1 || !Array.isArray(parsed[2]) || parsed[2].length === 0) throw invalid()
  if (parsed[1] !== fingerprint(filter)) {
    throw new OnceboxError('CURSOR_INVALID', 'the cursor belongs to another filter; begin again without a cursor')
  }
  const positions = new Map<Place, Position | undefined>()
  for (const entry of parsed[2] as unknown[]) {
    const [place, position] = Array.isArray(entry) ? (entry as unknown[]) : []
    if (typeof place !== 'string' || !isPlace(place) || positions.has(place)) throw invalid()
    if (!reaches(filter, place)) throw invalid()
    if (position !== null && !isPosition(place, position)) throw invalid()
    positions.set(place, position ?? undefined)
  }
  return positions
}

/** Three places at most, each with names of at most a few hundred characters, which JSON and base64 make longer. */
const MOST_CHARACTERS = 65_536

function parse(cursor: string): unknown {
  try {
    return JSON.parse(Buffer.from(cursor, 'base64url').toString())
  } catch {
    return undefined
  }
}

function fingerprint(filter: CheckedFilter): string {
  return hash('sha256', JSON.stringify(filter), 'base64url').slice(0, 12)
}

function invalid(): OnceboxError {
  return new OnceboxError('CURSOR_INVALID', 'the cursor is not one that messages() gave; begin again without a cursor')
}
