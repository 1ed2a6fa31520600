/**
 * What brokers have in common: headers and bytes become a message of the box, and an event becomes headers and bytes.
 *
 * A CloudEvent says itself who it is. Of anything else the adapter knows what its broker knows; what has no id that
 * stays the same when it is delivered again has none, and the box keeps it in quarantine.
 */
import { isDate, isProxy, isUint8Array } from 'node:util/types'
import { OnceboxError } from '../errors.js'
import type { Incoming, Message } from '../message.js'
import { callback, checked, invalid, name, nameOr, oneOf, optional } from '../options.js'
import { isPromise } from '../promises.js'
import { type Binding, type Envelope, readEvent, writeBinary, writeStructured } from './cloudevents.js'
import { type Codec, decodeWith, jsonProblem } from './codec.js'
import { problemText } from './read.js'
import { threw, unmapped, unmappedProblem } from './unmapped.js'

/** Options of every source. `Raw` is a message as the broker's client hands it out. */
export interface ReadOptions<Raw> {
  /** The producer: ids are unique within it. Default: the event's own, else what the adapter's page says. */
  source?: string | undefined
  /** The type of messages that are no CloudEvents, or how to find it. Default: what the adapter's page says. */
  type?: string | ((raw: Raw) => string | undefined) | undefined
  /** For bodies that are not JSON. */
  codec?: Codec | undefined
  /** Decides what the box gets: `(raw, message) => ({ ...message, key: … })`, where `message` is the default. */
  map?: ((raw: Raw, message: Incoming) => Incoming) | undefined
}

/** Options of every sink. */
export interface WriteOptions {
  /** CloudEvents: attributes in headers and the data as the body, or all in one JSON document. Default: 'binary'. */
  mode?: 'binary' | 'structured' | undefined
  /** For bodies that are not JSON; in binary mode only. */
  codec?: Codec | undefined
}

/** A message of a broker, in words that all brokers share. */
export interface Received {
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  /** The rest is for what is no CloudEvent; where that is silent, also for what is one. */
  readonly id?: string | undefined
  readonly source?: string | undefined
  readonly type?: string | undefined
  readonly key?: string | undefined
  readonly subject?: string | undefined
  readonly time?: Date | undefined
  /** The broker has delivered it before. */
  readonly redelivered?: boolean | undefined
}

const CODEC = optional(
  checked((where, codec: Codec) => {
    if (typeof codec?.decode === 'function' && typeof codec.encode === 'function' && codec.contentType) return codec
    throw invalid(`${where} must be { contentType, decode(bytes), encode(data) }`)
  }),
  'JSON',
)

/** Options of every source. */
export const READING = <Raw>() => ({
  source: optional(name(), 'as above'),
  type: optional(nameOr<(raw: Raw) => string | undefined>(), 'as above'),
  codec: CODEC,
  map: optional(callback<(raw: Raw, message: Incoming) => Incoming>()),
})

/** Options of every sink. */
export const WRITING = { mode: oneOf(['binary', 'structured'], 'binary'), codec: CODEC }

export function checkWriting(where: string, { mode, codec }: WriteOptions): void {
  if (codec && mode === 'structured') {
    throw invalid(`${where}: a codec writes bodies of its own, so mode must be 'binary'`)
  }
}

/** What the box gets. A `map` or `type` that throws, and a `map` that returns no message, make it one that is unmapped. */
export function toIncoming<Raw>(
  raw: Raw,
  received: Received,
  binding: Binding,
  options: ReadOptions<Raw> = {},
): Incoming {
  const message = defaultMessage(raw, received, binding, options)
  if (!options.map || unmappedProblem(message) !== undefined) return message
  try {
    const mapped = readMapped(options.map(raw, message), message)
    return mapped.problem === undefined ? mapped.message : unmapped(message, mapped.problem)
  } catch (error) {
    return unmapped(message, threw('map', error))
  }
}

const TEXTS = ['id', 'type', 'source', 'key', 'subject'] as const
const FIELDS = [...TEXTS, 'time', 'headers', 'redelivered', 'body', 'data'] as const

/**
 * What `map` made of a message, or why it is none: a batch must not fail for the sake of one. Each property is read once,
 * for it may answer otherwise the next time, or throw. So may this function.
 */
export function readMapped(
  mapped: unknown,
  { data }: Incoming,
): { readonly message: Incoming; readonly problem?: never } | { readonly problem: string } {
  if (isPromise(mapped)) return { problem: 'map returned no message but a promise; it must not be async' }
  if (typeof mapped !== 'object' || mapped === null || Array.isArray(mapped)) {
    return { problem: 'map returned no message' }
  }
  const copy: Record<string, unknown> = { ...mapped }
  for (const name of FIELDS) {
    const value: unknown = Object.hasOwn(copy, name) ? copy[name] : mapped[name as never]
    if (value !== undefined) copy[name] = value
  }
  const { headers, time, body, data: own } = copy
  const odd = TEXTS.find((name) => isThing(copy[name])) ?? (isThing(time) && !isDate(time) ? 'time' : undefined)
  if (odd !== undefined) return { problem: `map returned a message whose ${odd} is an object or a function` }
  const proxy = Object.keys(copy).find((name) => isProxy(copy[name]))
  if (proxy !== undefined) return { problem: `map returned a message whose ${proxy} is a Proxy` }
  if (typeof headers === 'object' && headers !== null) copy['headers'] = { ...headers }
  if (body !== undefined) {
    if (own !== undefined) {
      return { problem: 'map returned both a body and data; leave out the one that is not meant' }
    }
    if (isPromise(body)) return { problem: 'map returned a body that is a promise; it must not be async' }
    const isBody = typeof body === 'string' || isUint8Array(body)
    if (!isBody) return { problem: 'map returned a body that is neither a string nor a Uint8Array' }
  } else {
    const problem = own === data ? undefined : jsonProblem(own)
    if (problem !== undefined) return { problem: `map returned ${problem}` }
  }
  return { message: copy as Incoming }
}

/** What is no text, and may do anything when it is looked at. Nor is it waited for. */
export function isThing(value: unknown): boolean {
  return isPromise(value) || (typeof value === 'object' && value !== null) || typeof value === 'function'
}

function defaultMessage<Raw>(
  raw: Raw,
  received: Received,
  binding: Binding,
  { source, type, codec }: ReadOptions<Raw>,
): Incoming {
  const { headers, body, redelivered } = received
  // A codec reads the body of an event in binary mode; one in structured mode is a JSON document by definition.
  const event = readEvent({ headers, body }, { binding, keep: () => true })
  if (event) {
    if (source !== undefined) event.source = source
    const key = event.key ?? received.key
    if (key !== undefined) event.key = key
    if (event.time === undefined && received.time !== undefined) event.time = received.time
    if (redelivered) event.redelivered = true
    const isBinary = !/^application\/cloudevents/i.test(contentTypeOf(headers) ?? '')
    if (!codec || !isBinary) return event
    const { data: _, ...rest } = event
    return decodeWith(codec, { ...rest, body })
  }
  const message: Incoming & { body: Uint8Array } = { id: received.id, type: '', body }
  if (Object.keys(headers).length > 0) message.headers = { ...headers }
  const fields = { source: source ?? received.source, key: received.key, subject: received.subject }
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined) message[name as keyof typeof fields] = value
  }
  if (received.time !== undefined) message.time = received.time
  if (redelivered) message.redelivered = true
  try {
    const own: unknown = (typeof type === 'function' ? type(raw) : type) ?? received.type ?? ''
    if (isThing(own)) return unmapped(message, 'type returned an object or a function')
    message.type = own as string
  } catch (error) {
    return unmapped(message, threw('type', error))
  }
  return codec ? decodeWith(codec, message) : message
}

/** A message that says itself that it has no usable id: the box keeps it in quarantine; headers say why, and which id it had. */
export function refusable(message: Incoming, problem: string): Incoming {
  const { id } = message
  const headers: Record<string, string> = { ...message.headers, 'oncebox-problem': problemText(problem) }
  if (typeof id === 'string') headers['oncebox-id'] = problemText(id)
  return { ...message, id: undefined, headers }
}

/** What is published of an event. */
export function toEnvelope(message: Message, binding: Binding, { mode = 'binary', codec }: WriteOptions): Envelope {
  if (mode === 'structured') return writeStructured(message)
  const { headers, body } = writeBinary(message, binding)
  if (!codec) return { headers, body }
  const encoded = codec.encode(message.data)
  if (isPromise(encoded)) {
    throw new OnceboxError('RESULT_INVALID', 'encode of a codec answered a promise; it must not be async')
  }
  return { headers: { ...headers, 'content-type': codec.contentType }, body: encoded }
}

function contentTypeOf(headers: Readonly<Record<string, string>>): string | undefined {
  return Object.entries(headers).find(([name]) => name.toLowerCase() === 'content-type')?.[1]
}
