/** Records and messages: what the box gets of a record, and what is sent of an event. */
import type { Incoming, Message } from '../../message.js'
import { KAFKA } from '../cloudevents.js'
import { toEnvelope, toIncoming, type ReadOptions, type WriteOptions } from '../event.js'
import { guarded } from '../read.js'
import type { KafkaHeaders, KafkaMessage, KafkaRecord } from './client.js'

/** What `type` and `map` are given. */
export interface ReceivedRecord {
  readonly topic: string
  readonly partition: number
  /** As the client hands it out. */
  readonly message: KafkaMessage
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * A record without an id of its own is known by its place in the log, which stays the same however often it is read.
 * The topic is part of the id too, for `source` may be one name for many topics.
 */
export const toMessage = guarded(
  ({ topic, message }: ReceivedRecord, { source }: ReadOptions<ReceivedRecord>, redelivered: boolean) => ({
    body: message.value ?? 'null',
    source: source ?? topic,
    type: topic,
    redelivered,
  }),
  readRecord,
)

function readRecord(raw: ReceivedRecord, options: ReadOptions<ReceivedRecord>, redelivered: boolean): Incoming {
  const { topic, partition, message } = raw
  const headers = textHeaders(message.headers)
  const place = {
    id: `${topic}:${partition}:${message.offset}`,
    source: topic,
    type: headers['type'] || topic,
    key: message.key === null || message.key.length === 0 ? undefined : toText(message.key),
    time: timeOf(message.timestamp),
    redelivered,
  }
  if (message.value !== null) return toIncoming(raw, { ...place, headers, body: message.value }, KAFKA, options)
  // A tombstone: its data is null, whatever its headers or a codec would make of no bytes.
  const { codec: _, ...rest } = options
  const json = { ...headers, 'content-type': 'application/json' }
  return toIncoming(raw, { ...place, headers: json, body: Buffer.from('null') }, KAFKA, rest)
}

export function toRecord(message: Message, options: WriteOptions): KafkaRecord {
  const { headers, body } = toEnvelope(message, KAFKA, options)
  const record: KafkaRecord = { value: Buffer.from(body.buffer, body.byteOffset, body.byteLength), headers }
  // Without a timestamp: under that of an old event the topic's retention would delete it at once. `ce_time` has it.
  if (message.key !== undefined) record.key = message.key
  return record
}

/** Of several values the last counts, as for Kafka's own `lastHeader`. */
function textHeaders(headers: KafkaHeaders = {}): Record<string, string> {
  const texts = new Map<string, string>()
  for (const [name, given] of Object.entries(headers)) {
    const value = Array.isArray(given) ? given.at(-1) : given
    if (value !== undefined && value !== null) texts.set(name, toText(value))
  }
  return Object.fromEntries(texts)
}

/** Kafka's keys and header values are bytes. What is no text that can be stored is written in base64. */
function toText(value: Uint8Array | string): string {
  if (typeof value === 'string') return value
  try {
    const text = utf8.decode(value)
    if (!text.includes('\0')) return text
  } catch {
    // Not UTF-8.
  }
  return Buffer.from(value).toString('base64')
}

/** Milliseconds since 1970, or -1. */
function timeOf(timestamp: string): Date | undefined {
  const ms = Number(timestamp)
  return timestamp === '' || !(ms >= 0) ? undefined : new Date(ms)
}
