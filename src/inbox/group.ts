/**
 * Group: runs the messages of a claim.
 *
 * Fast handlers share a transaction; the shared pass is optimistic and blames nobody. If anything in it fails, it
 * rolls back and its messages run one transaction each, which decides who failed. Suspects run alone from the start.
 */
import { EffectJournal } from '../effects/journal.js'
import { OnceboxError } from '../errors.js'
import { batchRun, type Context } from '../handler.js'
import type { Message, MessageMap } from '../message.js'
import { writeOutgoing, type Outgoing } from '../outbox/send.js'
import { COUNT_ATTEMPT, STORE_RESULTS } from '../postgres/sql/settle.js'
import { callHook, type Runtime } from '../runtime.js'
import { Abort } from '../worker/abort.js'
import { backoffMs, sleep } from '../worker/backoff.js'
import { failpoint, SimulatedCrash } from '../worker/failpoints.js'
import { keepLease } from '../worker/lease.js'
import type { Pace } from '../worker/pace.js'
import { callHandler, noEffects, type EffectRunner } from './call.js'
import type { Claim, ClaimedMessage, OpenGroup, Verdict } from './claim.js'
import type { ConsumerDeclaration } from './consumer.js'
import { toResult } from './result.js'
import { CommitUnknown, isAway, isConflict, openTransaction, resolveUnknown, SHARED_LOCK_TIMEOUT } from './transaction.js'
import { verdictOf } from './verdict.js'

export interface Worker {
  readonly runtime: Runtime
  readonly consumer: ConsumerDeclaration
  readonly pace: Pace
  /** Set when the box stops and its patience is at an end. */
  readonly stop: Abort
  /** True once the box has been asked to stop: finish what runs, start nothing new. */
  readonly stopping: () => boolean
  /** How often a message lost its connection while it ran alone, by journal key. */
  readonly losses: Map<string, number>
}

/** After so many lost connections in a row, the message itself is held responsible. */
const MAX_LOSSES = 3

export async function runClaim(worker: Worker, claim: Claim): Promise<void> {
  const { consumer } = worker
  const abort = new Abort()
  const forward = worker.stop.onAbort((reason) => abort.abort(reason))
  const endLease = keepLease(claim, consumer.options.leaseMs, (why) => {
    abort.abort(new OnceboxError('CLAIM_LOST', `${consumer.name} lost its lease: ${why}`))
    claim.abandon()
  })
  const started = performance.now()
  try {
    failpoint('claimed')
    while (claim.queue.length > 0 && !abort.aborted && !worker.stopping()) {
      await runNext(worker, claim, abort)
      // The rest of a claim that turned out slow is better off with whoever is idle.
      if (performance.now() - started > 5 * consumer.options.group.ms + 1_000) break
    }
  } catch (error) {
    if (error instanceof SimulatedCrash) claim.abandon()
    else if (!isLost(error)) throw error
  } finally {
    endLease()
    forward()
    await releaseRest(worker, claim)
  }
}

/** A lost claim is no error: whoever took it runs its messages. */
function isLost(error: unknown): boolean {
  return error instanceof OnceboxError && error.code === 'CLAIM_LOST'
}

/** Gives back what was not run, also when the database has to come back first: nothing should wait for the lease. */
async function releaseRest(worker: Worker, claim: Claim): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await claim.release()
    } catch (error) {
      const giveUp = attempt * 250 > worker.consumer.options.leaseMs || worker.stop.aborted !== undefined
      if (!isAway(error) || giveUp) {
        claim.abandon()
        throw error
      }
      await sleep(backoffMs(attempt, 20, 500))
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
  if (pace.alone.has(head.type)) return runAlone(worker, claim, head, abort)
  const group = takeGroup(worker, claim)
  return group.length === 1 ? runAlone(worker, claim, head, abort) : runShared(worker, claim, group, abort)
}

/** The leading messages that may share a transaction. */
function takeGroup({ consumer, pace }: Worker, claim: Claim): ClaimedMessage[] {
  const group: ClaimedMessage[] = []
  for (const message of claim.queue) {
    if (group.length >= pace.limit || message.suspect || message.problem !== undefined) break
    const handler = consumer.handlerOf(message.type)
    if (handler === undefined || batchRun(handler) || pace.alone.has(message.type)) break
    group.push(message)
  }
  return group
}

/** Messages for one batch handler; of a lane, only those with nothing else before them. */
function takeBatch({ consumer }: Worker, claim: Claim, handler: unknown): ClaimedMessage[] {
  const taken: ClaimedMessage[] = []
  const closed = new Set<string>()
  const { type } = claim.queue[0]!
  for (const message of claim.queue) {
    if (taken.length >= consumer.options.group.messages) break
    if (message.lane !== undefined && closed.has(message.lane)) continue
    const fits = message.type === type && consumer.handlerOf(message.type) === handler
    if (fits && !message.suspect && message.problem === undefined) taken.push(message)
    else if (message.lane !== undefined) closed.add(message.lane)
  }
  return taken
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
  const { ms } = consumer.options.group
  const effects = sharedEffects(worker)
  let slow: ClaimedMessage | undefined
  try {
    await openTransaction(runtime, consumer, SHARED_LOCK_TIMEOUT, async (tx, open) => {
      const outgoing: Outgoing[] = []
      const results: [ClaimedMessage, string][] = []
      const started = performance.now()
      let now = started
      for (const message of group) {
        // A slow one gets a transaction of its own: this one commits first.
        if (begun.length > 0 && now - started + pace.expectedMs(message.type) > ms) break
        begun.push(message)
        const effect = effects(message)
        const run = handlerCall(consumer, message)
        const call = { tx, subject: [message.message], outgoing, abort, effect: effect.run, run }
        try {
          const result = await callHandler(runtime, consumer, call)
          const text = toResult(result)
          if (text !== undefined) results.push([message, text])
        } catch (error) {
          if (error instanceof OnceboxError && error.code === 'HANDLER_TIMEOUT') slow = message
          throw error
        }
        effect.check()
        const ended = performance.now()
        pace.took(message.type, ended - now)
        now = ended
      }
      return settleAll(worker, claim, begun, results, outgoing, open, tx)
    })
    failpoint('committed')
    claim.settled(begun)
    return undefined
  } catch (error) {
    if (error instanceof SimulatedCrash) throw error
    if (error instanceof CommitUnknown) {
      if (await resolveUnknown(runtime, error, () => claim.isSettled(begun), abort)) {
        claim.settled(begun)
        return undefined
      }
    } else if (isAway(error) || isLost(error)) throw error
    return { error, slow }
  }
}

function handlerCall(consumer: ConsumerDeclaration, { type, message }: ClaimedMessage) {
  const handler = consumer.handlerOf(type) as (message: Message, ctx: Context<MessageMap, unknown>) => unknown
  return (ctx: Context<MessageMap, unknown>): unknown => handler(message, ctx)
}

/** Everything that belongs to the same commit: what was sent, the results, the settlement. */
async function settleAll(
  { runtime, consumer }: Worker,
  claim: Claim,
  done: readonly ClaimedMessage[],
  results: readonly [ClaimedMessage, string][],
  outgoing: readonly Outgoing[],
  open: OpenGroup,
  tx: unknown,
): Promise<{ result: void; settlement: Promise<unknown> }> {
  failpoint('handled')
  if (outgoing.length > 0) await writeOutgoing(runtime, outgoing, tx)
  if (results.length > 0) {
    const r = results.map(([{ source, id }, text]) => [source, id, text])
    await runtime.db.run(STORE_RESULTS, { c: consumer.name, r }, tx)
  }
  return { result: undefined, settlement: claim.settle(done, open, tx) }
}

/** One message, one transaction. What it throws decides its fate. */
async function runAlone(
  worker: Worker,
  claim: Claim,
  message: ClaimedMessage,
  abort: Abort,
  counted = false,
): Promise<void> {
  const { runtime, pace } = worker
  const started = performance.now()
  try {
    await attemptCalmly(worker, claim, message, abort)
    pace.took(message.type, performance.now() - started)
    worker.losses.delete(lossKey(message))
    return
  } catch (error) {
    if (error instanceof SimulatedCrash || isLost(error)) throw error
    if (error instanceof CommitUnknown) {
      if (await resolveUnknown(runtime, error, () => claim.isSettled([message]), abort)) return claim.settled([message])
      return
    }
    // Stopping is not the message's fault, and neither is a database that went away.
    if (abort.aborted || (isAway(error) && !isToBlame(worker, message))) {
      if (counted) await claim.fail(message, { attempts: -1, delayMs: 0 })
      throw error
    }
    await recordFailure(worker, claim, message, error, counted)
  }
}

function lossKey({ source, id }: ClaimedMessage): string {
  return JSON.stringify([source, id])
}

/** A handler that kills its own connection every time would otherwise be tried for ever. */
function isToBlame({ losses }: Worker, message: ClaimedMessage): boolean {
  const key = lossKey(message)
  const times = (losses.get(key) ?? 0) + 1
  if (times >= MAX_LOSSES) return losses.delete(key)
  if (losses.size >= 10_000) losses.clear()
  losses.set(key, times)
  return false
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
  const { runtime, consumer } = worker
  const { source, id } = message
  const journal = new EffectJournal(runtime, { consumer: consumer.name, source, id })
  for (;;) {
    try {
      await openTransaction(runtime, consumer, undefined, async (tx, open) => {
        const outgoing: Outgoing[] = []
        const run = handlerCall(consumer, message)
        const call = { tx, subject: [message.message], outgoing, abort, effect: journal.runIn(tx), run }
        const text = toResult(await callHandler(runtime, consumer, call))
        journal.check()
        return settleAll(worker, claim, [message], text === undefined ? [] : [[message, text]], outgoing, open, tx)
      })
      failpoint('committed')
      return claim.settled([message])
    } catch (error) {
      const wanted = journal.takeWanted()
      if (!wanted || error instanceof SimulatedCrash || abort.aborted) throw error
      await journal.perform(wanted, claim.token, consumer.options.timeoutMs, abort)
    }
  }
}

/** Its last worker died while holding it, perhaps because of it: count first, then run it with nobody else. */
async function runSuspect(worker: Worker, claim: Claim, message: ClaimedMessage, abort: Abort): Promise<void> {
  const { runtime, consumer } = worker
  if (message.attempts > 0) {
    const error = new OnceboxError(
      'WORKER_DIED',
      `the worker died ${message.attempts} times while it ran this message; look for a crash, process.exit or an out-of-memory kill`,
    )
    const verdict = verdictOf(error, message.attempts, consumer.options.retry, true)
    if (verdict.parked) return applyVerdict(worker, claim, message, verdict)
  }
  const { source, id, lane } = message
  const rows = await runtime.db.run(COUNT_ATTEMPT, { c: consumer.name, k: claim.token, s: source, i: id, lane })
  if (rows.length === 0) throw new OnceboxError('CLAIM_LOST', `message ${id} was claimed by another worker`)
  const attempts = Number(rows[0]!['attempts'])
  const own = { ...message, attempts, suspect: false, message: { ...message.message, attempt: attempts } }
  claim.replace(message, own)
  if (batchRun(consumer.handlerOf(message.type))) return runBatch(worker, claim, [own], abort, true)
  return runAlone(worker, claim, own, abort, true)
}

/** One call for many messages. If it throws, the batch is bisected until the bad message stands alone. */
async function runBatch(
  worker: Worker,
  claim: Claim,
  list: readonly ClaimedMessage[],
  abort: Abort,
  counted = false,
): Promise<void> {
  const { runtime, consumer } = worker
  const queued = new Set(claim.queue)
  const left = list.filter((message) => queued.has(message))
  if (left.length === 0 || abort.aborted) return
  const started = performance.now()
  try {
    await openTransaction(runtime, consumer, undefined, async (tx, open) => {
      const outgoing: Outgoing[] = []
      const messages = left.map(({ message }) => message)
      const handler = batchRun(consumer.handlerOf(left[0]!.type))!
      const run = (ctx: Context<MessageMap, unknown>): unknown => handler(messages, ctx)
      await callHandler(runtime, consumer, { tx, subject: messages, outgoing, abort, effect: noEffects, run })
      return settleAll(worker, claim, left, [], outgoing, open, tx)
    })
    failpoint('committed')
    claim.settled(left)
    worker.pace.took(left[0]!.type, (performance.now() - started) / left.length)
  } catch (error) {
    if (error instanceof SimulatedCrash || isLost(error)) throw error
    if (error instanceof CommitUnknown) {
      if (await resolveUnknown(runtime, error, () => claim.isSettled(left), abort)) return claim.settled(left)
      return
    }
    if (abort.aborted || isAway(error)) throw error
    if (left.length === 1) return recordFailure(worker, claim, left[0]!, error, counted)
    const middle = left.length >> 1
    await runBatch(worker, claim, left.slice(0, middle), abort)
    await runBatch(worker, claim, left.slice(middle), abort)
  }
}

function quarantineInvalid(worker: Worker, claim: Claim, message: ClaimedMessage): Promise<void> {
  const failure = { name: 'Invalid', message: message.problem! }
  return applyVerdict(worker, claim, message, { attempts: 0, parked: 'quarantined', reason: 'invalid', failure })
}

function missingHandler(worker: Worker, claim: Claim, message: ClaimedMessage): Promise<void> {
  const { name } = worker.consumer
  const error = new OnceboxError(
    'HANDLER_MISSING',
    `consumer ${name} has no handler for ${message.type} in this process; deploy one that has, or add it`,
  )
  return recordFailure(worker, claim, message, error, false)
}

async function recordFailure(
  worker: Worker,
  claim: Claim,
  message: ClaimedMessage,
  error: unknown,
  counted: boolean,
): Promise<void> {
  const attempt = counted ? message.attempts : message.attempts + 1
  const verdict = verdictOf(error, attempt, worker.consumer.options.retry, counted)
  await applyVerdict(worker, claim, message, verdict)
}

async function applyVerdict(worker: Worker, claim: Claim, message: ClaimedMessage, verdict: Verdict): Promise<void> {
  const { runtime, consumer } = worker
  if (!(await claim.fail(message, verdict))) return
  const about = { id: message.message.id, type: message.type, consumer: consumer.name, attempt: message.message.attempt }
  const error = verdict.failure?.message
  if (!verdict.parked || verdict.parked === 'failed') return runtime.log.warn({ ...about, error, retryInMs: verdict.delayMs }, 'message will be retried')
  runtime.log.error({ ...about, error }, verdict.parked === 'dead' ? 'message is dead' : 'message quarantined')
  const entry = {
    message: message.message,
    consumer: consumer.name,
    state: verdict.parked,
    ...(verdict.failure && { error: verdict.failure }),
    ...(verdict.reason && { reason: verdict.reason }),
  }
  const hook = runtime.hooks[verdict.parked]
  if (hook) callHook(runtime, verdict.parked, () => hook(entry))
}

/** In a shared transaction an effect writes and calls nothing: its message moves out of the group. */
function sharedEffects({ pace }: Worker) {
  return ({ type }: ClaimedMessage): { run: EffectRunner; check: () => void } => {
    let asked = false
    const leave = new OnceboxError('GROUP_ABANDONED', 'the handler calls an effect, so it runs again in its own transaction')
    return {
      run: () => {
        asked = true
        pace.alone.add(type)
        return Promise.reject(leave)
      },
      // A handler that catches everything must not keep the group going.
      check: () => {
        if (asked) throw leave
      },
    }
  }
}
