/** Alone: one message, one transaction. What it throws decides its fate. */
import { EffectJournal, EffectUnknown, resumeRecorded } from '../effects/journal.js'
import { OnceboxError } from '../errors.js'
import { batchRun } from '../handler.js'
import type { Outgoing } from '../outbox/send.js'
import { COUNT_ATTEMPT } from '../postgres/sql/settle.js'
import type { Abort } from '../worker/abort.js'
import { backoffMs, sleep } from '../backoff.js'
import { failpoint, SimulatedCrash } from '../worker/failpoints.js'
import { runBatch } from './batch.js'
import { callHandler, handlerCall } from './call.js'
import type { Claim, ClaimedMessage } from './claim.js'
import { forgetLoss, isToBlame } from './losses.js'
import { toResult } from './result.js'
import type { Worker } from './running.js'
import { applyVerdict, isLost, recordFailure, settleAll } from './settle.js'
import { CommitUnknown, isAway, isConflict, openClaimed, resolveUnknown } from './transaction.js'
import { verdictOf } from './verdict.js'

export async function runAlone(
  worker: Worker,
  claim: Claim,
  message: ClaimedMessage,
  abort: Abort,
  counted = false,
): Promise<void> {
  const { runtime } = worker
  const called = { handler: false }
  try {
    await attemptCalmly(worker, claim, message, abort, called)
    return forgetLoss(worker, message)
  } catch (error) {
    if (error instanceof SimulatedCrash || isLost(error)) throw error
    if (error instanceof CommitUnknown) {
      if (await resolveUnknown(runtime, error, () => claim.isSettled([message]), abort)) return claim.settled([message])
      // Whoever goes on with the claim would run what is behind it in its lane.
      throw error
    }
    // Stopping is not the message's fault, and neither is a database that went away: the claim is given back.
    if (abort.aborted || (isAway(error) && !(called.handler && isToBlame(worker, message)))) throw error
    await recordFailure(worker, claim, message, error, counted)
    if (!(error instanceof EffectUnknown)) return
    await resumeRecorded(runtime, { consumer: worker.consumer.name, source: message.source, id: message.id }, error)
  }
}

/** A deadlock or a serialization failure is tried again at once, before the message goes back to the queue. */
async function attemptCalmly(
  worker: Worker,
  claim: Claim,
  message: ClaimedMessage,
  abort: Abort,
  called: { handler: boolean },
): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await attemptAlone(worker, claim, message, abort, called)
    } catch (error) {
      if (!isConflict(error) || tries === 5 || abort.aborted) throw error
      await sleep(backoffMs(tries, 2, 50))
    }
  }
}

async function attemptAlone(
  worker: Worker,
  claim: Claim,
  message: ClaimedMessage,
  abort: Abort,
  called: { handler: boolean },
): Promise<void> {
  const { runtime, consumer, pace } = worker
  const { source, id } = message
  const journal = new EffectJournal(runtime, { consumer: consumer.name, source, id })
  for (;;) {
    try {
      await openClaimed(worker, claim, undefined, async (tx, open) => {
        const outgoing: Outgoing[] = []
        const run = handlerCall(consumer, message.type, message.message)
        const call = { tx, subject: [message.message], outgoing, abort, effect: journal.runIn(tx), run }
        const started = performance.now()
        called.handler = true
        const text = toResult(await callHandler(runtime, consumer, call))
        pace.took(message.type, performance.now() - started)
        journal.check()
        return settleAll(worker, claim, [message], text === undefined ? [] : [[message, text]], outgoing, open, tx)
      })
      failpoint('committed', runtime.db)
      return claim.settled([message])
    } catch (error) {
      const wanted = journal.takeWanted()
      if (!wanted || error instanceof SimulatedCrash || abort.aborted) throw error
      await journal.perform(wanted, claim.token, consumer.options, abort)
    }
  }
}

/** Its last worker died while holding it, perhaps because of it: count first, then run it with nobody else. */
export async function runSuspect(worker: Worker, claim: Claim, message: ClaimedMessage, abort: Abort): Promise<void> {
  const { runtime, consumer } = worker
  if (message.attempts > 0) {
    const error = new OnceboxError(
      'WORKER_DIED',
      `its worker died or lost its lease ${message.attempts} times; look for a crash, an out-of-memory kill or a blocked event loop`,
    )
    const verdict = verdictOf(error, message.attempts, consumer.options.retry, true)
    if (verdict.parked) return applyVerdict(worker, claim, message, verdict)
  }
  const { source, id, lane } = message
  const rows = await runtime.db.run(COUNT_ATTEMPT, { c: consumer.name, k: claim.token, s: source, i: id, lane })
  if (rows.length === 0) throw new OnceboxError('CLAIM_LOST', `message ${id} was claimed by another worker`)
  const attempts = Number(rows[0]!['attempts'])
  const own = {
    ...message,
    attempts,
    suspect: false,
    counted: true,
    message: { ...message.message, attempt: attempts },
  }
  claim.replace(message, own)
  if (batchRun(consumer.handlerOf(message.type))) return runBatch(worker, claim, [own], abort, true)
  return runAlone(worker, claim, own, abort, true)
}
