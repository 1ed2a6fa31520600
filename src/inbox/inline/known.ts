/** What is to be said of a message that this transaction did not handle. */
import { IS_FRESH } from '../../postgres/sql/inline.js'
import type { Abort } from '../../worker/abort.js'
import type { Ackable } from '../outcome.js'
import { quarantine, refuse } from '../quarantine.js'
import { classify, confirmKnown, CONFLICT, knownOutcome, quarantined, tooOld, type Known } from '../receive.js'
import type { Worker } from '../running.js'
import { resolveUnknown, type CommitUnknown } from '../transaction.js'
import type { Item } from './mark.js'

/** The outcome of a message that is known already; undefined if its fate is still open. */
export async function judgeKnown(worker: Worker, item: Item): Promise<Ackable | undefined> {
  const { runtime, consumer } = worker
  const [known] = await classify(runtime, [{ consumer: consumer.name, message: item.prepared }])
  if (known === undefined) return judgeAge(worker, item)
  await confirmKnown(runtime, [known])
  if (!known.same) {
    const refused = refuse(item.prepared, 'conflict', CONFLICT)
    await quarantine(runtime, [{ consumer: consumer.name, refused }])
    return quarantined(consumer.name, 'conflict')
  }
  return isOpen(known) ? undefined : knownOutcome(consumer.name, known)
}

/** Unknown, and not marked either: too old, or retention has just taken it and it is tried again. */
export async function judgeAge(worker: Worker, { prepared }: Item): Promise<Ackable | undefined> {
  const { runtime, consumer } = worker
  const { retainMs, untimed } = consumer.options
  const [row] = await runtime.db.run(IS_FRESH, { c: consumer.name, at: prepared.time, r: retainMs, u: untimed })
  if (row!['fresh'] === 'true') return undefined
  await quarantine(runtime, [{ consumer: consumer.name, refused: refuse(prepared, 'too-old', tooOld(prepared)) }])
  return quarantined(consumer.name, 'too-old')
}

/** Its fate is not decided: somebody runs it, or will. */
export function isOpen({ state }: Known): boolean {
  return state === 'failed' || state === 'pending' || state === 'processing' || state === 'arriving'
}

/** After a COMMIT without an answer: the dedup rows are the only truth. */
export async function committed(worker: Worker, unknown: CommitUnknown, ran: readonly Item[]): Promise<boolean> {
  const { runtime, consumer, stop } = worker
  const pairs = ran.map(({ prepared }) => ({ consumer: consumer.name, message: prepared }))
  const read = async (): Promise<boolean> => {
    const known = await classify(runtime, pairs)
    return known.every((one) => one?.state === 'handled')
  }
  return resolveUnknown(runtime, unknown, read, deadline(stop))
}

/** What a failover may still take away is not acknowledged: the sender delivers it again, and is told what holds then. */
export function asSafeAs(unknown: CommitUnknown, outcome: Ackable): Ackable {
  return unknown.warned ? { ...outcome, ack: false } : outcome
}

/** A sender waits for the answer: give up in time for it to deliver again. */
function deadline(stop: Abort, ms = 10_000): { readonly aborted: Error | undefined } {
  const end = performance.now() + ms
  return {
    get aborted() {
      return stop.aborted ?? (performance.now() > end ? new Error('gave up') : undefined)
    },
  }
}
