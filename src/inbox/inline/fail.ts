/** Records what a failed run on arrival means: the source delivers again, the box runs it again, or it is dead. */
import { toFailure } from '../../failure.js'
import type { Failure } from '../../message.js'
import { isConflict } from '../../postgres/errors.js'
import { FAIL_INLINE, LOCK_TIMEOUT } from '../../postgres/sql/inline.js'
import type { Row } from '../../postgres/database.js'
import type { ConsumerDeclaration } from '../consumer.js'
import { busy, type Ackable } from '../outcome.js'
import { toMessage } from '../prepare.js'
import type { Worker } from '../running.js'
import { tellParked, tellRetry } from '../tell.js'
import { retryTime, verdictOf } from '../verdict.js'
import { judgeKnown } from './known.js'
import { markRow, type Item } from './mark.js'

export async function recordFailure(worker: Worker, item: Item, error: unknown, attempts: number): Promise<Ackable> {
  const { consumer } = worker
  const { retry, retryBy } = consumer.options
  const verdict = verdictOf(error, attempts + 1, retry, false)
  const bySource = retryBy === 'source' && verdict.parked === undefined
  const failure: Failure = verdict.failure ?? toFailure(error)
  const row = {
    ...failRow(consumer, item),
    n: verdict.attempts,
    ms: verdict.at ? Math.max(0, verdict.at.getTime() - Date.now()) : (verdict.delayMs ?? 0),
    p: verdict.parked ?? (bySource ? 'failed' : undefined),
    err: JSON.stringify(failure),
    hist: verdict.failure !== undefined,
  }
  const rows = await record(worker, row)
  // Nothing recorded: another copy has handled it, or holds it now.
  if (rows.length === 0) {
    const known = await judgeKnown(worker, item)
    return known ?? busy(consumer.name)
  }
  if (verdict.parked) {
    tellDead(worker, item, Number(rows[0]!['attempts']), failure)
    return { outcome: { consumer: consumer.name, status: 'dead', error: failure } }
  }
  const by = bySource ? 'source' : 'box'
  const failed = Number(rows[0]!['attempts']) + (verdict.failure ? 0 : 1)
  tellRetry(worker.runtime, toldOf(worker, item, failed, failure), verdict, by)
  const retryAt = retryTime(verdict)
  const outcome = { consumer: consumer.name, status: 'failed' as const, error: failure, ...(retryAt && { retryAt }) }
  return { outcome, ack: !bySource }
}

/** A copy in flight holds the row: its outcome is not known yet, and neither is ours. Nothing is recorded then. */
async function record({ runtime }: Worker, row: object): Promise<readonly Row[]> {
  try {
    return await runtime.db.transaction(async (tx) => {
      await runtime.db.run(LOCK_TIMEOUT, ['1s'], tx)
      return runtime.db.run(FAIL_INLINE, row, tx)
    })
  } catch (error) {
    if (isConflict(error)) return []
    throw error
  }
}

export function failRow(consumer: ConsumerDeclaration, item: Item): Record<string, unknown> {
  return { c: consumer.name, ...markRow(item) }
}

function tellDead(worker: Worker, item: Item, attempts: number, error: Failure): void {
  tellParked(worker.runtime, toldOf(worker, item, attempts, error), { attempts: 0, parked: 'dead' })
}

function toldOf({ consumer }: Worker, { prepared }: Item, attempts: number, error: Failure) {
  const message = toMessage({ ...prepared, receivedMs: Date.now(), attempts: attempts - 1 }, prepared.data)
  return { message, consumer: consumer.name, error }
}
