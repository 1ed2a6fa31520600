/** Alone: one message, one transaction. What it throws decides its fate. */
import { EffectJournal, EffectUnknown, JournalFailed, resumeRecorded } from '../effects/journal.js'
import { OnceboxError, ownError } from '../errors.js'
import { batchRun } from '../handler.js'
import type { Outgoing } from '../outbox/send.js'
import { isConflict } from '../postgres/errors.js'
import { COUNT_ATTEMPT } from '../postgres/sql/settle.js'
import type { Abort } from '../worker/abort.js'
import { backoffMs, sleep } from '../backoff.js'
import { failpoint, SimulatedCrash } from '../worker/failpoints.js'
import { runBatch } from './batch.js'
import { callHandler, handlerCall } from './call.js'
import type { Claim, ClaimedMessage } from './claim.js'
import { forgetLoss, hasLost, isToBlame, noteServer } from './losses.js'
import { toResult } from './result.js'
import type { Worker } from './running.js'
import { applyVerdict, isCounted, isLost, missedAttempts, putBack, recordFailure, settleAll } from './settle.js'
import { suspectTurn } from './suspects.js'
import { blameOf, Blameless, CommitUnknown, isAway, openClaimed, resolveUnknown } from './transaction.js'
import { verdictOf } from './verdict.js'

export async function runAlone(worker: Worker, claim: Claim, message: ClaimedMessage, abort: Abort): Promise<void> {
  const { runtime } = worker
  if (hasLost(worker, message)) await noteServer(worker, message)
  try {
    await attemptCalmly(worker, claim, message, abort)
    return forgetLoss(worker, message)
  } catch (error) {
    if (error instanceof SimulatedCrash || isLost(error)) throw error
    if (error instanceof CommitUnknown) {
      const done = await resolveUnknown(runtime, error, () => claim.isSettled([message]), abort)
      if (done) return claim.settled([message], error)
      // Whoever goes on with the claim would run what is behind it in its lane.
      throw error
    }
    // Stopping is not the message's fault, and neither is a database that went away: the claim is given back.
    if (abort.aborted || (error instanceof Blameless && !error.called)) throw error
    if (error instanceof Blameless) {
      await putBack(claim, message)
      throw error
    }
    if (isAway(error) && !(await isToBlame(worker, message, error))) throw error
    await recordFailure(worker, claim, message, error, isCounted(message))
    if (!(error instanceof EffectUnknown)) return
    await resumeRecorded(runtime, { consumer: worker.consumer.name, source: message.source, id: message.id }, error)
  }
}

/** A deadlock or a serialization failure is tried again at once, before the message goes back to the queue. */
async function attemptCalmly(worker: Worker, claim: Claim, message: ClaimedMessage, abort: Abort): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await attemptAlone(worker, claim, message, abort)
    } catch (error) {
      if (!isConflict(error) || tries === 5 || abort.aborted) throw error
      await sleep(backoffMs(tries, 2, 50))
    }
  }
}

async function attemptAlone(worker: Worker, claim: Claim, message: ClaimedMessage, abort: Abort): Promise<void> {
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
        const text = await open.call(async () => {
          const result = toResult(await callHandler(runtime, consumer, call))
          journal.check()
          return result
        })
        pace.took(message.type, performance.now() - started)
        return settleAll(worker, claim, [message], text === undefined ? [] : [[message, text]], outgoing, open, tx)
      })
      failpoint('committed', runtime.db)
      return claim.settled([message])
    } catch (error) {
      const wanted = journal.takeWanted()
      if (!wanted || error instanceof SimulatedCrash || abort.aborted) throw error
      await journal.perform(wanted, claim.token, consumer.options, abort).catch((failed: unknown) => {
        throw failed instanceof JournalFailed ? blameOf(failed.cause) : failed
      })
    }
  }
}

/**
 * Its last worker died while holding it, perhaps because of it: when its turn comes, count first, then run it with nobody
 * else, and with no other suspect in this process.
 */
export async function runSuspect(worker: Worker, claim: Claim, message: ClaimedMessage, abort: Abort): Promise<void> {
  const endTurn = await suspectTurn(abort)
  try {
    // A box that stops starts nothing.
    if (!worker.stopping()) await runInTurn(worker, claim, message, abort)
  } finally {
    endTurn()
  }
}

async function runInTurn(worker: Worker, claim: Claim, message: ClaimedMessage, abort: Abort): Promise<void> {
  const { runtime, consumer } = worker
  if (message.attempts > 0) {
    // Attempts that found no handler have killed nobody.
    const attempts = message.attempts - (await missedAttempts(worker, message))
    const error = new OnceboxError(
      'WORKER_DIED',
      `its worker died or lost its lease ${attempts} times; look for a crash, an out-of-memory kill or a blocked event loop`,
    )
    const verdict = attempts > 0 ? verdictOf(error, attempts, consumer.options.retry, true) : undefined
    if (verdict?.parked) return applyVerdict(worker, claim, message, verdict)
  }
  const { source, id, lane } = message
  const attempts = message.attempts + 1
  // From here on it may be counted, whether we hear of it or not.
  const own = {
    ...message,
    attempts,
    suspect: false,
    attemptsBefore: message.attempts,
    message: { ...message.message, attempt: attempts },
  }
  claim.replace(message, own)
  const count = { c: consumer.name, k: claim.token, s: source, i: id, lane, total: attempts }
  const rows = await runtime.db.run(COUNT_ATTEMPT, count)
  if (rows.length === 0) throw ownError('CLAIM_LOST', `message ${id} was claimed by another worker`)
  if (batchRun(consumer.handlerOf(message.type))) return runBatch(worker, claim, [own], abort)
  return runAlone(worker, claim, own, abort)
}
