/**
 * CloudEvents 1.0, as every broker needs it: messages to and from a map of headers and a body of bytes.
 *
 * Binary mode puts each attribute into a header and the data into the body. Structured mode puts everything into one
 * JSON document. What a message has and CloudEvents has not travels as extension attributes:
 *
 *     key                     partitionkey
 *     headers                 an attribute each: traceparent, tracestate, correlationid, causationid and your own
 *     headers with names      one attribute, onceboxheaders, with a JSON object: CloudEvents allows a-z and 0-9 only
 *     that cannot be one
 *
 * What is no CloudEvent answers undefined; one that breaks the rules comes without an id, so the box keeps it in quarantine,
 * in structured mode with the whole document. Attributes are text, numbers and booleans, never lists or objects: those
 * could be nested so deep that nobody can write them down again.
 */
import type { Incoming, Message } from '../message.js'
import { bodyOf } from './handover.js'
import { decodeHeader, encodeHeader } from './percent.js'
import { problemText } from './read.js'
import { writtenMembers, type WrittenMembers } from './written-members.js'

/** Headers, and the bytes that go with them. */
export interface Envelope {
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

/** How a protocol writes attributes into headers. */
export interface Binding {
  /** Before the name of each attribute. The first one is written, all are read. */
  readonly prefixes: readonly string[]
  /** Whether values are percent-encoded, because headers are ASCII. */
  readonly percent: boolean
}

/** NATS has the same rules. */
export const HTTP: Binding = { prefixes: ['ce-'], percent: true }
export const KAFKA: Binding = { prefixes: ['ce_'], percent: false }
/** Of the application properties; the content type is a property of its own, which the caller moves. */
export const AMQP: Binding = { prefixes: ['cloudEvents_', 'cloudEvents:'], percent: false }

export const STRUCTURED_TYPE = 'application/cloudevents+json; charset=utf-8'

/** Attributes that are fields of a message. Headers of these names are not attributes. */
const FIELDS = new Set(['specversion', 'id', 'source', 'type', 'subject', 'time', 'partitionkey', 'data'])
/** Attributes that describe the data. They are read into headers of the same names. */
const CONTENT_TYPE = 'datacontenttype'
/** Headers whose names cannot be attributes. */
const OTHER_HEADERS = 'onceboxheaders'
/** Read without a prefix as well: what instruments the transport writes them there. */
const TRACE = ['traceparent', 'tracestate', 'baggage']

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

// ── writing ──

export function writeBinary(message: Message, binding: Binding = HTTP): Envelope {
  const { attributes, contentType, text } = describe(message)
  const headers: Record<string, string> = { 'content-type': contentType }
  for (const [name, value] of attributes) {
    headers[`${binding.prefixes[0]}${name}`] = binding.percent ? encodeHeader(value) : value
  }
  return { headers, body: Buffer.from(text ?? bodyOf(message)) }
}

export function writeStructured(message: Message): Envelope {
  const { attributes, contentType, text } = describe(message)
  const members = [...attributes, [CONTENT_TYPE, contentType] as const].map(
    ([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`,
  )
  // The data is written as it is stored, or numbers beyond 2^53 would change on their way.
  const data = text === undefined ? bodyOf(message) : JSON.stringify(text)
  return { headers: { 'content-type': STRUCTURED_TYPE }, body: Buffer.from(`{${members.join(',')},"data":${data}}`) }
}

interface Description {
  readonly attributes: readonly (readonly [name: string, value: string])[]
  readonly contentType: string
  /** Data that is text, not JSON. */
  readonly text: string | undefined
}

function describe(message: Message): Description {
  const attributes: [string, string][] = [
    ['specversion', '1.0'],
    ['id', message.id],
    ['source', message.source],
    ['type', message.type],
  ]
  if (message.subject !== undefined) attributes.push(['subject', message.subject])
  if (message.time !== undefined) attributes.push(['time', message.time.toISOString()])
  if (message.key !== undefined) attributes.push(['partitionkey', message.key])
  const headers: Record<string, string> = { ...message.headers }
  if (message.correlationId !== message.id) headers['correlationid'] ??= message.correlationId
  if (message.causationId !== undefined) headers['causationid'] ??= message.causationId

  const others: [string, string][] = []
  for (const [name, value] of Object.entries(headers)) {
    if (name === CONTENT_TYPE) continue
    // An empty attribute is no attribute.
    if (/^[a-z0-9]+$/.test(name) && !FIELDS.has(name) && name !== OTHER_HEADERS && value !== '') {
      attributes.push([name, value])
    } else {
      others.push([name, value])
    }
  }
  if (others.length > 0) attributes.push([OTHER_HEADERS, JSON.stringify(Object.fromEntries(others))])

  const declared = headers[CONTENT_TYPE] ?? 'application/json'
  const text = !isJson(declared) && typeof message.data === 'string' ? message.data : undefined
  return { attributes, contentType: isJson(declared) || text !== undefined ? declared : 'application/json', text }
}

// ── reading ──

export interface ReadOptions {
  readonly binding?: Binding
  /** Which other headers of the transport become headers of the message, in binary mode. Default: the trace context. */
  readonly keep?: (name: string) => boolean
}

/** Reads an event in the mode that its content type says. Undefined if it is none, or a batch, or in another format. */
export function readEvent(envelope: Envelope, options: ReadOptions = {}): Incoming | undefined {
  const contentType = findHeader(envelope.headers, 'content-type')
  if (contentType === undefined || !/^application\/cloudevents/i.test(contentType)) return readBinary(envelope, options)
  return /^application\/cloudevents\+json\s*(;|$)/i.test(contentType) ? readStructured(envelope.body) : undefined
}

export function readBinary({ headers, body }: Envelope, options: ReadOptions = {}): Incoming | undefined {
  const { binding = HTTP, keep = () => false } = options
  const attributes = new Map<string, string>()
  const others: [string, string][] = []
  const problems: string[] = []
  let contentType: string | undefined
  for (const [name, value] of Object.entries(headers)) {
    const lower = name.toLowerCase()
    const prefix = binding.prefixes.find((one) => lower.startsWith(one.toLowerCase()))
    if (prefix !== undefined) {
      const decoded = binding.percent ? decodeHeader(value) : value
      if (decoded === undefined) problems.push(`header ${shortened(lower)} is not UTF-8 in percent-encoding`)
      else attributes.set(lower.slice(prefix.length), decoded)
    } else if (lower === 'content-type') contentType = value
    else if (TRACE.includes(lower) || keep(name)) others.push([TRACE.includes(lower) ? lower : name, value])
  }
  if (attributes.get('specversion') !== '1.0') return undefined
  if (contentType !== undefined) attributes.set(CONTENT_TYPE, contentType)
  return toIncoming(attributes, readPayload(body, contentType), others, problems)
}

export function readStructured(body: Uint8Array | string): Incoming | undefined {
  let text: string
  let document: unknown
  try {
    text = typeof body === 'string' ? body : utf8.decode(body)
    document = JSON.parse(text)
  } catch {
    return undefined
  }
  if (typeof document !== 'object' || document === null || Array.isArray(document)) return undefined
  const { data, data_base64: base64, ...rest } = document as Record<string, unknown>
  if (rest['specversion'] !== '1.0') return undefined
  const problems: string[] = []
  const written = writtenMembers(text)
  const attributes = readAttributes(rest, written, problems)
  const contentType = typeof rest[CONTENT_TYPE] === 'string' ? rest[CONTENT_TYPE] : undefined
  let payload: Payload
  if (base64 !== undefined && base64 !== null) {
    if (!isBase64(base64) || data !== undefined) problems.push('data_base64 must be base64, without data')
    payload = isBase64(base64) ? readPayload(Buffer.from(base64, 'base64'), contentType) : { body: text }
  } else if (data === undefined) payload = { data: null }
  else if (typeof data === 'string' && !isJson(contentType ?? 'application/json')) payload = { data }
  else payload = { body: written().get('data')! }
  const event = toIncoming(attributes, payload, [], problems)
  if (problems.length === 0) return event
  const { data: _, ...broken } = event
  return { ...broken, body: text }
}

/** Attributes as text, and what is wrong with them. */
function readAttributes(rest: object, written: WrittenMembers, problems: string[]): Map<string, string> {
  const attributes = new Map<string, string>()
  for (const [name, value] of Object.entries(rest) as [string, unknown][]) {
    if (value === undefined || value === null) continue
    if (typeof value === 'object') problems.push(`${shortened(name)} is a list or an object`)
    else if (typeof value === 'string') attributes.set(name, value)
    else if (FIELDS.has(name)) problems.push(`${name} is not text`)
    // Numbers that JavaScript would round keep their digits.
    else
      attributes.set(
        name,
        Math.abs(Number(value)) > Number.MAX_SAFE_INTEGER ? written().get(name)! : JSON.stringify(value),
      )
  }
  return attributes
}

type Payload = { data: unknown; body?: never } | { body: Uint8Array | string; data?: never }

/** Text is data; everything else is for the box to decode, which takes JSON. */
function readPayload(bytes: Uint8Array, contentType: string | undefined): Payload {
  if (bytes.byteLength === 0) return { data: null }
  if (contentType === undefined || !isText(contentType)) return { body: bytes }
  try {
    return { data: utf8.decode(bytes) }
  } catch {
    return { body: bytes }
  }
}

function toIncoming(
  attributes: ReadonlyMap<string, string>,
  payload: Payload,
  transport: readonly (readonly [string, string])[],
  problems: string[],
): Incoming {
  const fields = {
    source: attributes.get('source'),
    key: attributes.get('partitionkey'),
    subject: attributes.get('subject'),
    time: attributes.get('time'),
  }
  const id = attributes.get('id')
  const type = attributes.get('type') ?? ''
  // Own properties throughout: an attribute may be called __proto__.
  const headers = new Map<string, string>(transport)
  for (const [name, value] of attributes) {
    if (FIELDS.has(name) || name === OTHER_HEADERS) continue
    if (name === CONTENT_TYPE && /^application\/json\s*(;\s*charset="?utf-8"?\s*)?$/i.test(value)) continue
    headers.set(name, value)
  }
  for (const [name, value] of readOtherHeaders(attributes.get(OTHER_HEADERS))) headers.set(name, value)
  if (problems.length > 0) headers.set('oncebox-problem', problemText(problems.slice(0, 10).join('; ')))

  const incoming: Incoming = { id: problems.length > 0 ? undefined : id, type, ...payload }
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined) incoming[name as keyof typeof fields] = value
  }
  if (headers.size > 0) incoming.headers = Object.fromEntries(headers)
  return incoming
}

function readOtherHeaders(value: string | undefined): [string, string][] {
  if (value === undefined) return []
  try {
    const entries = Object.entries(JSON.parse(value) as Record<string, unknown>)
    if (entries.every((entry): entry is [string, string] => typeof entry[1] === 'string')) return entries
  } catch {
    // Somebody else's attribute of that name.
  }
  return [[OTHER_HEADERS, value]]
}

// ── the rules of media types and base64 ──

/** Node would pass over what is none of it, and bytes would be missing from the data. */
function isBase64(value: unknown): value is string {
  return typeof value === 'string' && /^[A-Za-z0-9+/_\s-]*(=\s*){0,2}$/.test(value)
}

function shortened(name: string): string {
  return name.length > 100 ? `${name.slice(0, 100)}…` : name
}

function isJson(contentType: string): boolean {
  return /^[^/;\s]+\/([^;\s]+\+)?json\s*(;|$)/i.test(contentType)
}

function isText(contentType: string): boolean {
  return /^(text\/[^;\s]+|[^/;\s]+\/([^;\s]+\+)?xml)\s*(;|$)/i.test(contentType)
}

function findHeader(headers: Readonly<Record<string, string>>, name: string): string | undefined {
  for (const [key, value] of Object.entries(headers)) if (key.toLowerCase() === name) return value
  return undefined
}
