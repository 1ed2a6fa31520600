/**
 * Assign: events find their sinks. Those that no sink wanted when they were looked at are put aside, and looked at again
 * when the sinks change: in small batches, by the relay of the sink that may want them, from where the last one got to.
 */
import { GONE_MS } from '../figures.js'
import { sqlState } from '../postgres/errors.js'
import { FINISH_LEFT } from '../postgres/sql/shards.js'
import { ASSIGN, CATCH_UP, RECLAIM, REGISTER_SINKS, RETIRE_SINKS, type Differing } from '../postgres/sql/sinks.js'
import { readJson } from '../postgres/statement.js'
import type { Runtime } from '../runtime.js'
import type { Attached } from './options.js'

const AT_ONCE = 1_000

/** A process, to the others: they share its sinks. */
export interface Process {
  readonly id: string
  readonly host: string
}

/**
 * Tells senders in all processes which sinks there are: all of a box at once, or an event that waited for a sink could
 * be given to the first of them and go before the second is known. Answers with what other processes say differently.
 */
export async function registerSinks(
  { db }: Runtime,
  process: Process,
  attached: readonly Attached[],
  /** Whether to look at what was put aside though nothing has changed. */
  again: 'look again' | 'go on',
): Promise<readonly Differing[]> {
  if (attached.length === 0) return []
  const s = attached.map(({ name, options: { types, keepMs } }) => ({ n: name, t: types, k: keepMs }))
  const given = { process: process.id, host: process.host, ms: GONE_MS, again: again === 'look again', s }
  const [row] = await db.run(REGISTER_SINKS, given)
  return readJson(row!.differ)
}

/** The process stops, and no longer says what its sinks want. */
export async function retireSinks({ db }: Runtime, process: Process): Promise<void> {
  await db.run(RETIRE_SINKS, [process.id])
}

/** Gives some of the events that have none their sinks. Answers whether it looked at any. */
export async function assign({ db }: Runtime): Promise<boolean> {
  const [row] = await db.run(ASSIGN, [AT_ONCE]).catch(orNone)
  return Number(row?.looked ?? 0) > 0
}

/** Looks at some of the events that were put aside. Answers whether it could: another relay may be at it. */
export async function catchUp({ db }: Runtime, sink: string): Promise<boolean> {
  return (await db.run(CATCH_UP, { sink, limit: AT_ONCE }).catch(orNone)).length > 0
}

/** Somebody holds the set of sinks: the next round will do. */
export function orNone(error: unknown): readonly never[] {
  if (sqlState(error) === '55P03') return []
  throw error
}

/** Finishes events whose last relay died before it could. */
export async function finishLeft({ db }: Runtime, stopping: () => boolean): Promise<void> {
  for (let after: string | null = '0'; after !== null && !stopping();) {
    const [row]: readonly { last: string | null }[] = await db.run(FINISH_LEFT, { after, limit: AT_ONCE })
    after = row!.last
  }
}

/** Finds other sinks for events of a sink that was removed before they were committed. */
export async function reclaim({ db }: Runtime, stopping: () => boolean): Promise<void> {
  for (let found = Infinity; found > 0 && !stopping();) {
    const [row] = await db.run(RECLAIM, [AT_ONCE]).catch(orNone)
    found = Number(row?.found ?? 0)
  }
}
