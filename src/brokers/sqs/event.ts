/**
 * Messages of SQS and of the box.
 *
 * A message of SQS is text, with ten attributes at most. CloudEvents has no binding for it, so: structured mode is an
 * event in JSON as the body, told by the attribute `content-type` or by what it looks like; binary mode is the binding of
 * Kafka, with attributes called `ce_…`. Bytes of a codec are base64: in `data_base64` of the JSON, or as the body, told
 * by the attribute `content-encoding`.
 */
import { escapeUnits } from '../../escape.js'
import { createHash } from 'node:crypto'
import type { Incoming, Message } from '../../message.js'
import { STRUCTURED_TYPE, writeStructured, type Binding } from '../cloudevents.js'
import { toEnvelope, toIncoming, type ReadOptions, type WriteOptions } from '../event.js'
import { guarded } from '../read.js'
import { queueName, sqsError, type OutgoingMessage, type SqsAttribute, type SqsMessage } from './client.js'

const BINDING: Binding = { prefixes: ['ce_', 'ce-'], percent: false }
/** What SQS takes for a message, attributes included. */
export const MAX_BYTES = 1_048_576
const MAX_ATTRIBUTES = 10
/** Groups that stand for no key, or for one that cannot be the name of a group. */
const OWN_GROUP = 'oncebox:'

// ── reading ──

export interface ReadContext extends ReadOptions<SqsMessage> {
  readonly queueUrl: string
  readonly fifo: boolean
}

export const readMessage = guarded(
  (raw: SqsMessage, { queueUrl, source }: ReadContext) => ({
    body: raw.Body ?? '',
    source: source ?? queueName(queueUrl),
    type: queueName(queueUrl),
    redelivered: receiveCount(raw) > 1,
  }),
  readRaw,
)

function readRaw(raw: SqsMessage, context: ReadContext): Incoming {
  const { Attributes: system = {}, Body: text = '' } = raw
  const name = queueName(context.queueUrl)
  const sent = Number(system['SentTimestamp'])
  const { headers, body } = readBody(attributesOf(raw), text, context.codec !== undefined)
  const received = {
    ...{ headers, body },
    id: idOf(raw, context.fifo),
    source: name,
    type: headers['type'] ?? name,
    key: context.fifo ? keyOf(system['MessageGroupId']) : undefined,
    time: sent > 0 ? new Date(sent) : undefined,
    redelivered: receiveCount(raw) > 1,
  }
  return toIncoming(raw, received, BINDING, context)
}

export function receiveCount({ Attributes }: SqsMessage): number {
  return Number(Attributes?.['ApproximateReceiveCount'] ?? 1)
}

/**
 * A deduplication id that its producer chose is the same when it sends the message again, and unique within its group.
 * One that SQS derives from the body is not: equal bodies may be sent again later, and mean it. MessageId is the same
 * when the queue delivers a message again.
 */
function idOf({ MessageId, Body = '', Attributes = {} }: SqsMessage, fifo: boolean): string | undefined {
  const { MessageDeduplicationId: chosen, MessageGroupId: group } = Attributes
  if (!fifo || chosen === undefined || chosen === createHash('sha256').update(Body).digest('hex')) return MessageId
  // Neither of them can hold a space.
  return `${group ?? ''} ${chosen}`
}

function keyOf(group: string | undefined): string | undefined {
  return group?.startsWith(OWN_GROUP) ? undefined : group
}

function attributesOf({ MessageAttributes = {} }: SqsMessage): [string, string][] {
  return Object.entries(MessageAttributes).map(([name, { StringValue, BinaryValue }]) => [
    name,
    StringValue ?? Buffer.from(BinaryValue ?? []).toString('base64'),
  ])
}

interface Parts {
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

function readBody(attributes: readonly (readonly [string, string])[], text: string, hasCodec: boolean): Parts {
  const others = attributes.filter(([name, value]) => !isBase64(name, value))
  const headers = Object.fromEntries(others)
  if (others.length < attributes.length) return { headers, body: Buffer.from(text, 'base64') }
  const contentType = headers['content-type']
  if (contentType === undefined ? !text.includes('"specversion"') : !/^application\/cloudevents/i.test(contentType)) {
    return { headers, body: Buffer.from(text) }
  }
  const event = parseEvent(text)
  if (event && hasCodec && typeof event['data_base64'] === 'string' && isFlat(event)) return unpack(event)
  return { headers: event ? { ...headers, 'content-type': STRUCTURED_TYPE } : headers, body: Buffer.from(text) }
}

/** Attributes that are lists or objects break the rules, and the event is read as a document, which tells. */
function isFlat(event: object): boolean {
  return Object.values(event).every((value) => typeof value !== 'object' || value === null)
}

function isBase64(name: string, value: string): boolean {
  return name.toLowerCase() === 'content-encoding' && value.toLowerCase() === 'base64'
}

function parseEvent(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const event = JSON.parse(text) as Record<string, unknown> | null
    return event?.['specversion'] === '1.0' && typeof event['type'] === 'string' ? event : undefined
  } catch {
    return undefined
  }
}

// ── writing ──

export interface WriteContext extends WriteOptions {
  readonly mode: 'binary' | 'structured'
  readonly fifo: boolean
}

/** Throws for an event that SQS would never take. */
export function writeMessage(message: Message, context: WriteContext): OutgoingMessage & { readonly bytes: number } {
  const { body, headers } =
    context.mode === 'structured' ? writeDocument(message, context) : writeParts(message, context)
  const bytes = sizeOf(body, headers)
  if (bytes > MAX_BYTES) throw refusal('MessageTooLong', `the message has ${bytes} bytes, SQS takes ${MAX_BYTES}`)
  if ([body, ...Object.values(headers)].some((text) => UNSENDABLE.test(text))) {
    throw refusal('InvalidMessageContents', "SQS takes no control characters; mode: 'structured' escapes them")
  }
  const MessageAttributes: Record<string, SqsAttribute> = {}
  for (const [name, StringValue] of Object.entries(headers))
    MessageAttributes[name] = { DataType: 'String', StringValue }
  const outgoing = { MessageBody: body, MessageAttributes, bytes }
  if (!context.fifo) return outgoing
  return { ...outgoing, MessageGroupId: groupOf(message), MessageDeduplicationId: digest(message.source, message.id) }
}

interface Written {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

function writeDocument(message: Message, { codec }: WriteContext): Written {
  const headers = { 'content-type': STRUCTURED_TYPE }
  const json = codec
    ? JSON.stringify(pack(toEnvelope(message, BINDING, { codec })))
    : Buffer.from(writeStructured(message).body).toString()
  return { headers, body: escapeJson(json) }
}

function writeParts(message: Message, { codec }: WriteContext): Written {
  const envelope = toEnvelope(message, BINDING, { codec })
  const { headers, body } = { headers: fold(envelope.headers), body: Buffer.from(envelope.body) }
  if (codec) return { headers: { ...headers, 'content-encoding': 'base64' }, body: body.toString('base64') }
  const isJson = /json/i.test(headers['content-type'] ?? '')
  return { headers, body: isJson ? escapeJson(body.toString()) : body.toString() }
}

/** Those that are fields of a message, seven with the content type; all others can be among the headers. */
const FIELDS = /^(content-type|ce_(specversion|id|source|type|subject|time|partitionkey))$/

/** There are ten attributes at most, and `content-encoding` may be one: beyond, headers share one. */
function fold(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const entries = Object.entries(headers)
  if (entries.length < MAX_ATTRIBUTES && !entries.some(([, value]) => UNSENDABLE.test(value))) return headers
  const fields = entries.filter(([name]) => FIELDS.test(name))
  const { ce_onceboxheaders: folded = '{}', ...rest } = Object.fromEntries(
    entries.filter(([name]) => !FIELDS.test(name)),
  )
  const others = Object.entries(rest).map(([name, value]) => [name.slice('ce_'.length), value] as const)
  const all = JSON.stringify({ ...Object.fromEntries(others), ...(JSON.parse(folded) as object) })
  return { ...Object.fromEntries(fields), ce_onceboxheaders: escapeJson(all) }
}

/** An event in binary mode, as a JSON document; and back. */
function pack({ headers, body }: Parts): Record<string, string> {
  const { 'content-type': datacontenttype = '', ...rest } = headers
  const attributes = Object.entries(rest).map(([name, value]) => [name.slice('ce_'.length), value] as const)
  return { ...Object.fromEntries(attributes), datacontenttype, data_base64: Buffer.from(body).toString('base64') }
}

function unpack(event: Readonly<Record<string, unknown>>): Parts {
  const { data_base64: base64, data: _, datacontenttype, ...rest } = event
  const headers = new Map<string, string>()
  for (const [name, value] of Object.entries(rest)) {
    if (value !== null) headers.set(`ce_${name}`, typeof value === 'string' ? value : JSON.stringify(value))
  }
  if (typeof datacontenttype === 'string') headers.set('content-type', datacontenttype)
  return { headers: Object.fromEntries(headers), body: Buffer.from(base64 as string, 'base64') }
}

/** A group keeps its order and waits for a message that fails; so an event without a key is a group of its own. */
function groupOf({ key, source, id }: Message): string {
  if (key === undefined) return `${OWN_GROUP}${digest(source, id)}`
  return /^[\x21-\x7e]{1,128}$/.test(key) && !key.startsWith(OWN_GROUP) ? key : `${OWN_GROUP}${digest(key)}`
}

function digest(...parts: string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url')
}

/** Not in the set of characters of SQS: tab, line feed, carriage return, and what is printable. */
const UNSENDABLE = /[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u

/** Characters beyond the first plane are allowed, but not everywhere: emulators refuse them. */
function escapeJson(json: string): string {
  return escapeUnits(json, /[^\t\n\r\x20-\ud7ff\ue000-\ufffd]/g)
}

function sizeOf(body: string, headers: Readonly<Record<string, string>>): number {
  let bytes = Buffer.byteLength(body)
  for (const [name, value] of Object.entries(headers)) bytes += Buffer.byteLength(`${name}String${value}`)
  return bytes
}

function refusal(code: string, message: string): Error {
  return sqsError(code, message, true)
}
