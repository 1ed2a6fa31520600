/** Marks: the dedup rows of messages that run on arrival, made and settled in the transaction of their handlers. */
import { OnceboxError } from '../../errors.js'
import { writeOutgoing, type Outgoing } from '../../outbox/send.js'
import { DROP_MARKS, MARK, SETTLE_INLINE } from '../../postgres/sql/inline.js'
import type { Row } from '../../postgres/database.js'
import { STORE_RESULTS } from '../../postgres/sql/settle.js'
import { failpoint } from '../../worker/failpoints.js'
import type { OpenGroup } from '../claim.js'
import type { Prepared } from '../prepare.js'
import type { Worker } from '../running.js'

/** A message on its way through one consumer, with its key in the journal. */
export interface Item {
  readonly prepared: Prepared
  readonly source: string
  readonly id: string
}

/** Neither part may contain NUL. */
export function keyOf({ source, id }: Pick<Item, 'source' | 'id'>): string {
  return `${source}\0${id}`
}

/** A message that is ours to run, with the attempts before this one. */
interface Mark {
  /** The number of its row in the journal. */
  readonly n: string | null
  readonly attempts: number
  /** It was stored already: dropping its mark would lose it. */
  readonly known: boolean
}

/** Marks what is ours to run. The rest is known already, or held elsewhere. */
export async function mark(
  { runtime, consumer, calm }: Worker,
  items: readonly Item[],
  restore: boolean,
  tx: unknown,
): Promise<Map<Item, Mark>> {
  const { retainMs: r, untimed: u } = consumer.options
  const param = { c: consumer.name, m: items.map(markRow), restore, r, u, calm: calm() }
  const rows = await runtime.db.run(MARK, param, tx)
  const byKey = new Map<string, Row>()
  // One row says nothing of a message: it stands for the lock timeout.
  for (const row of rows) if (row['id'] !== null) byKey.set(keyOf(row as unknown as Item), row)
  const marks = new Map<Item, Mark>()
  for (const item of items) {
    const row = byKey.get(keyOf(item))
    if (row === undefined) continue
    const { n, attempts } = row as { n: string | null; attempts: string | null }
    marks.set(item, { n, attempts: Number(attempts ?? 0), known: attempts !== null })
  }
  return marks
}

export function markRow({ prepared, source, id }: Item): Record<string, unknown> {
  const renamed = id !== prepared.id || source !== prepared.source
  return {
    s: source,
    i: id,
    t: prepared.type,
    k: prepared.key,
    b: prepared.body,
    h: prepared.hash,
    e: prepared.envelope,
    at: prepared.time,
    os: renamed ? prepared.source : undefined,
    oi: renamed ? prepared.id : undefined,
  }
}

export async function settle(
  { runtime, consumer }: Worker,
  done: {
    readonly outgoing: readonly Outgoing[]
    readonly results: readonly [string, string, string][]
    readonly drop: readonly Item[]
    /** The marks that were made: what was not dropped of them is handled. */
    readonly marks: ReadonlyMap<Item, Mark>
    readonly open: OpenGroup
    readonly tx: unknown
  },
): Promise<{ result: void; settlement: Promise<unknown> }> {
  const { open, tx } = done
  failpoint('handled', runtime.db)
  // A known message that was marked and did not run keeps its row: rolling back is simpler than restoring it.
  if (done.drop.some((item) => done.marks.get(item)!.known)) throw new OnceboxError('GROUP_ABANDONED', 'run alone')
  await writeOutgoing(runtime, done.outgoing, tx)
  if (done.results.length > 0) await runtime.db.run(STORE_RESULTS, { c: consumer.name, r: done.results }, tx)
  const drop = done.drop.map(({ source, id }) => [source, id])
  if (drop.length > 0) await runtime.db.run(DROP_MARKS, { c: consumer.name, drop }, tx)
  const dropped = new Set(done.drop)
  const handled: string[] = []
  for (const [item, { n }] of done.marks) if (n !== null && !dropped.has(item)) handled.push(n)
  const settlement = runtime.db.run(SETTLE_INLINE, { x: open.xid, g: open.guard, handled }, tx)
  return { result: undefined, settlement }
}
