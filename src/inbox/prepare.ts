/** The first step: what arrives becomes an envelope that can be stored, or a refusal with a reason. */
import { inspect } from 'node:util'
import { codecProblem, vanishingProblem } from '../brokers/codec.js'
import { isStandIn } from '../brokers/stand-in.js'
import { unmappedProblem } from '../brokers/unmapped.js'
import { OnceboxError } from '../errors.js'
import { isUnchecked, type Incoming, type QuarantineReason } from '../message.js'
import { isPromise } from '../promises.js'
import type { Origin, Runtime } from '../runtime.js'
import type { Headers } from '../telemetry/headers.js'
import {
  dataOf,
  decodeBody,
  fingerprintBytes,
  isTooDeep,
  validate,
  warnOfEmpty,
  type Checked,
  type Unread,
} from '../body.js'
import { chosenHash, type Choose } from './compare.js'
import type { ConsumerDeclaration } from './consumer.js'
import { readEnvelope, readStray, storable, type Envelope } from './envelope.js'
import { withIdentities } from './identity.js'

/** An incoming message, checked and decoded, in the form that the statements take. */
export interface Prepared extends Unread {
  readonly incoming: Incoming
  /** What its source compares. */
  readonly choose: Choose | undefined
  readonly id: string
  readonly source: string
  readonly type: string
  readonly key: string | undefined
  /** The lane of its key, where that is not the key itself. */
  readonly lane: string | undefined
  /** What has no column of its own, as JSON text, or null if there is nothing. */
  readonly envelope: string | null
  readonly time: string | undefined
  /** Business keys by consumer, where a consumer has `identity`. */
  readonly ids: Readonly<Record<string, string>> | undefined
  /** Consumers whose `identity` gave no key, and why: they cannot take it. */
  readonly unfit: ReadonlyMap<string, string> | undefined
  /** The source that brought it; undefined if it was handed in. */
  readonly origin: Origin | undefined
  /** Since when it has waited in quarantine, if it leaves it by itself. */
  readonly heldSince?: string
  /** Found out by who has judged it: the copy on record says the same in other words. */
  reworded?: boolean
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
  /** The same without anything of the message, for logs, if its envelope is to blame. */
  readonly why?: string
  /** The fields that its schema refused, if it did. */
  readonly fields?: readonly string[] | undefined
  readonly body: string | undefined
  readonly bytes: Uint8Array | undefined
  /** Tells it from others that are kept under its id. */
  readonly hash: string
  /** By which copies of it are told once it is released, as for `Prepared`. Undefined: by all of its data. */
  readonly compared: string | null | undefined
  readonly envelope: string | null
  readonly origin: Origin | undefined
}

export interface PrepareOptions {
  readonly consumers: readonly ConsumerDeclaration[]
  /** What came over a link, and what a person releases, is not held to the size limit again. */
  readonly anySize?: boolean
  readonly fingerprint?: Choose | undefined
  /** What is no message at all is refused. Otherwise it throws: the calling code can be mended, what a broker delivers cannot. */
  readonly bySource?: boolean
  /** Not held to its schema: it carries no data. */
  readonly unchecked?: boolean
  /** The source that brings it. */
  readonly origin?: Origin | undefined
  /** The trace that it arrives in: that of a message that came with none. */
  readonly trace?: Headers | undefined
  /** The lane that it was given when it came: it leaves the quarantine for the same. */
  readonly lane?: string | undefined
}

/** Answers at once unless a schema takes its time: thousands arrive together, and a promise for each would show. */
export function prepare(
  runtime: Runtime,
  incoming: Incoming,
  options: PrepareOptions,
): Prepared | Refused | Promise<Prepared | Refused> {
  if (typeof incoming !== 'object' || incoming === null || Array.isArray(incoming) || isPromise(incoming)) {
    return refuseThing(incoming, options)
  }
  const envelope = readEnvelope(incoming, options)
  const misplaced = readStray(runtime, incoming)
  const body = misplaced ? unreadable(incoming, misplaced) : readBody(incoming)
  if (body.mistake && !options.bySource) throw body.mistake
  if (body.raw === '{}') warnOfEmpty(runtime.warnOnce, envelope.type, incoming.data)
  const refuse = (reason: QuarantineReason, detail: string): Refused =>
    refusal(incoming, envelope, body, {
      reason,
      detail,
      compared: comparedBy(incoming, options),
      origin: options.origin,
    })

  // Its type is not known yet, so nothing can be judged by it. It is never released as it is.
  const unmapped = unmappedProblem(incoming)
  if (unmapped !== undefined) return refuse('unmapped', unmapped)
  // Before all else: what is refused for another reason would be released with the rest once that reason is gone.
  if (envelope.type !== '' && options.origin?.types?.has(envelope.type) === false) {
    const unread = isStandIn(incoming) ? decode(body) : undefined
    if (unread && 'problem' in unread) return refuse('undecodable', unread.problem)
    return refuse('not-allowed', `its source, ${options.origin.name}, may not send ${envelope.type}`)
  }
  const size = typeof body.raw === 'string' ? Buffer.byteLength(body.raw) : body.raw.byteLength
  if (size > runtime.maxBytes && !options.anySize) {
    return refuse('too-large', `the body has ${size} bytes, the limit (maxBytes) is ${runtime.maxBytes}`)
  }
  const { idProblem, problem } = envelope
  if (idProblem) return { ...refuse('no-id', idProblem.detail), why: idProblem.why }
  if (problem) return { ...refuse('invalid', problem.detail), why: problem.why }
  if (misplaced) return refuse('invalid', misplaced)
  const read = decode(body)
  if ('problem' in read) return refuse('undecodable', read.problem)
  if (isTooDeep(read)) return refuse('undecodable', 'the data is nested too deep')

  const prepared = {
    incoming,
    choose: options.fingerprint,
    id: envelope.id!,
    source: envelope.source,
    type: envelope.type,
    key: envelope.key,
    lane: envelope.lane,
    body: read.body,
    data: read.data,
    hash: comparedBy(incoming, options),
    envelope: envelope.rest,
    time: envelope.time,
    ids: undefined,
    unfit: undefined,
    origin: options.origin,
  }
  const schema = options.unchecked ? undefined : runtime.schemaOf(envelope.type)
  if (isUnchecked(schema)) return withIdentities(prepared, () => dataOf(prepared), options.consumers)
  const data = dataOf(prepared)
  const parsed = validate(schema, data)
  const finish = (checked: Checked): Prepared | Refused =>
    checked.problem === undefined
      ? withIdentities({ ...prepared, data }, () => checked.data, options.consumers)
      : { ...refuse('invalid', checked.problem), fields: checked.fields }
  return parsed instanceof Promise ? parsed.then(finish) : finish(parsed)
}

interface Body {
  readonly raw: string | Uint8Array
  /** It is neither bytes nor what JSON can hold. `raw` shows it then, as well as it can be shown. */
  readonly mistake?: OnceboxError
  /** It cannot be read. */
  readonly problem?: string | undefined
  /** We have written it: there is no need to read it. */
  readonly isJson?: true
}

function decode({ raw, problem, isJson }: Body): Pick<Unread, 'body' | 'data'> | { readonly problem: string } {
  if (problem !== undefined) return { problem }
  if (isJson) return { body: raw as string, data: undefined }
  const decoded = decodeBody(raw)
  return 'problem' in decoded ? decoded : { body: decoded.text, data: decoded.data }
}

function readBody(incoming: Incoming): Body {
  if (incoming.body !== undefined) {
    const raw: unknown = incoming.body
    if (typeof raw === 'string') return { raw }
    if (raw instanceof Uint8Array) return { raw, problem: codecProblem(incoming) }
    return unreadable(raw, 'body must be a string or a Uint8Array; pass parsed JSON as data')
  }
  const vanishing = vanishingProblem(incoming.data)
  if (vanishing) return unreadable(incoming.data, `data of message ${String(incoming.id)} is ${vanishing}`)
  let text: string
  try {
    text = JSON.stringify(incoming.data) ?? 'null'
  } catch (error) {
    return unreadable(incoming.data, `data of message ${String(incoming.id)} cannot be written as JSON`, error)
  }
  return { raw: text, isJson: true }
}

function unreadable(value: unknown, problem: string, cause?: unknown): Body {
  const mistake = new OnceboxError('MESSAGE_INVALID', problem, cause === undefined ? undefined : { cause })
  return { raw: show(value), mistake, problem }
}

function refuseThing(thing: unknown, options: PrepareOptions): Refused {
  const got = isPromise(thing) ? 'a promise; await it' : Array.isArray(thing) ? 'an array' : String(thing)
  const problem = `a message must be an object { id, type, data }; got ${got}`
  if (!options.bySource) throw new OnceboxError('MESSAGE_INVALID', problem)
  const empty: Incoming = { id: undefined, type: '', body: show(thing) }
  const why = { reason: 'invalid', detail: problem, compared: undefined, origin: options.origin } as const
  return refusal(empty, readEnvelope(empty, options), readBody(empty), why)
}

/** For people: there are no bytes to keep. */
function show(value: unknown): string {
  try {
    return inspect(value, { depth: 20, maxArrayLength: 1_000, maxStringLength: 100_000, customInspect: false })
  } catch {
    return 'something that cannot be shown'
  }
}

/** Undefined, so that all of the data counts: its source has not chosen. */
function comparedBy(incoming: Incoming, { fingerprint }: PrepareOptions): string | null | undefined {
  return fingerprint && chosenHash(incoming, fingerprint)
}

function refusal(
  incoming: Incoming,
  envelope: Envelope,
  body: Body,
  why: Pick<Refused, 'reason' | 'detail' | 'compared' | 'origin'>,
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

/** Without an id, or a name that is usable, all that came with it tells it from others: equal ones are kept once. */
function hashOf({ id, type, key, rest, unusable }: Envelope, raw: Uint8Array): string {
  if (id !== undefined && unusable.length === 0) return fingerprintBytes(raw)
  const odd = unusable.map(([name, value]) => [name, typeof value === 'string' ? value : show(value)])
  return fingerprintBytes(Buffer.concat([Buffer.from(`${JSON.stringify([type, key, rest, ...odd])}\n`), raw]))
}

function decodeText(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

/** About as many bytes as it takes in a statement. */
export function sizeOf({ body, envelope }: Prepared): number {
  return body.length + (envelope?.length ?? 0)
}
