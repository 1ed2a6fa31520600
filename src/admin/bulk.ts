/**
 * Bulk: changes every message that fits a filter, oldest first, in small batches: each is a statement of its own, so
 * no lock is held for long and an interruption leaves every message either changed or as it was.
 */
import { checkNumber } from '../check-options.js'
import { OnceboxError } from '../errors.js'
import { writeAudit } from '../inbox/audit.js'
import { unknownConsumers } from '../inbox/registry.js'
import type { State } from '../message.js'
import { boolean, callback, checked, integer, invalid, optional, orElse, resolve, type Resolved } from '../options.js'
import { WALK_END, type WalkEnd } from '../postgres/sql/bulk.js'
import type { FoundRow } from '../postgres/sql/walk.js'
import type { Runtime } from '../runtime.js'
import { sleep } from '../backoff.js'
import { checkSelection, type CheckedFilter } from './filter.js'
import { SIGNED } from './signed.js'
import type { Bulk, Filter } from './types.js'
import { examinedAtOnce, placesOf, possibleStates, startOf, step, type Place, type Position } from './walk.js'

const BATCH = 500

/** What `retry` and `discard` take. */
export const BULK = {
  ...SIGNED,
  limit: optional(integer({ least: 0 })),
  perSecond: optional(
    checked((where, given: number) => {
      if (checkNumber(where, given, 0) > 0) return given
      throw invalid(`${where} must be more than 0`)
    }),
  ),
  dryRun: boolean(false),
  signal: optional(
    checked((where, given: AbortSignal) => {
      if (given instanceof AbortSignal) return given
      throw invalid(`${where} must be an AbortSignal`)
    }),
  ),
  progress: orElse(callback<(count: number) => void>(), () => undefined),
}

export interface Change {
  readonly verb: 'retry' | 'discard'
  /** States that it takes, and those it takes unless it is told. */
  readonly takes: readonly State[]
  readonly unlessTold: readonly State[]
  /** The consumers that this process has declared. */
  readonly declared: readonly string[]
  /** The filter without what it cannot change, as far as that is known. */
  narrow?(filter: CheckedFilter, states: readonly State[]): Promise<CheckedFilter>
  /** Changes rows of one place. Answers how many were changed. */
  inbox(rows: readonly FoundRow[], states: readonly State[]): Promise<number>
  outbox(rows: readonly FoundRow[], states: readonly State[]): Promise<number>
}

export async function changeAll(
  runtime: Runtime,
  selection: Filter | 'all',
  options: Bulk,
  change: Change,
): Promise<number> {
  const given = checkSelection(change.verb, selection)
  const bulk = resolve(change.verb, options, BULK)
  const { by, reason, limit, perSecond } = bulk
  const states = statesOf(given, change)
  const filter = (await change.narrow?.(given, states)) ?? given
  const selected = { filter, states }
  let count = 0
  if (bulk.dryRun) {
    count = await walk(runtime, selected, bulk, async (rows) => rows.length)
    if (count === 0) await checkConsumer(runtime, filter, change)
    return count
  }
  try {
    await walk(runtime, selected, bulk, async (rows) => {
      const changed = await change[filter.box](rows, states)
      count += changed
      return changed
    })
  } finally {
    const detail = { filter: selection, count, reason, limit, perSecond }
    await writeAudit(runtime, { action: change.verb, detail, by })
  }
  if (count === 0) await checkConsumer(runtime, filter, change)
  return count
}

/** Of the states that are asked for, those that the verb takes. */
export function statesOf(filter: CheckedFilter, { takes, unlessTold }: Change): State[] {
  const asked = filter.states ?? unlessTold
  return possibleStates(
    filter,
    asked.filter((state) => takes.includes(state)),
  )
}

/** Nothing fits: perhaps because the consumer is misspelt. */
async function checkConsumer(runtime: Runtime, { box, consumer }: CheckedFilter, change: Change): Promise<void> {
  if (box !== 'inbox' || consumer === undefined) return
  const [unknown] = await unknownConsumers(runtime, [consumer], change.declared)
  if (!unknown) return
  const what = `${change.verb}: there is no consumer ${JSON.stringify(consumer)}`
  throw new OnceboxError('FILTER_INVALID', `${what}; ${unknown.hint}`)
}

/** Takes batches of what fits until it is through or the limit is reached. Answers with the sum. */
async function walk(
  runtime: Runtime,
  { filter, states }: { readonly filter: CheckedFilter; readonly states: readonly State[] },
  { limit = Infinity, perSecond, dryRun, signal, progress }: Resolved<typeof BULK>,
  take: (rows: readonly FoundRow[]) => Promise<number>,
): Promise<number> {
  if (states.length === 0 || limit === 0) return 0
  const size = perSecond === undefined || dryRun ? BATCH : Math.max(1, Math.min(BATCH, Math.floor(perSecond / 10)))
  const count = examinedAtOnce(filter)
  const end = endsOf(await endOf(runtime))
  let next = performance.now()
  let sum = 0
  for (const place of await placesOf(runtime, filter, states)) {
    let position: Position | undefined = await startOf(runtime, place, filter, 'oldest')
    for (let done = false; !done;) {
      if (signal?.aborted) return sum
      const until = end[place]
      const options = { direction: 'oldest', states, position, until, count, bodies: false } as const
      const found = await step(runtime, place, filter, options)
      position = found.position
      done = found.done
      for (let at = 0; at < found.rows.length;) {
        const batch = found.rows.slice(at, at + Math.min(size, limit - sum))
        if (perSecond !== undefined && !dryRun) {
          await sleepUntil(next, signal)
          // From when this batch begins: time that was lost is not made up for, or what it held up would come at once.
          next = Math.max(next, performance.now()) + (batch.length * 1_000) / perSecond
        }
        if (signal?.aborted) return sum
        sum += await take(batch)
        at += batch.length
        // One that is async fails as one that throws does.
        await (progress(sum) as unknown)
        if (sum >= limit) return sum
      }
    }
  }
  return sum
}

async function sleepUntil(at: number, signal: AbortSignal | undefined): Promise<void> {
  const ms = at - performance.now()
  if (ms <= 0 || signal?.aborted) return
  let wake: (() => void) | undefined
  const aborted = new Promise<void>((resolve) => (wake = resolve))
  signal?.addEventListener('abort', wake!, { once: true })
  await sleep(ms, aborted).finally(() => signal?.removeEventListener('abort', wake!))
}

/** What arrives after the walk has begun is not part of it. */
export async function endOf(runtime: Runtime): Promise<WalkEnd> {
  const [end] = await runtime.db.run(WALK_END, null)
  return end!
}

export function endsOf({ at, seq, n, sent }: WalkEnd): Partial<Record<Place, string>> {
  const quarantine = { quarantine: n, quarantineOf: n, quarantineIds: n }
  const failures = { parked: seq, alike: seq, fronts: seq }
  return { journal: at, waiting: seq, ...failures, ...quarantine, outbox: sent, outboxParked: sent, outboxIds: sent }
}
