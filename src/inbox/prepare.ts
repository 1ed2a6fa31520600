/** The first step: what arrives becomes an envelope that can be stored, or a refusal with a reason. */
import { inspect } from 'node:util'
import { codecProblem } from '../brokers/codec.js'
import { nameProblem, nearest } from '../check-options.js'
import { OnceboxError } from '../errors.js'
import { toFailure } from '../failure.js'
import { toMessage, type Incoming, type Message, type QuarantineReason } from '../message.js'
import type { Origin, Runtime } from '../runtime.js'
import { validate, type Validated } from '../validate.js'
import { decodeBody, fingerprint, fingerprintBytes } from '../body.js'
import type { ConsumerDeclaration } from './consumer.js'
import { laneOf } from './origin.js'

/** An incoming message, checked and decoded, in the form that the statements take. */
export interface Prepared {
  readonly incoming: Incoming
  readonly id: string
  readonly source: string
  readonly type: string
  readonly key: string | undefined
  /** The lane of its key, where that is not the key itself. */
  readonly lane: string | undefined
  readonly body: string
  readonly hash: string | null
  /** What has no column of its own, as JSON text, or null if there is nothing. */
  readonly envelope: string | null
  readonly time: string | undefined
  /** The data after the JSON round trip, before any schema. */
  readonly data: unknown
  /** Business keys by consumer, where a consumer has `identity`. */
  readonly ids: Readonly<Record<string, string>> | undefined
  /** Consumers whose `identity` gave no key, and why: they cannot take it. */
  readonly unfit: ReadonlyMap<string, string> | undefined
  /** The source that brought it; undefined if it was handed in. */
  readonly origin: Origin | undefined
  /** Since when it has waited in quarantine, if it leaves it by itself. */
  readonly heldSince?: string
}

export interface Refused {
  readonly incoming: Incoming
  readonly id: string | undefined
  readonly source: string
  readonly type: string
  readonly key: string | undefined
  readonly lane: string | undefined
  readonly reason: QuarantineReason
  readonly detail: string
  readonly body: string | undefined
  readonly bytes: Uint8Array | undefined
  readonly hash: string
  readonly envelope: string | null
  readonly origin: Origin | undefined
}

export interface PrepareOptions {
  readonly consumers: readonly ConsumerDeclaration[]
  /** What came over a link, and what a person releases, is not held to the size limit again. */
  readonly anySize?: boolean
  readonly fingerprint?: ((message: Incoming) => unknown) | undefined
  /** What is no message at all is refused. Otherwise it throws: whoever handed it in can mend it, a broker cannot. */
  readonly bySource?: boolean
  /** Not held to its schema: it carries no data. */
  readonly unchecked?: boolean
  /** The source that brings it. */
  readonly origin?: Origin | undefined
  /** The lane that it was given when it came: it leaves the quarantine for the same. */
  readonly lane?: string | undefined
}

/** Answers at once unless a schema takes its time: thousands arrive together, and a promise for each would show. */
export function prepare(
  runtime: Runtime,
  incoming: Incoming,
  options: PrepareOptions,
): Prepared | Refused | Promise<Prepared | Refused> {
  if (typeof incoming !== 'object' || incoming === null) return refuseThing(incoming, options)
  const envelope = readEnvelope(incoming, options)
  const misplaced = readStray(runtime, incoming)
  const body = misplaced ? unreadable(incoming, misplaced) : readBody(incoming)
  if (body.mistake && !options.bySource) throw body.mistake
  const refuse = (reason: QuarantineReason, detail: string): Refused =>
    refusal(incoming, envelope, body, { reason, detail, origin: options.origin })

  // Before all else: what is refused for another reason would be released with the rest once that reason is gone.
  if (envelope.type !== '' && options.origin?.types?.has(envelope.type) === false) {
    return refuse('not-allowed', `its source, ${options.origin.name}, may not send ${envelope.type}`)
  }
  const size = typeof body.raw === 'string' ? Buffer.byteLength(body.raw) : body.raw.byteLength
  if (size > runtime.maxBytes && !options.anySize) {
    return refuse('too-large', `the body has ${size} bytes, the limit (maxBytes) is ${runtime.maxBytes}`)
  }
  if (envelope.idProblem) return refuse('no-id', `id ${envelope.idProblem}`)
  if (envelope.problem) return refuse('invalid', envelope.problem)
  if (misplaced) return refuse('invalid', misplaced)
  const decoded = body.decode()
  if ('problem' in decoded) return refuse('undecodable', decoded.problem)
  const hash = fingerprintOf(incoming, decoded.data, options.fingerprint)
  if (hash === undefined) return refuse('undecodable', 'the data is nested too deep')

  const prepared = {
    incoming,
    id: envelope.id!,
    source: envelope.source,
    type: envelope.type,
    key: envelope.key,
    lane: envelope.lane,
    body: decoded.text,
    hash,
    envelope: envelope.rest,
    time: envelope.time,
    data: decoded.data,
    ids: undefined,
    unfit: undefined,
    origin: options.origin,
  }
  const parsed = options.unchecked ? { value: decoded.data } : validate(runtime.schemaOf(envelope.type), decoded.data)
  const finish = (checked: Validated): Prepared | Refused =>
    'problem' in checked
      ? refuse('invalid', checked.problem)
      : withIdentities(prepared, checked.value, options.consumers)
  return parsed instanceof Promise ? parsed.then(finish) : finish(parsed)
}

interface Envelope {
  id: string | undefined
  idProblem: string | undefined
  source: string
  type: string
  key: string | undefined
  lane: string | undefined
  time: string | undefined
  rest: string | null
  problem: string | undefined
}

function readEnvelope(incoming: Incoming, { origin, lane: given }: PrepareOptions): Envelope {
  const problems: string[] = []
  const text = (name: 'source' | 'type' | 'key' | 'subject', required: boolean): string | undefined => {
    const value: unknown = incoming[name]
    if (value === undefined || value === null || (value === '' && !required)) {
      if (required) problems.push(`${name} is missing`)
      return undefined
    }
    const problem = nameProblem(value)
    if (problem) problems.push(`${name} ${problem}`)
    return problem ? undefined : (value as string)
  }
  const type = text('type', true) ?? ''
  const source = text('source', false) ?? ''
  const key = text('key', false)
  const lane = key === undefined ? undefined : (given ?? laneOf(origin?.keys ?? 'shared', source, key))
  const subject = text('subject', false)
  const time = readTime(incoming.time, problems)
  const headers = readHeaders(incoming.headers, problems)
  const idProblem = incoming.id === undefined || incoming.id === null ? 'is missing' : nameProblem(incoming.id)
  const rest: Record<string, unknown> = {}
  if (subject !== undefined) rest['subject'] = subject
  if (time !== undefined) rest['time'] = time
  if (headers !== undefined) rest['headers'] = headers
  if (lane !== undefined) rest['lane'] = lane
  return {
    id: idProblem ? undefined : incoming.id,
    idProblem,
    source,
    type,
    key,
    lane,
    time,
    rest:
      subject === undefined && time === undefined && headers === undefined && lane === undefined
        ? null
        : JSON.stringify(rest),
    problem: problems.length ? problems.join('; ') : undefined,
  }
}

function readTime(time: unknown, problems: string[]): string | undefined {
  if (time === undefined || time === null) return undefined
  const date = time instanceof Date ? time : new Date(typeof time === 'string' ? inUtc(time) : NaN)
  const ms = date.getTime()
  // Beyond these years PostgreSQL and JavaScript disagree on how to write a date.
  if (Number.isNaN(ms) || ms < -62_135_596_800_000 || ms > 253_402_300_799_999) {
    problems.push('time is not a date')
    return undefined
  }
  return date.toISOString()
}

/** Without a zone JavaScript would take the process's own, and two receivers would disagree. */
function inUtc(time: string): string {
  return /T\d\d:\d\d(:\d\d(\.\d+)?)?$/.test(time) ? `${time}Z` : time
}

function readHeaders(headers: unknown, problems: string[]): Record<string, string> | undefined {
  if (headers === undefined || headers === null) return undefined
  if (typeof headers !== 'object') {
    problems.push('headers must be an object of strings')
    return undefined
  }
  const entries = Object.entries(headers as Record<string, unknown>)
  if (entries.length === 0) return undefined
  for (const [name, value] of entries) {
    if (typeof value !== 'string') problems.push(`header ${JSON.stringify(name.slice(0, 100))} must be a string`)
    else if (!storable(name) || !storable(value)) problems.push(`a header has NUL or a lone surrogate`)
  }
  return problems.length ? undefined : (headers as Record<string, string>)
}

function storable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed()
}

const PROPERTIES = ['id', 'type', 'source', 'key', 'subject', 'time', 'headers', 'data', 'body', 'redelivered']
/** A message that a handler got, or an event as its JSON has it, may be handed on as it is. */
const PASSED_OVER = ['receivedAt', 'attempt', 'correlationId', 'causationId', 'specversion', 'datacontenttype']
export const PROPERTIES_TAKEN: readonly string[] = [...PROPERTIES, ...PASSED_OVER]
const TAKEN = new Set(PROPERTIES_TAKEN)
/** What others call data. */
const LIKE_DATA = /^(data|body|data_base64|payload|contents?|value|json|event|message|details?|params|args|record)$/i

/**
 * Looks for properties that no message has: each is warned of once for its type. Answers with the problem if the data
 * seems to be in one of them, for the handler would get null.
 */
function readStray(runtime: Runtime, incoming: Incoming): string | undefined {
  const { data, body, type } = incoming as { data?: unknown; body?: unknown; type: unknown }
  if (data !== undefined && body !== undefined) {
    const text = 'a message has either data or a body; of one that has both, the data is passed over'
    runtime.warnOnce(`both ${String(type)}`, { type }, text)
  }
  for (const name in incoming) {
    if (TAKEN.has(name)) continue
    const value: unknown = incoming[name as never]
    const isObject = typeof value === 'object' && value !== null && !(value instanceof Date)
    const isData = isObject || LIKE_DATA.test(name)
    if (data === undefined && body === undefined && isData) {
      return `a message has no property ${JSON.stringify(name)}; pass it as data`
    }
    const near = nearest(name, PROPERTIES)
    const hint = near ? `did you mean ${near}?` : `it has ${PROPERTIES.join(', ')}`
    const text = `a message has no property ${JSON.stringify(name)}, so it is passed over; ${hint}`
    runtime.warnOnce(`property ${String(type)} ${name}`, { type, property: name }, text)
  }
  return undefined
}

interface Body {
  readonly raw: string | Uint8Array
  /** It is neither bytes nor what JSON can hold. `raw` shows it then, as well as it can be shown. */
  readonly mistake?: OnceboxError
  decode(): ReturnType<typeof decodeBody>
}

function readBody(incoming: Incoming): Body {
  if (incoming.body !== undefined) {
    const raw: unknown = incoming.body
    if (typeof raw === 'string') return { raw, decode: () => decodeBody(raw) }
    if (raw instanceof Uint8Array) {
      const problem = codecProblem(incoming)
      return { raw, decode: () => (problem === undefined ? decodeBody(raw) : { problem }) }
    }
    return unreadable(raw, 'body must be a string or a Uint8Array; pass parsed JSON as data')
  }
  let text: string
  try {
    text = JSON.stringify(incoming.data) ?? 'null'
  } catch (error) {
    return unreadable(incoming.data, `data of message ${String(incoming.id)} cannot be written as JSON`, error)
  }
  return { raw: text, decode: () => ({ text, data: JSON.parse(text) as unknown }) }
}

function unreadable(value: unknown, problem: string, cause?: unknown): Body {
  const mistake = new OnceboxError('MESSAGE_INVALID', problem, cause === undefined ? undefined : { cause })
  return { raw: show(value), mistake, decode: () => ({ problem }) }
}

function refuseThing(thing: unknown, options: PrepareOptions): Refused {
  const problem = `a message must be an object { id, type, data }; got ${String(thing)}`
  if (!options.bySource) throw new OnceboxError('MESSAGE_INVALID', problem)
  const empty: Incoming = { id: undefined, type: '', body: show(thing) }
  const why = { reason: 'invalid', detail: problem, origin: options.origin } as const
  return refusal(empty, readEnvelope(empty, options), readBody(empty), why)
}

/** For people: there are no bytes to keep. */
function show(value: unknown): string {
  try {
    return inspect(value, { depth: 20, maxArrayLength: 1_000, maxStringLength: 100_000 })
  } catch {
    return 'something that cannot be shown'
  }
}

function fingerprintOf(
  incoming: Incoming,
  data: unknown,
  choose: PrepareOptions['fingerprint'],
): string | null | undefined {
  if (!choose) return fingerprint(data)
  try {
    const chosen = choose(incoming)
    if (chosen === false) return null
    const text = JSON.stringify(chosen)
    return text === undefined ? null : fingerprint(JSON.parse(text) as unknown)
  } catch {
    // A source that cannot choose, or data nested too deep for it: all of the data counts.
    return fingerprint(data)
  }
}

function refusal(
  incoming: Incoming,
  envelope: Envelope,
  body: Body,
  why: Pick<Refused, 'reason' | 'detail' | 'origin'>,
): Refused {
  const { raw } = body
  const text = typeof raw === 'string' ? raw : decodeText(raw)
  const readable = text !== undefined && storable(text)
  return {
    incoming,
    id: envelope.id,
    source: envelope.source,
    type: envelope.type,
    key: envelope.key,
    lane: envelope.lane,
    ...why,
    body: readable ? text : undefined,
    // A string that is no Unicode has no UTF-8 bytes: its UTF-16 code units are kept.
    bytes: readable ? undefined : typeof raw === 'string' ? Buffer.from(raw, 'utf16le') : raw,
    hash: hashOf(envelope, typeof raw === 'string' ? Buffer.from(raw, readable ? 'utf8' : 'utf16le') : raw),
    envelope: envelope.rest,
  }
}

/** Without an id all that came with it tells it from others: equal ones are kept once. */
function hashOf({ id, type, key, rest }: Envelope, raw: Uint8Array): string {
  return id === undefined
    ? fingerprintBytes(Buffer.concat([Buffer.from(`${JSON.stringify([type, key, rest])}\n`), raw]))
    : fingerprintBytes(raw)
}

function decodeText(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

function withIdentities(prepared: Prepared, value: unknown, consumers: readonly ConsumerDeclaration[]): Prepared {
  let ids: Record<string, string> | undefined
  let unfit: Map<string, string> | undefined
  for (const consumer of consumers) {
    const { identity } = consumer.options
    if (!identity || !consumer.handlerOf(prepared.type)) continue
    const key = businessKey(identity, viewOf(prepared, value))
    if ('problem' in key)
      (unfit ??= new Map()).set(consumer.name, `identity of consumer ${consumer.name} ${key.problem}`)
    else ids = { ...ids, [consumer.name]: `${escapeType(prepared.type)}:${key.text}` }
  }
  return ids || unfit ? { ...prepared, ids, unfit } : prepared
}

function businessKey(identity: (message: never) => string, message: Message): { text: string } | { problem: string } {
  try {
    const text: unknown = identity(message as never)
    const problem = nameProblem(text)
    return problem ? { problem } : { text: text as string }
  } catch (error) {
    return { problem: `threw: ${toFailure(error).message.slice(0, 500)}` }
  }
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
