/**
 * Adopt: takes a message on arrival into the box, claimed by us, and runs it like a stored one; copies of it are told
 * `busy` meanwhile. So runs a message whose handler calls effects, which cannot keep its transaction, and with it its mark,
 * open during the call. And so runs one that is redelivered: its last worker may have died of it, and only a claim tells a
 * worker that died from one that was stopped or cut off.
 */
import { randomUUID } from 'node:crypto'
import { batchRun } from '../../handler.js'
import type { Failure } from '../../message.js'
import { isConflict } from '../../postgres/errors.js'
import { ADOPT } from '../../postgres/sql/effects.js'
import type { Row } from '../../postgres/database.js'
import { runAlone, runSuspect } from '../alone.js'
import { runBatch } from '../batch.js'
import { looseClaim, type Claim, type ClaimedMessage, type LooseClaim, type Verdict } from '../claim.js'
import { hold } from '../group.js'
import { busy, type Ackable } from '../outcome.js'
import { classify, quarantined } from '../receive.js'
import type { Worker } from '../running.js'
import { isLost } from '../settle.js'
import { messageOf } from './call.js'
import { failRow, recordFailure } from './fail.js'
import { retryTime } from '../verdict.js'
import { isOpen, judgeAge, judgeKnown } from './known.js'
import type { Item } from './mark.js'

/** How long to wait for the mark of a copy in flight. */
const LOCK_WAIT = '5ms'

/** Answers undefined if a copy of the message is in flight elsewhere. */
export async function tryRedelivered(worker: Worker, item: Item): Promise<Ackable | undefined> {
  const { runtime, consumer } = worker
  const [known] = await classify(runtime, [{ consumer: consumer.name, message: item.prepared }])
  if (known && (!known.same || !isOpen(known))) return judgeKnown(worker, item)
  // Adopting leaves a row behind, which would pass for a message that waits: too old has to be told before.
  const old = known ? undefined : await judgeAge(worker, item)
  return old ?? runAdopted(worker, item)
}

export async function runAdopted(worker: Worker, item: Item): Promise<Ackable | undefined> {
  const { runtime, consumer } = worker
  let message: ClaimedMessage['message']
  try {
    message = await messageOf(worker, item, 0)
  } catch (error) {
    return recordFailure(worker, item, error, 0)
  }
  const token = randomUUID()
  const adopted = await adopt(worker, item, token)
  if (adopted === undefined) return judgeKnown(worker, item)
  const attempts = Number(adopted['attempts'])
  const { source, id } = item
  const held: ClaimedMessage = {
    source,
    id,
    n: adopted['n'] as string | null,
    type: item.prepared.type,
    lane: undefined,
    attempts,
    suspect: adopted['suspect'] === 'true',
    message: { ...message, attempt: attempts + 1 },
    problem: undefined,
  }
  const ofTheBox = consumer.options.retryBy === 'box' || adopted['stored'] === 'true'
  const loose = looseClaim(runtime, consumer, token, [held])
  const ended = await runHeld(worker, held, ofTheBox ? loose : forItsSource(loose))
  if (ended.verdict === undefined) return asHandled(await judgeKnown(worker, item), ended.warned)
  return outcomeOf(consumer.name, ended.verdict, ofTheBox)
}

async function adopt({ runtime, consumer, calm }: Worker, item: Item, token: string): Promise<Row | undefined> {
  const { leaseMs: lease, retryBy } = consumer.options
  const claim = { token, lease, wait: LOCK_WAIT, reason: retryBy === 'source' ? 'arrival' : null, calm: calm() }
  try {
    const [row] = await runtime.db.run(ADOPT, { ...failRow(consumer, item), ...claim })
    return row
  } catch (error) {
    if (isConflict(error)) return undefined
    throw error
  }
}

/** Its source has it still: what is not settled waits for the source, not for the box. */
function forItsSource(loose: LooseClaim): Claim {
  return {
    ...loose,
    fail: (message, verdict) => loose.fail(message, verdict.parked ? verdict : { ...verdict, parked: 'failed' }),
    release: () => loose.release('failed'),
  }
}

/** Runs what was adopted. Answers with the verdict, if there was one, and whether the commit came with a warning. */
async function runHeld(
  worker: Worker,
  held: ClaimedMessage,
  claim: Claim,
): Promise<{ verdict: Verdict | undefined; warned: boolean }> {
  const ended: { verdict: Verdict | undefined; warned: boolean } = { verdict: undefined, warned: false }
  const noted: Claim = {
    ...claim,
    async fail(message, verdict) {
      const recorded = await claim.fail(message, verdict)
      if (recorded) ended.verdict = verdict
      return recorded
    },
    settled(done, late) {
      ended.warned = late?.warned ?? false
      claim.settled(done, late)
    },
  }
  const many = batchRun(worker.consumer.handlerOf(held.type)) !== undefined
  try {
    await hold(worker, noted, (abort) => {
      if (held.suspect) return runSuspect(worker, noted, held, abort)
      return many ? runBatch(worker, noted, [held], abort) : runAlone(worker, noted, held, abort)
    })
  } catch (error) {
    if (!isLost(error)) throw error
  }
  return ended
}

function outcomeOf(consumer: string, verdict: Verdict, ofTheBox: boolean): Ackable {
  const { parked, failure, asked, reason } = verdict
  if (parked === 'quarantined') return quarantined(consumer, reason ?? 'effect-unknown')
  // Rows that it needs are held by others, and nobody was asked to wait.
  if (!failure && !asked) return busy(consumer)
  const error: Failure = failure ?? { name: 'RetryLater', message: 'the handler asked to be run later' }
  if (parked === 'dead') return { outcome: { consumer, status: 'dead', error } }
  const retryAt = retryTime(verdict)
  return { outcome: { consumer, status: 'failed', error, ...(retryAt && { retryAt }) }, ack: ofTheBox }
}

/** We ran it ourselves, so what is a duplicate for others was handled for us. */
function asHandled(known: Ackable | undefined, warned: boolean): Ackable | undefined {
  if (known?.outcome.status !== 'duplicate') return known
  const { consumer, result } = known.outcome
  return { outcome: { consumer, status: 'handled', result }, ...(warned && { ack: false }) }
}
