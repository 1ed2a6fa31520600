/** Identity: the key by which a consumer knows a message: the producer's id, or a business key of the consumer's own. */
import { nameProblem } from '../check-options.js'
import { toFailure } from '../failure.js'
import { toMessage, type Message } from '../message.js'
import { isPromise } from '../promises.js'
import type { ConsumerDeclaration } from './consumer.js'
import type { Prepared } from './prepare.js'

/** What a message is known by. */
export type Identified = Pick<Prepared, 'id' | 'source' | 'ids'>

/** Asked by name, because a consumer may be called `constructor`. */
export function hasIdentity({ ids }: Identified, consumer: string): boolean {
  return ids !== undefined && Object.hasOwn(ids, consumer)
}

/** The key of a message in a consumer's journal: the producer's, or the consumer's business key. */
export function identityOf(message: Identified, consumer: string): [consumer: string, source: string, id: string] {
  return hasIdentity(message, consumer)
    ? [consumer, '', message.ids![consumer]!]
    : [consumer, message.source, message.id]
}

/** Asks every consumer that has `identity` for its key. `read`: the data as its schema gives it. */
export function withIdentities(
  prepared: Prepared,
  read: () => unknown,
  consumers: readonly ConsumerDeclaration[],
): Prepared {
  let ids: Record<string, string> | undefined
  let unfit: Map<string, string> | undefined
  for (const consumer of consumers) {
    const { identity } = consumer.options
    if (!identity || !consumer.handlerOf(prepared.type)) continue
    const key = businessKey(identity, viewOf(prepared, read()))
    if ('problem' in key)
      (unfit ??= new Map()).set(consumer.name, `identity of consumer ${consumer.name} ${key.problem}`)
    else ids = { ...ids, [consumer.name]: businessId(prepared.type, key.text) }
  }
  return ids || unfit ? { ...prepared, ids, unfit } : prepared
}

function businessKey(identity: (message: never) => string, message: Message): { text: string } | { problem: string } {
  try {
    const text: unknown = identity(message as never)
    if (isPromise(text)) return { problem: 'answered a promise; it must not be async' }
    const problem = nameProblem(text)
    return problem ? { problem } : { text: text as string }
  } catch (error) {
    return { problem: `threw: ${toFailure(error).message.slice(0, 500)}` }
  }
}

/** The id of a message by its business key. */
export function businessId(type: string, key: string): string {
  return `${escapeType(type)}:${key}`
}

/** The first colon ends the type, so no type and key together look like others. */
function escapeType(type: string): string {
  return type.replaceAll('%', '%25').replaceAll(':', '%3A')
}

/** The message as `identity` sees it: not received yet. */
function viewOf(prepared: Omit<Prepared, 'ids' | 'unfit'>, data: unknown): Message {
  const row = { ...prepared, attempts: 0, receivedMs: Date.now() }
  return toMessage(row, data)
}
