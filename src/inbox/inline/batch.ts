/** One call for many messages on arrival; bisected if it throws. */
import { batchRun, type Context } from '../../handler.js'
import type { Message, MessageMap } from '../../message.js'
import type { Outgoing } from '../../outbox/send.js'
import { failpoint, SimulatedCrash } from '../../worker/failpoints.js'
import { callHandler, noEffects } from '../call.js'
import type { Ackable } from '../outcome.js'
import type { Worker } from '../running.js'
import {
  CommitUnknown,
  isAway,
  isUncalled,
  openTransaction,
  SHARED_LOCK_TIMEOUT,
  withoutBlame,
} from '../transaction.js'
import { runOne } from './alone.js'
import { handled, messageOf } from './call.js'
import { asSafeAs, committed } from './known.js'
import { mark, settle, type Item } from './mark.js'

export async function runBatch(worker: Worker, items: readonly Item[], decided: Map<Item, Ackable>): Promise<void> {
  const { runtime, consumer, stop: abort } = worker
  const ran: Item[] = []
  try {
    await openTransaction(runtime, consumer, SHARED_LOCK_TIMEOUT, async (tx, open) => {
      const marks = await mark(worker, items, true, tx)
      const outgoing: Outgoing[] = []
      const none = { results: [], drop: [], marks, outgoing, open, tx }
      ran.push(...items.filter((item) => marks.has(item)))
      if (ran.length === 0) return settle(worker, none)
      await open.call(async () => {
        const messages: Message[] = []
        for (const item of ran) messages.push(await messageOf(worker, item, marks.get(item)!.attempts))
        const handler = batchRun(consumer.handlerOf(items[0]!.prepared.type))!
        const run = (ctx: Context<MessageMap, unknown>): unknown => handler(messages, ctx)
        return callHandler(runtime, consumer, { tx, subject: messages, outgoing, abort, effect: noEffects, run })
      })
      return settle(worker, none)
    })
    failpoint('committed', runtime.db)
  } catch (error) {
    if (error instanceof SimulatedCrash) throw error
    const known = error instanceof CommitUnknown && (await committed(worker, error, ran))
    if (!known) {
      if (isAway(error) || isUncalled(error) || abort.aborted) throw withoutBlame(error)
      if (items.length === 1) return void decided.set(items[0]!, await runOne(worker, items[0]!))
      const middle = items.length >> 1
      await runBatch(worker, items.slice(0, middle), decided)
      return runBatch(worker, items.slice(middle), decided)
    }
    for (const item of ran) decided.set(item, asSafeAs(error, handled(consumer.name, undefined)))
  }
  for (const item of ran) if (!decided.has(item)) decided.set(item, handled(consumer.name, undefined))
  for (const item of items) if (!decided.has(item)) decided.set(item, await runOne(worker, item))
}
