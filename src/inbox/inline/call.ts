/** Calls a handler for a message that is not stored yet. */
import { OnceboxError } from '../../errors.js'
import { batchRun, type Context } from '../../handler.js'
import type { Message, MessageMap } from '../../message.js'
import type { Outgoing } from '../../outbox/send.js'
import { validate, type Validated } from '../../validate.js'
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
  const made = messageOf(worker, item, attempts)
  const message = made instanceof Promise ? await made : made
  const handler = consumer.handlerOf(item.prepared.type)
  const many = batchRun(handler)
  const run = (ctx: Context<MessageMap, unknown>): unknown =>
    many ? many([message], ctx) : (handler as (m: Message, c: typeof ctx) => unknown)(message, ctx)
  const result = await callHandler(runtime, consumer, { tx, subject: [message], outgoing, abort, effect, run })
  return many ? undefined : toResult(result)
}

/** Answers at once unless a schema takes its time. */
export function messageOf({ runtime }: Worker, { prepared }: Item, attempts: number): Message | Promise<Message> {
  const finish = (checked: Validated): Message => {
    if ('problem' in checked) throw new OnceboxError('MESSAGE_INVALID', checked.problem)
    const { id, source, type, key, envelope } = prepared
    return toMessage({ id, source, type, key, envelope, receivedMs: Date.now(), attempts }, checked.value)
  }
  const parsed = validate(runtime.schemaOf(prepared.type), prepared.data)
  return parsed instanceof Promise ? parsed.then(finish) : finish(parsed)
}

export function handled(consumer: string, text: string | undefined): Ackable {
  return { outcome: { consumer, status: 'handled', result: fromResult(text) } }
}
