/** Messages of JetStream and messages of the box. */
import type { Incoming, Message } from '../../message.js'
import { HTTP, type Envelope } from '../cloudevents.js'
import { isThing, toEnvelope, toIncoming, type WriteOptions } from '../event.js'
import { guarded } from '../read.js'
import { threw, unmapped } from '../unmapped.js'
import type { NatsHeaders, NatsMessage, ResolvedSource } from './options.js'

/** Headers of the server and its clients. They say how a message travelled, and are not part of it. */
const OWN_HEADER = /^nats-/i

export const readMessage = guarded(
  (raw: NatsMessage, { source }: ResolvedSource) => ({
    body: raw.data,
    source: source ?? raw.info.stream,
    type: raw.subject,
    redelivered: raw.info.deliveryCount > 1,
  }),
  readRaw,
)

function readRaw(raw: NatsMessage, options: ResolvedSource): Incoming {
  const { key } = options
  const headers = headersOf(raw.headers)
  const own = Object.entries(headers).filter(([name]) => !OWN_HEADER.test(name))
  const received = {
    headers: Object.fromEntries(own),
    body: raw.data,
    id: findHeader(headers, 'nats-msg-id') ?? positionOf(raw),
    source: raw.info.stream,
    type: raw.subject,
    time: raw.time,
    redelivered: raw.info.deliveryCount > 1,
  }
  if (!key) return toIncoming(raw, received, HTTP, options)
  // As it came: a `map` that answers for a message without its key would answer for another one.
  const asItCame = (): Incoming => toIncoming(raw, received, HTTP, { ...options, map: undefined })
  try {
    const own: unknown = key(raw)
    if (isThing(own)) return unmapped(asItCame(), 'key returned an object or a function')
    return toIncoming(raw, { ...received, key: own as string | undefined }, HTTP, options)
  } catch (error) {
    return unmapped(asItCame(), threw('key', error))
  }
}

/**
 * Where the message lies in its stream. Sequences begin again when a stream is deleted and made anew, so the time at
 * which the server took the message belongs to it.
 */
function positionOf(raw: NatsMessage): string {
  return `${raw.seq}@${raw.timestampNanos}`
}

function headersOf(headers: NatsHeaders | undefined): Record<string, string> {
  if (!headers) return {}
  return Object.fromEntries([...headers].map(([name, values]) => [name, values.join(', ')]))
}

function findHeader(headers: Readonly<Record<string, string>>, name: string): string | undefined {
  const value = Object.entries(headers).find(([one]) => one.toLowerCase() === name)?.[1]
  return value === '' ? undefined : value
}

/** What is published of an event, and the id by which the server knows a second copy of it. */
export function writeMessage(message: Message, subject: string, options: WriteOptions): Envelope & { msgId: string } {
  // An event may go to several subjects of one stream, and its id is unique within its source only.
  const msgId = [subject, message.source, message.id].map((part) => encodeURIComponent(part)).join('/')
  return { ...toEnvelope(message, HTTP, options), msgId }
}
