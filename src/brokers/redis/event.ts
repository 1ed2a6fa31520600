/**
 * Entries and messages. An event is an entry with a field for each attribute and one for the body:
 *
 *     ce_id 7f… ce_source shop ce_type order.placed … content-type application/json data {"order":"A-1"}
 *
 * An entry with `data` that is no CloudEvent may say `id`, `type` and `key` in fields of these names; its other fields
 * are headers. The fields of an entry without `data` are its body, an object of texts.
 */
import type { Incoming, Message } from '../../message.js'
import { KAFKA, type Binding } from '../cloudevents.js'
import { refusable, toEnvelope, toIncoming, type WriteOptions } from '../event.js'
import { guarded } from '../read.js'
import type { Argument } from './client.js'
import type { RedisEntry, ResolvedSource } from './options.js'

/** Nobody has bound CloudEvents to Redis; like Kafka, it has fields of any bytes. */
const BINDING: Binding = KAFKA
const BODY = 'data'
/** Ids may be chosen by the producer, and then begin with any number: these are times since 2001. */
const LEAST_TIME_MS = 1_000_000_000_000

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export const readEntry = guarded(
  ({ stream, fields }: RedisEntry, redelivered: boolean, { source }: ResolvedSource) => ({
    body: fields[BODY] ?? asObject(fields),
    source: source ?? stream,
    type: stream,
    redelivered,
  }),
  readFields,
)

function readFields(entry: RedisEntry, redelivered: boolean, options: ResolvedSource): Incoming {
  const { [BODY]: body, ...others } = entry.fields
  const place = { source: entry.stream, type: entry.stream, time: timeOf(entry.id), redelivered }
  if (body === undefined) {
    return toIncoming(entry, { ...place, id: entry.id, headers: {}, body: asObject(entry.fields) }, BINDING, options)
  }
  const headers: Record<string, string> = {}
  let problem: string | undefined
  for (const [name, value] of Object.entries(others)) {
    try {
      headers[name] = utf8.decode(value)
    } catch {
      problem = `field ${name} is not UTF-8`
    }
  }
  const { id = entry.id, type = entry.stream, key, ...rest } = headers
  const message = toIncoming(entry, { ...place, id, type, key, headers: rest, body }, BINDING, options)
  return problem === undefined ? message : refusable(message, problem)
}

/** As JSON, byte by byte: what is not UTF-8 stays so, and the box keeps it in quarantine. */
function asObject(fields: RedisEntry['fields']): Buffer {
  const texts = Object.entries(fields).map(([name, value]) => [
    Buffer.from(name).toString('latin1'),
    value!.toString('latin1'),
  ])
  return Buffer.from(JSON.stringify(Object.fromEntries(texts)), 'latin1')
}

function timeOf(id: string): Date | undefined {
  const ms = Number(id.split('-')[0])
  return ms >= LEAST_TIME_MS && ms < 8.64e15 ? new Date(ms) : undefined
}

/** The fields of an entry, name and value in turn. */
export function writeFields(message: Message, options: WriteOptions): Argument[] {
  const { headers, body } = toEnvelope(message, BINDING, options)
  return [...Object.entries(headers).flat(), BODY, Buffer.from(body.buffer, body.byteOffset, body.byteLength)]
}
