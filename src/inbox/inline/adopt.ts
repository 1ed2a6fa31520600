/**
 * Adopt: a message whose handler calls effects cannot keep its transaction, and with it its mark, open during the call.
 * It is taken into the box, claimed by us, and runs like a stored one; copies of it are told `busy` meanwhile.
 */
import { randomUUID } from 'node:crypto'
import type { Failure } from '../../message.js'
import { ADOPT } from '../../postgres/sql/effects.js'
import { looseClaim, type Claim, type Verdict } from '../claim.js'
import { runClaim } from '../group.js'
import type { Ackable } from '../outcome.js'
import { quarantined } from '../receive.js'
import type { Worker } from '../running.js'
import { messageOf } from './call.js'
import { failRow } from './fail.js'
import { retryTime } from '../verdict.js'
import { judgeKnown } from './known.js'
import type { Item } from './mark.js'

export async function runAdopted(worker: Worker, item: Item, counted: boolean): Promise<Ackable | undefined> {
  const { runtime, consumer } = worker
  const token = randomUUID()
  const rows = await runtime.db.run(ADOPT, { ...failRow(consumer, item), token, lease: consumer.options.leaseMs })
  if (rows.length === 0) return judgeKnown(worker, item)
  const attempts = Number(rows[0]!['attempts'])
  const ofTheBox = consumer.options.retryBy === 'box' || rows[0]!['stored'] === 'true'
  const { type } = item.prepared
  const message = await messageOf(worker, item, counted ? attempts - 1 : attempts)
  const { source, id } = item
  const n = rows[0]!['n'] as string | null
  const held = { source, id, n, type, lane: undefined, attempts, suspect: false, counted, message, problem: undefined }
  const loose = looseClaim(runtime, consumer, token, [held])
  let verdict: Verdict | undefined
  const claim: Claim = {
    ...loose,
    fail(failed, given) {
      verdict = given.parked || ofTheBox ? given : { ...given, parked: 'failed' }
      return loose.fail(failed, verdict)
    },
  }
  worker.pace.alone.add(type)
  await runClaim(worker, claim)
  if (verdict === undefined) return judgeKnown(worker, item).then(asHandled)
  if (verdict.parked === 'quarantined') return quarantined(consumer.name, verdict.reason ?? 'effect-unknown')
  const error: Failure = verdict.failure ?? { name: 'RetryLater', message: 'the handler asked to be run later' }
  if (verdict.parked === 'dead') return { outcome: { consumer: consumer.name, status: 'dead', error } }
  const ack = verdict.parked !== 'failed'
  const retryAt = retryTime(verdict, ack ? 'box' : 'source')
  return { outcome: { consumer: consumer.name, status: 'failed', error, ...(retryAt && { retryAt }) }, ack }
}

/** We ran it ourselves, so what is a duplicate for others was handled for us. */
function asHandled(known: Ackable | undefined): Ackable | undefined {
  if (known?.outcome.status !== 'duplicate') return known
  return { outcome: { consumer: known.outcome.consumer, status: 'handled', result: known.outcome.result } }
}
