/** What all boxes on one `sql` of postgres.js have in common: how many transactions fit into it, and its lines. */
import { sharedByCopies } from '../../../copies.js'
import { Answers, type Pools } from './answers.js'
import { type LineOptions, Lines } from './lines.js'
import { Room } from './room.js'

export interface Pool {
  readonly room: Room
  readonly lines: Lines
  readonly answers: Answers
}

const pools = sharedByCopies('postgres-js-pools', () => new WeakMap<object, Pool>())

export function poolOf(sql: Pools & { readonly options?: LineOptions & { readonly max?: number } }): Pool {
  let pool = pools.get(sql)
  if (!pool) {
    const lines = new Lines(sql.options)
    pool = { room: new Room(sql.options?.max), lines, answers: new Answers(sql, lines) }
    pools.set(sql, pool)
  }
  return pool
}
