/** Calls a handler for a message that is not stored yet. */
import { OnceboxError } from '../../errors.js'
import { batchRun, type Context } from '../../handler.js'
import type { Message, MessageMap } from '../../message.js'
import type { Outgoing } from '../../outbox/send.js'
import { validate } from '../../validate.js'
import { callHandler, type EffectRunner } from '../call.js'
import type { Ackable } from '../outcome.js'
import { toMessage } from '../prepare.js'
import { fromResult, toResult } from '../result.js'
import type { Worker } from '../running.js'
import type { Item } from './mark.js'

export async function call(
  worker: Worker,
  item: Item,
  attempts: number,
  tx: unknown,
  outgoing: Outgoing[],
  effect: EffectRunner,
): Promise<string | undefined> {
  const { runtime, consumer, stop: abort } = worker
  const message = await messageOf(worker, item, attempts)
  const handler = consumer.handlerOf(item.prepared.type)
  const many = batchRun(handler)
  const run = (ctx: Context<MessageMap, unknown>): unknown =>
    many ? many([message], ctx) : (handler as (m: Message, c: typeof ctx) => unknown)(message, ctx)
  const result = await callHandler(runtime, consumer, { tx, subject: [message], outgoing, abort, effect, run })
  return many ? undefined : toResult(result)
}

export async function messageOf({ runtime }: Worker, { prepared }: Item, attempts: number): Promise<Message> {
  const parsed = validate(runtime.schemaOf(prepared.type), prepared.data)
  const checked = parsed instanceof Promise ? await parsed : parsed
  if ('problem' in checked) throw new OnceboxError('MESSAGE_INVALID', checked.problem)
  return toMessage({ ...prepared, receivedMs: Date.now(), attempts }, checked.value)
}

export function handled(consumer: string, text: string | undefined): Ackable {
  return { outcome: { consumer, status: 'handled', result: fromResult(text) } }
}
