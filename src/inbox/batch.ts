/** Batch: one call for many messages of one type. If it throws, it is bisected until the bad message stands alone. */
import { batchRun, type Context } from '../handler.js'
import type { MessageMap } from '../message.js'
import type { Outgoing } from '../outbox/send.js'
import type { Abort } from '../worker/abort.js'
import { failpoint, SimulatedCrash } from '../worker/failpoints.js'
import { callHandler, noEffects } from './call.js'
import type { Claim, ClaimedMessage } from './claim.js'
import { forgetLoss, hasLost, isToBlame, noteLoss, noteServer } from './losses.js'
import type { Worker } from './running.js'
import { isCounted, isLost, putBack, recordFailure, settleAll } from './settle.js'
import { Blameless, CommitUnknown, isAway, openClaimed, resolveUnknown } from './transaction.js'

/** Messages for one batch handler; of a lane, only those with nothing else before them. */
export function takeBatch(worker: Worker, claim: Claim, handler: unknown): ClaimedMessage[] {
  const { consumer } = worker
  const taken: ClaimedMessage[] = []
  const closed = new Set<string>()
  const head = claim.queue[0]!
  if (hasLost(worker, head)) return [head]
  for (const message of claim.queue) {
    if (taken.length >= consumer.options.group.messages) break
    if (message.lane !== undefined && closed.has(message.lane)) continue
    const fits = message.type === head.type && consumer.handlerOf(message.type) === handler
    if (fits && !hasLost(worker, message) && !message.suspect && message.problem === undefined) taken.push(message)
    else if (message.lane !== undefined) closed.add(message.lane)
  }
  return taken
}

export async function runBatch(
  worker: Worker,
  claim: Claim,
  list: readonly ClaimedMessage[],
  abort: Abort,
): Promise<void> {
  const { runtime, consumer, pace } = worker
  const queued = new Set(claim.queue)
  const left = list.filter((message) => queued.has(message))
  if (left.length === 0 || abort.aborted) return
  if (left.length === 1 && hasLost(worker, left[0]!)) await noteServer(worker, left[0]!)
  try {
    await openClaimed(worker, claim, undefined, async (tx, open) => {
      const outgoing: Outgoing[] = []
      const messages = left.map(({ message }) => message)
      const handler = batchRun(consumer.handlerOf(left[0]!.type))!
      const run = (ctx: Context<MessageMap, unknown>): unknown => handler(messages, ctx)
      const started = performance.now()
      const call = { tx, subject: messages, outgoing, abort, effect: noEffects, run }
      await open.call(() => callHandler(runtime, consumer, call))
      pace.took(left[0]!.type, (performance.now() - started) / left.length)
      return settleAll(worker, claim, left, [], outgoing, open, tx)
    })
    failpoint('committed', runtime.db)
    claim.settled(left)
    for (const message of left) forgetLoss(worker, message)
  } catch (error) {
    if (error instanceof SimulatedCrash || isLost(error)) throw error
    if (error instanceof CommitUnknown) {
      if (await resolveUnknown(runtime, error, () => claim.isSettled(left), abort)) return claim.settled(left, error)
      // Whoever goes on with the claim would run what is behind them in their lanes.
      throw error
    }
    if (abort.aborted || (error instanceof Blameless && !error.called)) throw error
    const [first] = left as [ClaimedMessage]
    if (isAway(error) && !(left.length === 1 && (await isToBlame(worker, first, error)))) {
      for (const message of left) noteLoss(worker, message)
      throw error
    }
    if (left.length === 1 && error instanceof Blameless) {
      await putBack(claim, first)
      throw error
    }
    if (left.length === 1) return recordFailure(worker, claim, first, error, isCounted(first))
    const middle = left.length >> 1
    await runBatch(worker, claim, left.slice(0, middle), abort)
    await runBatch(worker, claim, left.slice(middle), abort)
  }
}
