/** Batch: one call for many messages of one type. If it throws, it is bisected until the bad message stands alone. */
import { SimulatedCrash } from '../worker/failpoints.js'
import { runAlone } from './alone.js'
import { callHandler, NO_EFFECTS } from './call.js'
import { isLost } from './fail.js'
import type { HeldMessage } from './held.js'
import { forgetLoss, hasLost, noteLoss } from './losses.js'
import { pass } from './pass.js'
import type { Run } from './run.js'
import { CommitFailed, isAway, isUncalled } from './transaction.js'

/** Messages for one batch handler; of a lane, only those with nothing else before them. */
export function takeBatch({ worker, held }: Run, handler: unknown): HeldMessage[] {
  const { consumer } = worker
  const taken: HeldMessage[] = []
  const closed = new Set<string>()
  const head = held.queue[0]!
  if (hasLost(worker, head)) return [head]
  for (const message of held.queue) {
    if (taken.length >= consumer.options.group.messages) break
    if (message.lane !== undefined && closed.has(message.lane)) continue
    const fits = message.type === head.type && consumer.handlerOf(message.type) === handler
    if (fits && !hasLost(worker, message) && !message.suspect && message.problem === undefined) taken.push(message)
    else if (message.lane !== undefined) closed.add(message.lane)
  }
  return taken
}

export async function runBatch(run: Run, list: readonly HeldMessage[]): Promise<void> {
  const { worker, held, abort } = run
  const queued = new Set(held.queue)
  const left = list.filter((message) => queued.has(message))
  if (left.length === 0 || abort.aborted || worker.stopping()) return
  if (left.length === 1) return runAlone(run, left[0]!)
  try {
    await pass(run, {
      messages: left,
      async call(open, ours) {
        if (ours.length === 0) return []
        const started = performance.now()
        await callHandler(run, open, ours, { effects: NO_EFFECTS })
        worker.pace.took(left[0]!.type, (performance.now() - started) / ours.length)
        return ours.map((message) => ({ message, result: undefined }))
      },
    })
    for (const message of left) forgetLoss(worker, message)
  } catch (error) {
    if (error instanceof SimulatedCrash || isLost(error) || abort.aborted || isUncalled(error)) throw error
    if (isAway(error) && !(error instanceof CommitFailed)) {
      for (const message of left) noteLoss(worker, message)
      throw error
    }
    const middle = left.length >> 1
    await runBatch(run, left.slice(0, middle))
    await runBatch(run, left.slice(middle))
  }
}
