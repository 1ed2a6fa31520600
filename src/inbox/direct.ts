/** Direct: plain execution, for handlers that are idempotent by nature. A transaction, and no record of the message. */
import { toFailure } from '../failure.js'
import { batchRun, type Context } from '../handler.js'
import type { MessageMap, Message } from '../message.js'
import { writeOutgoing, type Outgoing } from '../outbox/send.js'
import { SETTLE_INLINE } from '../postgres/sql/inline.js'
import { validate } from '../validate.js'
import { callHandler, noEffects } from './call.js'
import type { Worker } from './running.js'
import type { Ackable } from './outcome.js'
import { toMessage, type Prepared } from './prepare.js'
import { fromResult, toResult } from './result.js'
import { tellRetry } from './tell.js'
import { Blameless, isAway, openTransaction, withoutBlame } from './transaction.js'
import { retryTime, verdictOf } from './verdict.js'
import { OnceboxError } from '../errors.js'

export async function runDirect(worker: Worker, prepared: Prepared): Promise<Ackable> {
  const { runtime, consumer, stop: abort } = worker
  try {
    const checked = await validate(runtime.schemaOf(prepared.type), prepared.data)
    if ('problem' in checked) throw new OnceboxError('MESSAGE_INVALID', checked.problem)
    const message = toMessage({ ...prepared, receivedMs: Date.now(), attempts: 0 }, checked.value)
    const handler = consumer.handlerOf(prepared.type)
    const many = batchRun(handler)
    const run = (ctx: Context<MessageMap, unknown>): unknown =>
      many ? many([message], ctx) : (handler as (m: Message, c: typeof ctx) => unknown)(message, ctx)
    const text = await openTransaction(runtime, consumer, undefined, async (tx, open) => {
      const outgoing: Outgoing[] = []
      const call = { tx, subject: [message], outgoing, abort, effect: noEffects, run }
      const result = await open.call(async () => {
        const returned = await callHandler(runtime, consumer, call)
        return many ? undefined : toResult(returned)
      })
      await writeOutgoing(runtime, outgoing, tx)
      const settlement = runtime.db.run(SETTLE_INLINE, { x: open.xid, g: open.guard }, tx)
      return { result, settlement }
    })
    return { outcome: { consumer: consumer.name, status: 'handled', result: fromResult(text) } }
  } catch (error) {
    // Not the message's: the delivery fails, and whoever sent it is told nothing of the message.
    if (error instanceof Blameless || isAway(error)) throw withoutBlame(error)
    const failure = toFailure(error)
    // Its policy is for those who keep count.
    const judged = verdictOf(error, 1, consumer.options.retry, false)
    const verdict = judged.asked ? judged : { attempts: 0, failure }
    const retryAt = retryTime(verdict)
    const message = toMessage({ ...prepared, receivedMs: Date.now(), attempts: 0 }, prepared.data)
    tellRetry(runtime, { message, consumer: consumer.name, error: failure }, verdict, 'source')
    const failed = { consumer: consumer.name, status: 'failed' as const, error: failure }
    return { outcome: { ...failed, ...(retryAt && { retryAt }) }, ack: false }
  }
}
