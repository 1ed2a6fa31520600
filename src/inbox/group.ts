/**
 * Group: runs what is held.
 *
 * Fast handlers share a transaction; the shared pass is optimistic and blames nobody. If anything in it fails, it
 * rolls back and its messages run one transaction each (alone.ts), which decides who failed. Suspects run alone from
 * the start, and batch handlers have a way of their own (batch.ts).
 */
import { isConflict } from '../postgres/errors.js'
import { ownError } from '../errors.js'
import { batchRun } from '../handler.js'
import { Abort } from '../worker/abort.js'
import { failpoint, SimulatedCrash } from '../worker/failpoints.js'
import { keepLease } from '../worker/lease.js'
import { runAlone, runSuspect } from './alone.js'
import { runBatch, takeBatch } from './batch.js'
import { isLost, missingHandler, quarantineInvalid, recordFailure } from './fail.js'
import type { Claim, HeldMessage } from './held.js'
import { hasLost, noteLoss } from './losses.js'
import { pass } from './pass.js'
import type { Run, Worker } from './run.js'
import { SharedCalls } from './shared.js'
import { mayRunTogether, TogetherCalls } from './together.js'
import { CommitFailed, CommitUnknown, isAway, isUncalled, withoutBlame } from './transaction.js'

export async function runClaim(worker: Worker, claim: Claim): Promise<void> {
  try {
    await hold(worker, claim, runQueue)
  } catch (error) {
    if (!(error instanceof SimulatedCrash) && !isLost(error)) throw error
  }
}

/** Keeps the claim's lease while `work` runs, and gives back what it leaves. */
export async function hold(worker: Worker, claim: Claim, work: (run: Run) => Promise<void>): Promise<void> {
  const { consumer, metrics } = worker
  let lost = false
  const abort = new Abort()
  const forward = worker.stop.onAbort((reason) => abort.abort(reason))
  const endLease = keepLease(claim.lease, consumer.options.leaseMs, (why, away) => {
    lost = true
    abort.abort(ownError('CLAIM_LOST', `${consumer.name} lost its lease: ${why}`))
    // What nobody has claimed by the time the database is back is given back then: it is no suspect.
    if (!away) claim.abandon()
  })
  try {
    failpoint('claimed', worker.runtime.db)
    await work({ worker, held: claim, abort })
  } catch (error) {
    if (error instanceof SimulatedCrash) claim.abandon()
    if (isLost(error)) lost = true
    throw withoutBlame(error)
  } finally {
    endLease()
    forward()
    if (lost) metrics.claimLost()
    await releaseRest(worker, claim)
  }
}

async function runQueue(run: Run): Promise<void> {
  const { worker, abort } = run
  const { queue } = run.held
  const started = performance.now()
  queue.sort((a, b) => turnOf(a) - turnOf(b))
  while (queue.length > 0 && !abort.aborted && !worker.stopping()) {
    await runNext(run)
    // The rest of a claim that turned out slow is better off with an idle worker; suspects would be none any more.
    const slow = performance.now() - started > 5 * worker.consumer.options.group.ms + 1_000
    if (slow && !queue[0]?.suspect) break
  }
}

/**
 * Suspects wait for each other: other messages go first. A lane has either none or nothing else. What has failed before comes
 * together where there is no order to keep: first, or it would be given back again and again with the rest of slow claims.
 */
function turnOf({ suspect, attempts, lane }: HeldMessage): number {
  if (suspect) return 2
  return attempts > 0 && lane === undefined ? 0 : 1
}

/** Gives back what was not run. */
async function releaseRest(worker: Worker, claim: Claim): Promise<void> {
  try {
    await claim.release()
  } catch {
    // Whatever the reason is, the work that led here met it too, and tells.
    worker.giveBackLater(() => claim.release())
  }
}

/** Decides how the head of the queue runs, and runs it. */
export function runNext(run: Run): Promise<void> {
  const { worker, held } = run
  const head = held.queue[0]!
  const handler = worker.consumer.handlerOf(head.type)
  if (head.problem !== undefined) return quarantineInvalid(run, head)
  if (handler === undefined) return missingHandler(run, head)
  if (head.suspect) return runSuspect(run, head)
  if (batchRun(handler)) return runBatch(run, takeBatch(run, handler))
  const group = takeGroup(run)
  return group.length > 1 ? runShared(run, group) : runAlone(run, head)
}

/**
 * The messages that may share a transaction: the first, and what is like it. One that has failed before may well fail again, and
 * all of its group would run alone each time, so it shares one with its like.
 */
function takeGroup({ worker, held }: Run): HeldMessage[] {
  const { consumer, pace } = worker
  const most = held.atOnce(pace)
  const hasFailed = held.queue[0]!.attempts > 0
  /** Lanes of which a message was left out: those behind it wait. */
  const closed = new Set<string>()
  const group: HeldMessage[] = []
  for (const message of held.queue) {
    if (group.length >= most || message.suspect || message.problem !== undefined) break
    const handler = consumer.handlerOf(message.type)
    if (handler === undefined || batchRun(handler) || pace.alone.has(message.type) || hasLost(worker, message)) break
    const { lane, attempts } = message
    if (attempts > 0 === hasFailed && !(lane !== undefined && closed.has(lane))) group.push(message)
    else if (lane !== undefined) closed.add(lane)
    else break
  }
  return group
}

async function runShared(run: Run, group: readonly HeldMessage[]): Promise<void> {
  const { worker, held, abort } = run
  const { pace } = worker
  const endTurn = await pace.turn()
  let failure: SharedFailure | undefined
  try {
    for (let tries = 1; ; tries++) {
      const left = tries === 1 ? group : group.filter((message) => held.queue.includes(message))
      failure = await sharedPass(run, left)
      if (!failure) return pace.succeeded()
      // Once more with fewer groups side by side, before anybody pays for a transaction each.
      const collision = isConflict(failure.error)
      if (collision) pace.collided()
      // What cannot run beside others runs one after the other from now on.
      if (!(collision || failure.left) || tries === 2 || worker.stopping()) break
    }
  } finally {
    endTurn()
  }
  if (abort.aborted) return
  // No handler was called: nothing would come of trying again at once, unless one of them is held by others.
  if (isUncalled(failure.error)) throw failure.error
  // What has failed before is expected to, and says nothing of the others.
  if (!isConflict(failure.error) && group[0]!.attempts === 0) pace.abandoned()
  for (const message of failure.begun.length > 0 ? failure.begun : group) {
    // A failure before it in its lane has taken it out of the queue.
    if (!held.queue.includes(message) || worker.stopping()) continue
    // It is known who was slow, and it is not called a second time.
    if (message === failure.slow) await recordFailure(run, message, failure.error)
    else await runAlone(run, message)
    if (abort.aborted) return
  }
}

interface SharedFailure {
  readonly error: unknown
  /** Those whose handlers were called. */
  readonly begun: readonly HeldMessage[]
  /** The one that exceeded its deadline, where it is known. */
  readonly slow: HeldMessage | undefined
  /** True if one of them has to run with nobody beside it. */
  readonly left: boolean
}

/** One optimistic transaction for many messages. Answers with the failure, or nothing if it committed. */
async function sharedPass(run: Run, group: readonly HeldMessage[]): Promise<SharedFailure | undefined> {
  const { worker } = run
  const calls = mayRunTogether(worker, group) ? new TogetherCalls(run, group) : new SharedCalls(run, group)
  try {
    await pass(run, calls)
    return undefined
  } catch (error) {
    if (error instanceof SimulatedCrash || error instanceof CommitUnknown || isLost(error)) throw error
    if (isAway(error) && !(error instanceof CommitFailed)) {
      for (const message of calls.running) noteLoss(worker, message)
      throw error
    }
    return { error, begun: calls.begun, slow: calls.slow, left: calls.left }
  }
}
