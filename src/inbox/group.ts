/**
 * Group: runs the messages of a claim.
 *
 * Fast handlers share a transaction; the shared pass is optimistic and blames nobody. If anything in it fails, it
 * rolls back and its messages run one transaction each (alone.ts), which decides who failed. Suspects run alone from
 * the start, and batch handlers have a way of their own (batch.ts).
 */
import { OnceboxError, ownError } from '../errors.js'
import { batchRun } from '../handler.js'
import type { Outgoing } from '../outbox/send.js'
import { isConflict } from '../postgres/errors.js'
import { Abort } from '../worker/abort.js'
import { backoffMs, sleep } from '../backoff.js'
import { failpoint, SimulatedCrash } from '../worker/failpoints.js'
import { keepLease } from '../worker/lease.js'
import { runAlone, runSuspect } from './alone.js'
import { runBatch, takeBatch } from './batch.js'
import { callHandler, handlerCall, type EffectRunner } from './call.js'
import type { Claim, ClaimedMessage } from './claim.js'
import { hasLost, noteLoss } from './losses.js'
import { toResult } from './result.js'
import type { Worker } from './running.js'
import { isLost, missingHandler, quarantineInvalid, recordFailure, settleAll } from './settle.js'
import { CommitUnknown, isAway, openClaimed, resolveUnknown, SHARED_LOCK_TIMEOUT, withoutBlame } from './transaction.js'

export async function runClaim(worker: Worker, claim: Claim): Promise<void> {
  try {
    await hold(worker, claim, (abort) => runQueue(worker, claim, abort))
  } catch (error) {
    if (!(error instanceof SimulatedCrash) && !isLost(error)) throw error
  }
}

/** Keeps the claim's lease while `work` runs, and gives back what it leaves. */
export async function hold(worker: Worker, claim: Claim, work: (abort: Abort) => Promise<void>): Promise<void> {
  const { consumer } = worker
  const abort = new Abort()
  const forward = worker.stop.onAbort((reason) => abort.abort(reason))
  const endLease = keepLease(claim, consumer.options.leaseMs, (why, away) => {
    abort.abort(ownError('CLAIM_LOST', `${consumer.name} lost its lease: ${why}`))
    // What nobody has claimed by the time the database is back is given back then: it is no suspect.
    if (!away) claim.abandon()
  })
  try {
    failpoint('claimed', worker.runtime.db)
    await work(abort)
  } catch (error) {
    if (error instanceof SimulatedCrash) claim.abandon()
    throw withoutBlame(error)
  } finally {
    endLease()
    forward()
    await releaseRest(worker, claim)
  }
}

async function runQueue(worker: Worker, claim: Claim, abort: Abort): Promise<void> {
  const { queue } = claim
  const started = performance.now()
  // Suspects wait for each other: whoever is none goes first. A lane has either none or nothing else.
  queue.sort((a, b) => Number(a.suspect) - Number(b.suspect))
  while (queue.length > 0 && !abort.aborted && !worker.stopping()) {
    await runNext(worker, claim, abort)
    // The rest of a claim that turned out slow is better off with whoever is idle; suspects would be none any more.
    const slow = performance.now() - started > 5 * worker.consumer.options.group.ms + 1_000
    if (slow && !queue[0]?.suspect) break
  }
}

/** Gives back what was not run. If that fails it happens later, and before anything is claimed. */
async function releaseRest(worker: Worker, claim: Claim): Promise<void> {
  const { releasing } = worker
  try {
    await claim.release()
  } catch {
    // Whatever the reason is, the work that led here met it too, and tells.
    const late: Promise<void> = releaseLate(worker, claim).finally(() => releasing.delete(late))
    releasing.add(late)
  }
}

/** However long it takes: a claim that is left to run out makes its messages suspects. */
async function releaseLate(worker: Worker, claim: Claim): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    await sleep(backoffMs(attempt, 20, 500))
    try {
      return await claim.release()
    } catch (error) {
      if (worker.stop.aborted || (worker.stopping() && !isAway(error))) return claim.abandon()
    }
  }
}

/** Decides how the head of the queue runs, and runs it. */
async function runNext(worker: Worker, claim: Claim, abort: Abort): Promise<void> {
  const { consumer, pace } = worker
  const head = claim.queue[0]!
  const handler = consumer.handlerOf(head.type)
  if (head.problem !== undefined) return quarantineInvalid(worker, claim, head)
  if (handler === undefined) return missingHandler(worker, claim, head)
  if (head.suspect) return runSuspect(worker, claim, head, abort)
  if (batchRun(handler)) return runBatch(worker, claim, takeBatch(worker, claim, handler), abort)
  if (pace.alone.has(head.type) || hasLost(worker, head)) return runAlone(worker, claim, head, abort)
  const group = takeGroup(worker, claim)
  return group.length === 1 ? runAlone(worker, claim, head, abort) : runShared(worker, claim, group, abort)
}

/** The leading messages that may share a transaction. */
function takeGroup(worker: Worker, claim: Claim): ClaimedMessage[] {
  const { consumer, pace } = worker
  const group: ClaimedMessage[] = []
  for (const message of claim.queue) {
    if (group.length >= pace.limit || message.suspect || message.problem !== undefined) break
    const handler = consumer.handlerOf(message.type)
    if (handler === undefined || batchRun(handler) || pace.alone.has(message.type) || hasLost(worker, message)) break
    group.push(message)
  }
  return group
}

async function runShared(worker: Worker, claim: Claim, group: ClaimedMessage[], abort: Abort): Promise<void> {
  const { pace } = worker
  const endTurn = await pace.turn()
  let begun: ClaimedMessage[] = []
  let failure: { error: unknown; slow: ClaimedMessage | undefined } | undefined
  try {
    for (let tries = 1; ; tries++) {
      begun = []
      failure = await sharedPass(worker, claim, group, begun, abort)
      if (!failure) return pace.succeeded()
      // Once more with fewer groups side by side, before anybody pays for a transaction each.
      const collision = isConflict(failure.error)
      if (collision) pace.collided()
      if (!collision || tries === 2) break
    }
  } finally {
    endTurn()
  }
  if (abort.aborted) return
  // No handler was called: nothing would come of trying again at once.
  if (begun.length === 0) throw failure.error
  for (const message of begun) {
    // A failure before it in its lane has taken it out of the queue.
    if (!claim.queue.includes(message) || worker.stopping()) continue
    if (message === failure.slow) await recordFailure(worker, claim, message, failure.error, false)
    else await runAlone(worker, claim, message, abort)
    if (abort.aborted) return
  }
}

/** One optimistic transaction for many messages. Answers with the failure, or nothing if it committed. */
async function sharedPass(
  worker: Worker,
  claim: Claim,
  group: readonly ClaimedMessage[],
  begun: ClaimedMessage[],
  abort: Abort,
): Promise<{ error: unknown; slow: ClaimedMessage | undefined } | undefined> {
  const { runtime, consumer, pace } = worker
  const effects = sharedEffects(worker)
  let slow: ClaimedMessage | undefined
  try {
    await openClaimed(worker, claim, SHARED_LOCK_TIMEOUT, async (tx, open) => {
      const outgoing: Outgoing[] = []
      const results: [ClaimedMessage, string][] = []
      const clock = pace.clock()
      for (const message of group) {
        // A slow one gets a transaction of its own: this one commits first. A box that stops starts nothing.
        if (begun.length > 0 && (worker.stopping() || !clock.hasTime(message.type, group.length - begun.length))) break
        begun.push(message)
        const effect = effects(message)
        const run = handlerCall(consumer, message.type, message.message)
        const call = { tx, subject: [message.message], outgoing, abort, effect: effect.run, run }
        try {
          const text = await open.call(async () => {
            const result = toResult(await callHandler(runtime, consumer, call))
            effect.check()
            return result
          })
          if (text !== undefined) results.push([message, text])
        } catch (error) {
          if (error instanceof OnceboxError && error.code === 'HANDLER_TIMEOUT') slow = message
          throw error
        }
        clock.ran(message.type)
      }
      return settleAll(worker, claim, begun, results, outgoing, open, tx)
    })
    failpoint('committed', runtime.db)
    claim.settled(begun)
    return undefined
  } catch (error) {
    if (error instanceof SimulatedCrash) throw error
    if (error instanceof CommitUnknown) {
      if (await resolveUnknown(runtime, error, () => claim.isSettled(begun), abort)) {
        claim.settled(begun, error)
        return undefined
      }
    } else if (isAway(error) || isLost(error)) {
      if (isAway(error) && begun.length > 0) noteLoss(worker, begun.at(-1)!)
      throw error
    }
    return { error, slow }
  }
}

/** In a shared transaction an effect writes and calls nothing: its message moves out of the group. */
function sharedEffects({ pace }: Worker) {
  return ({ type }: ClaimedMessage): { run: EffectRunner; check: () => void } => {
    // Made when it is needed: an error for each message of every group would cost more than the rest of the call.
    let leave: OnceboxError | undefined
    return {
      run: () => {
        leave ??= new OnceboxError(
          'GROUP_ABANDONED',
          'the handler calls an effect, so it runs again in its own transaction',
        )
        pace.alone.add(type)
        return Promise.reject(leave)
      },
      // A handler that catches everything must not keep the group going.
      check: () => {
        if (leave) throw leave
      },
    }
  }
}
