/** Requests and messages: what the box gets of a verified request, and what is posted of an event. */
import { createHash } from 'node:crypto'
import { OnceboxError } from '../../errors.js'
import type { Incoming, Message } from '../../message.js'
import { readStructured, writeStructured, type Envelope } from '../cloudevents.js'
import { isThing, readMapped } from '../event.js'
import { guarded } from '../read.js'
import { withStandIn } from '../stand-in.js'
import { threw, unmapped } from '../unmapped.js'
import type { ResolvedSource, Scheme, VerifiedRequest } from './options.js'

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * What the box gets. What is not JSON is for the box to keep: `type` and `map` never see it. What they choke on is unmapped,
 * which is for the sender to keep, and `report` is told why.
 */
export const toMessage = guarded(
  ({ scheme, source }: ResolvedSource, _request: Request, { body }: Signed, _report: (error: unknown) => void) => ({
    body,
    source: source ?? scheme,
    type: scheme,
  }),
  readRequest,
)

interface Signed {
  readonly body: Uint8Array
  readonly id: string | undefined
  readonly time?: Date | undefined
}

function readRequest(
  options: ResolvedSource,
  request: Request,
  signed: Signed,
  report: (error: unknown) => void,
): Incoming {
  const { body } = signed
  const headers: Record<string, string> = Object.fromEntries(request.headers)
  const data = parse(body)
  const message = readMessage(options, { headers, data, ...signed })
  // Without a time of its own it is as old as its signature: so a copy is told from something new.
  if (message.time === undefined && signed.time !== undefined) message.time = signed.time
  if (typeof options.type === 'string') message.type = options.type
  if (data === undefined) {
    const isNamed = typeof options.type === 'string' || options.scheme === 'github'
    return isNamed ? message : withStandIn(message)
  }
  const verified: VerifiedRequest = { headers, body, data, message }
  let at = 'type'
  try {
    const type: unknown = typeof options.type === 'function' ? options.type(verified) : undefined
    if (isThing(type)) throw new OnceboxError('MESSAGE_INVALID', 'type returned an object or a function')
    if (type !== undefined) message.type = type as string
    at = 'map'
    if (!options.map) return message
    const mapped = readMapped(options.map(verified), message)
    if (mapped.problem === undefined) return mapped.message
    report(new OnceboxError('MESSAGE_INVALID', mapped.problem))
    return unmapped(message, mapped.problem)
  } catch (error) {
    report(error)
    return unmapped(message, threw(at, error))
  }
}

/** In structured mode, for a signature covers the body alone. */
export function writeEvent(message: Message): Envelope {
  return writeStructured(message)
}

interface Parts {
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  readonly data: unknown
  readonly id: string | undefined
}

/**
 * Only what is signed decides who a message is: a replay under another content type must be the same message. So a
 * CloudEvent is known by its body, and who sent it is for the receiver to say: the sender could name anybody.
 */
function readMessage({ scheme, source }: ResolvedSource, { headers, body, data, id }: Parts): Incoming {
  const message: Incoming = { id, source: source ?? scheme, type: scheme, body }
  switch (scheme) {
    case 'standard': {
      if (isCloudEvent(data)) {
        const event = readStructured(body)
        // Under one name for many producers their ids may collide; webhook-id does not.
        if (event && source === undefined) return event
        if (event) return { ...event, source: source!, id: event.id === undefined ? undefined : id }
      }
      const { type, timestamp } = fieldsOf(data)
      if (typeof type === 'string' && type !== '') message.type = type
      if (isDate(timestamp)) message.time = timestamp
      return message
    }
    case 'stripe': {
      const event = fieldsOf(data)
      message.id = data === undefined ? idOfBytes(body) : typeof event['id'] === 'string' ? event['id'] : undefined
      if (typeof event['type'] === 'string' && event['type'] !== '') message.type = event['type']
      const time = stripeTime(event['created'])
      if (time) message.time = time
      return message
    }
    case 'github':
      message.type = headers['x-github-event'] ?? scheme
      return message
  }
}

/** Stripe counts in `pending_webhooks` how many deliveries are still to come, so copies of one event differ in it. */
export const FINGERPRINTS: Partial<Record<Scheme, (message: Incoming) => unknown>> = {
  stripe(message) {
    const data = message.body === undefined ? message.data : parse(Buffer.from(message.body))
    if (!isObject(data)) return data
    const { pending_webhooks: _, ...rest } = data
    return rest
  },
}

/** Stripe has no id outside of the body. What cannot be read is kept, and kept once, under its own. */
function idOfBytes(body: Uint8Array): string {
  return `sha256-${createHash('sha256').update(body).digest('hex')}`
}

/** Seconds, or in newer events a date. */
function stripeTime(created: unknown): Date | undefined {
  const time = new Date(typeof created === 'number' ? created * 1_000 : isDate(created) ? created : NaN)
  return Number.isNaN(time.getTime()) ? undefined : time
}

const ISO_8601 = /^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d(:?\d\d)?)?)?$/i

/** V8 finds a date in any text that has a number. By a wrong time a message would pass for one that is too old. */
function isDate(value: unknown): value is string {
  return typeof value === 'string' && ISO_8601.test(value) && !Number.isNaN(Date.parse(value))
}

function isCloudEvent(data: unknown): boolean {
  const { specversion, id, source, type } = fieldsOf(data)
  return specversion === '1.0' && [id, source, type].every((one) => typeof one === 'string' && one !== '')
}

function fieldsOf(data: unknown): Readonly<Record<string, unknown>> {
  return isObject(data) ? data : {}
}

function isObject(data: unknown): data is Record<string, unknown> {
  return typeof data === 'object' && data !== null && !Array.isArray(data)
}

function parse(body: Uint8Array): unknown {
  try {
    return JSON.parse(utf8.decode(body)) as unknown
  } catch {
    return undefined
  }
}
