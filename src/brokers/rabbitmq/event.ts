/** Messages of RabbitMQ and of the box: what the box gets of a delivery, and what is published of an event. */
import { createHash } from 'node:crypto'
import type { Incoming, Message } from '../../message.js'
import { AMQP } from '../cloudevents.js'
import { toEnvelope, toIncoming, type Received } from '../event.js'
import { guarded } from '../read.js'
import type { RabbitMessage } from './client.js'
import type { ResolvedSink, ResolvedSource } from './options.js'

/** What the broker notes about deliveries. It changes from one to the next, so it is no part of the message. */
const NOTES = /^(x-death|x-(first|last)-death-.*|x-delivery-count|x-acquired-count|x-stream-offset)$/

export const toMessage = guarded(
  ({ content, fields }: RabbitMessage, { queue, source }: ResolvedSource) => ({
    body: content,
    source: source ?? queue,
    type: fields.routingKey,
    redelivered: fields.redelivered,
  }),
  (raw: RabbitMessage, options: ResolvedSource): Incoming =>
    toIncoming(raw, receivedOf(raw, options.queue), AMQP, options),
)

function receivedOf({ content, fields, properties }: RabbitMessage, queue: string): Received {
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(properties.headers ?? {})) {
    if (NOTES.test(name)) continue
    const text = headerText(value)
    if (text !== undefined) headers[name] = text
  }
  const contentType = textOf(properties.contentType)
  if (contentType !== undefined) headers['content-type'] = contentType
  const correlationId = textOf(properties.correlationId)
  if (correlationId !== undefined) headers['correlationid'] ??= correlationId
  const { timestamp } = properties
  return {
    headers,
    body: content,
    id: textOf(properties.messageId),
    source: queue,
    type: textOf(properties.type) ?? fields.routingKey,
    time: typeof timestamp === 'number' && timestamp > 0 ? dateOf(timestamp) : undefined,
    // Quorum queues count; classic ones only say so.
    redelivered: fields.redelivered || Number(properties.headers?.['x-delivery-count'] ?? 0) > 0,
  }
}

export interface Publication {
  readonly routingKey: string
  readonly content: Buffer
  readonly properties: {
    readonly messageId: string
    readonly headers: Readonly<Record<string, string>>
    readonly [property: string]: unknown
  }
}

export function toPublication(message: Message, options: ResolvedSink): Publication {
  const { routingKey, mandatory } = options
  const { headers: all, body } = toEnvelope(message, AMQP, options)
  const { 'content-type': contentType, ...headers } = all
  return {
    routingKey: routingKey(message),
    content: Buffer.from(body.buffer, body.byteOffset, body.byteLength),
    properties: {
      messageId: messageId(message),
      headers,
      contentType,
      mandatory,
      persistent: true,
      ...(isShort(message.type) && { type: message.type }),
      ...(isShort(message.correlationId) && { correlationId: message.correlationId }),
      ...(message.time && { timestamp: Math.floor(message.time.getTime() / 1_000) }),
    },
  }
}

/** For those who do not read CloudEvents. A property has 255 bytes at most. */
function messageId({ id }: Message): string {
  return isShort(id) ? id : `sha256-${createHash('sha256').update(id).digest('base64url')}`
}

function isShort(text: string): boolean {
  return Buffer.byteLength(text) <= 255
}

/** Seconds, by the protocol; many clients write milliseconds. */
function dateOf(timestamp: number): Date | undefined {
  const date = new Date(timestamp < 100_000_000_000 ? timestamp * 1_000 : timestamp)
  return Number.isNaN(date.getTime()) ? undefined : date
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** Headers of the box are text: numbers and booleans are written out, tables as JSON. */
function headerText(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  if (value === undefined || value === null) return undefined
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64')
  if (isTimestamp(value)) return dateOf(value.value)?.toISOString()
  return JSON.stringify(value)
}

/** amqplib's way to write a field that is a time; CloudEvents allows one for `time`. */
function isTimestamp(value: unknown): value is { '!': 'timestamp'; value: number } {
  return typeof value === 'object' && (value as { '!'?: unknown })['!'] === 'timestamp'
}
