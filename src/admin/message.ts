/** Everything known of one id: what became of it for each consumer, its failed attempts, other bodies under the id. */
import { OnceboxError } from '../errors.js'
import type { Entry, FailedAttempt } from '../hooks.js'
import { toEntry } from '../inbox/entry.js'
import { parseFailure } from '../inbox/outcome.js'
import type { MessageMap } from '../message.js'
import { ATTEMPTS } from '../postgres/sql/admin.js'
import type { FoundRow } from '../postgres/sql/walk.js'
import type { Runtime } from '../runtime.js'
import { checkCriteria, checkFilter, STATES, type CheckedFilter } from './filter.js'
import { step, type Place, type Position } from './walk.js'

export interface At {
  readonly id: string
  readonly source?: string
  readonly consumer?: string
}

export async function message<M extends MessageMap>(runtime: Runtime, at: At): Promise<Entry<M>[]> {
  const filter = checkAt(at)
  const stored = await all(runtime, 'ids', filter)
  const held = await all(runtime, 'quarantineIds', filter)
  const attempts = await attemptsOf(runtime, stored)
  return [
    ...stored.map((row, index) => ({ ...toEntry<M>(row), attempts: attempts[index]! })),
    ...held.map((row) => toEntry<M>(row)),
  ]
}

function checkAt(at: At): CheckedFilter {
  if (typeof at !== 'object' || at === null) {
    const got = JSON.stringify(at) ?? String(at)
    throw new OnceboxError('FILTER_INVALID', `message takes { id, source?, consumer? }; got ${got}`)
  }
  checkCriteria(at, ['id', 'source', 'consumer'])
  if (typeof at.id !== 'string') {
    throw new OnceboxError('FILTER_INVALID', `message takes { id, source?, consumer? }; got id ${String(at.id)}`)
  }
  return checkFilter(at)
}

async function all(runtime: Runtime, place: Place, filter: CheckedFilter): Promise<FoundRow[]> {
  const rows: FoundRow[] = []
  let position: Position | undefined
  for (;;) {
    const options = { direction: 'newest', states: STATES, position, count: 1_000, bodies: true } as const
    const found = await step(runtime, place, filter, options)
    rows.push(...found.rows)
    if (found.done) return rows
    position = found.position
  }
}

async function attemptsOf(
  { db }: Runtime,
  rows: readonly FoundRow[],
): Promise<NonNullable<Entry<MessageMap>['attempts']>[]> {
  const attempts = rows.map((): FailedAttempt[] => [])
  if (rows.length === 0) return attempts
  const keys = rows.map(({ consumer, source, id }) => [consumer, source, id] as const)
  for (const { of, attempt, at, error, ms, worker } of await db.run(ATTEMPTS, keys)) {
    attempts[Number(of)]!.push({
      attempt: Number(attempt),
      at: new Date(Number(at)),
      error: parseFailure(error),
      ...(ms !== null && { ms: Number(ms) }),
      ...(worker !== null && { worker }),
    })
  }
  return attempts
}
