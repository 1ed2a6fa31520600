/** Send: an event becomes a row of the outbox, in the caller's transaction. */
import { vanishingProblem } from '../brokers/codec.js'
import { checkKnown, nameProblem, typeUnknown } from '../check-options.js'
import { OnceboxError } from '../errors.js'
import { inParts } from '../carried.js'
import { isOnCalendar } from '../figures.js'
import type { SendOptions } from '../handler.js'
import { fingerprint, validate, warnOfEmpty } from '../body.js'
import type { Message } from '../message.js'
import { SEND, type SentRow } from '../postgres/sql/outbox.js'
import type { Runtime } from '../runtime.js'
import { listener } from '../tap.js'
import { handedOn, type Headers } from '../telemetry/headers.js'
import { eventId } from './event-id.js'
import { shardOf } from './shard.js'

/** An event, checked, as the statement takes it. */
export interface Outgoing {
  readonly id: string
  readonly type: string
  readonly key: string | undefined
  readonly body: string
  readonly hash: string
  readonly envelope: string
  readonly deliverAt: string | undefined
}

/** One event, in the caller's transaction. */
export function send(
  runtime: Runtime,
  event: Pick<Sent, 'type' | 'data'>,
  options: SendOptions | undefined,
  tx: unknown,
): Promise<{ id: string }> {
  const write = runtime.traces.send(event.type, async () => {
    const outgoing = await prepareSend(runtime, event, options)
    await writeOutgoing(runtime, [outgoing], tx)
    runtime.metrics.wrote([outgoing])
    return { id: outgoing.id }
  })
  return write()
}

/** Many of them. */
export function sendMany(runtime: Runtime, events: readonly Sent[], tx: unknown): Promise<{ id: string }[]> {
  const write = runtime.traces.send('outbox', async () => {
    const outgoing = await prepareMany(runtime, events)
    await writeOutgoing(runtime, outgoing, tx)
    runtime.metrics.wrote(outgoing)
    return outgoing.map(({ id }) => ({ id }))
  })
  return write()
}

export async function prepareSend(
  runtime: Runtime,
  { type, data }: Pick<Sent, 'type' | 'data'>,
  options: SendOptions = {},
  cause?: Message,
): Promise<Outgoing> {
  const odd = nameProblem(type)
  if (odd) throw new OnceboxError('MESSAGE_INVALID', `send: the type ${odd}`)
  const where = `send of ${type}`
  checkKnown(where, options, SEND_OPTIONS)
  const schema = runtime.schemaOf(type)
  if (schema === undefined && runtime.types.length > 0) throw typeUnknown('send', type, runtime.types)
  const id = options.id ?? eventId()
  for (const [name, value] of [
    ['id', id],
    ['key', options.key],
    ['subject', options.subject],
  ] as const) {
    const problem = value === undefined ? undefined : nameProblem(value)
    if (problem) throw new OnceboxError('MESSAGE_INVALID', `${where}: ${name} ${problem}`)
  }
  const later = deliverAt(where, options.deliverAt)
  const body = toJson(where, data)
  if (body === '{}') warnOfEmpty(runtime.warnOnce, type, data)
  const size = Buffer.byteLength(body)
  if (size > runtime.maxBytes) {
    const advice = 'raise maxBytes, or send a reference to the data'
    throw new OnceboxError('MESSAGE_TOO_LARGE', `${where}: ${size} bytes, the limit is ${runtime.maxBytes}; ${advice}`)
  }
  const sent = JSON.parse(body) as unknown
  // The receiver compares the hash, and would refuse data that cannot be walked.
  const hash = fingerprint(sent)
  if (hash === undefined) throw new OnceboxError('MESSAGE_INVALID', `${where}: the data is nested too deep`)
  const { problem } = await validate(schema, sent)
  if (problem !== undefined) throw new OnceboxError('MESSAGE_INVALID', `${where}: ${problem}`)
  return {
    id,
    type,
    key: options.key,
    body,
    hash,
    envelope: JSON.stringify({
      // First, where MOVE finds it. Else its time is when it was sent, and by then its receiver would find it too old.
      time: later !== undefined && options.deliverAt!.getTime() > Date.now() ? later : undefined,
      subject: options.subject,
      headers: headersOf(where, options, cause, runtime.traces.headers),
    }),
    deliverAt: later,
  }
}

const SEND_OPTIONS = ['key', 'id', 'subject', 'headers', 'deliverAt']

type Sent = SendOptions & { readonly type: string; readonly data: unknown }

async function prepareMany(runtime: Runtime, messages: readonly Sent[]): Promise<Outgoing[]> {
  if (!Array.isArray(messages) || messages.some((message) => typeof message !== 'object' || message === null)) {
    throw new OnceboxError('MESSAGE_INVALID', 'sendMany takes an array of { type, data, …options }')
  }
  const outgoing: Outgoing[] = []
  for (const { type, data, ...rest } of messages as readonly Sent[]) {
    const stray = data === undefined ? Object.keys(rest).find((name) => !SEND_OPTIONS.includes(name)) : undefined
    if (stray !== undefined) {
      const problem = `an event of type ${String(type)} has no property ${JSON.stringify(stray)}; pass it as data`
      throw new OnceboxError('MESSAGE_INVALID', `sendMany: ${problem}`)
    }
    outgoing.push(await prepareSend(runtime, { type, data }, rest))
  }
  return outgoing
}

/** Writes prepared events in the caller's transaction. The same id twice is a no-op. */
export async function writeOutgoing(runtime: Runtime, outgoing: readonly Outgoing[], tx: unknown): Promise<void> {
  if (outgoing.length === 0) return
  const sinks = runtime.outbox.sinks.map(({ name, types }) => ({ name, types }))
  const rows = new Map<string, SentRow>()
  for (const { id, type, key, body, hash, envelope, deliverAt } of outgoing) {
    if (rows.has(id)) continue
    const shard = key === undefined ? undefined : shardOf(key)
    rows.set(id, { i: id, t: type, k: key, g: shard, b: body, h: hash, e: envelope, at: deliverAt })
  }
  for (const events of inParts([...rows.values()], ({ b, e }) => b.length + e.length)) {
    await runtime.db.run(SEND, { source: runtime.source, sinks, events }, tx)
  }
  // Nobody tells us when the caller commits: the relay looks a little more often for a while.
  runtime.outbox.sent()
  const tell = listener()
  if (tell)
    for (const { id, type, body } of outgoing) tell({ what: 'sent', id, type, data: JSON.parse(body) as unknown })
}

function toJson(where: string, data: unknown): string {
  const vanishing = vanishingProblem(data)
  if (vanishing) throw new OnceboxError('MESSAGE_INVALID', `${where}: the data is ${vanishing}`)
  try {
    return JSON.stringify(data) ?? 'null'
  } catch (error) {
    throw new OnceboxError('MESSAGE_INVALID', `${where}: the data cannot be written as JSON`, { cause: error })
  }
}

/** Correlation, causation and trace context travel on with what a handler sends. */
function headersOf(
  where: string,
  options: SendOptions,
  cause: Message | undefined,
  active: Headers | undefined,
): Record<string, string> {
  const headers: Record<string, string> = active ? { ...active } : cause ? handedOn(cause.headers) : {}
  if (cause) {
    headers['correlationid'] = cause.correlationId
    headers['causationid'] = cause.id
  }
  if (options.headers && typeof options.headers !== 'object') {
    throw new OnceboxError('MESSAGE_INVALID', `${where}: headers must be an object, name → text`)
  }
  for (const [name, value] of Object.entries(options.headers ?? {})) {
    if (typeof value !== 'string' || value.includes('\0') || !value.isWellFormed() || nameProblem(name)) {
      throw new OnceboxError('MESSAGE_INVALID', `${where}: header ${JSON.stringify(name)} must be well-formed text`)
    }
    headers[name] = value
  }
  return headers
}

function deliverAt(where: string, at: Date | undefined): string | undefined {
  if (at === undefined) return undefined
  if (!isOnCalendar(at)) {
    throw new OnceboxError('MESSAGE_INVALID', `${where}: deliverAt is not a date of the years 1 to 9999`)
  }
  return at.toISOString()
}
