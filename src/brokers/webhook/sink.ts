/**
 * A webhook as a sink: each event is one signed POST, a CloudEvent in JSON, under Standard Webhooks.
 *
 * Events of one key go one after the other, and none after one that failed; the others side by side. An event may
 * arrive more than once, always under the same `webhook-id`.
 */
import { createHash } from 'node:crypto'
import { sleep } from '../../backoff.js'
import { OnceboxError } from '../../errors.js'
import type { Message } from '../../message.js'
import { createClosable, down, later, sendInLanes, type Answer } from '../send.js'
import type { PublishLimits, Sink } from '../sink.js'
import { readBody } from '../../http/body.js'
import { writeEvent } from './event.js'
import type { ResolvedSink } from './options.js'
import { signStandard } from './verify.js'

/** What a sink answers for an event that was refused. */
export interface WebhookError extends Error {
  /** The HTTP status; undefined if there was no answer. */
  readonly status?: number
  /** What the answer asked for in Retry-After, an hour at most. */
  readonly retryAfterMs?: number
}

/** Answers longer than this are not read to the end, which costs the connection. */
const MAX_ANSWER_BYTES = 65_536
/** How long `close` waits for requests before it aborts them. */
const CLOSE_MS = 5_000
/** About this event, and worth another try. */
const NOT_NOW = [409, 423, 424]
/**
 * About the endpoint, or about how it was set up: a wrong secret or path, an endpoint that was taken away. If it takes
 * other events, it is about this one after all. 5xx, redirects and no answer at all are of this kind too.
 */
const ENDPOINT = [401, 402, 403, 404, 405, 407, 408, 410, 421, 425, 429]
/** With these an endpoint says when to come back. 409: somebody is at it. */
const COME_BACK = [409, 429, 503]
const TOO_MANY = 429
const LEAST_AFTER_MS = 1_000
const MOST_AFTER_MS = 3_600_000
/** Nobody was reached, so it is not the event's fault. */
const UNREACHABLE = [
  ...['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'EADDRNOTAVAIL'],
  'UND_ERR_CONNECT_TIMEOUT',
]

export function createSink(options: ResolvedSink): Sink & { readonly name?: string } {
  const requests = new Set<AbortController>()
  let closing = false

  const publish = (batch: readonly Message[], limits?: PublishLimits): Promise<Answer[]> => {
    let reached = false
    const send = async (message: Message): Promise<Answer> => {
      if (closing) throw new OnceboxError('STOPPED', 'the sink is being closed')
      const answer = await post(options, message, { requests, signal: limits?.signal })
      if (answer === undefined || statusOf(answer.error) !== undefined) reached = true
      else if (!reached && isUnreachable(answer.error)) throw answer.error
      return answer
    }
    return sendInLanes(batch, options.concurrency, send, limits)
  }

  return createClosable(options.name, publish, async (finished) => {
    closing = true
    await sleep(CLOSE_MS, finished)
    for (const request of requests) request.abort(new OnceboxError('STOPPED', 'the sink was closed'))
    await finished
    // A box that is started again publishes again.
    closing = false
  })
}

/** What ends requests before their time: all of them when the sink is closed, those of a batch by its signal. */
interface Ends {
  readonly requests: Set<AbortController>
  readonly signal: AbortSignal | undefined
}

async function post(options: ResolvedSink, message: Message, { requests, signal }: Ends): Promise<Answer> {
  const { url, keys, timeoutMs, headers } = options
  const { headers: own, body } = writeEvent(message)
  const id = webhookId(message)
  const timestamp = Math.floor(options.now() / 1_000)
  const abort = new AbortController()
  const late = (): void => abort.abort(webhookError(url, `did not answer in ${timeoutMs} ms`))
  const timer = setTimeout(late, timeoutMs)
  const end = (): void => abort.abort(signal?.reason)
  if (signal?.aborted) end()
  signal?.addEventListener('abort', end)
  requests.add(abort)
  try {
    const response = await options.fetch(url.href, {
      method: 'POST',
      headers: {
        'user-agent': 'oncebox',
        ...own,
        ...headers,
        'webhook-id': id,
        'webhook-timestamp': String(timestamp),
        'webhook-signature': signStandard(id, timestamp, body, keys),
      },
      body,
      redirect: 'manual',
      signal: abort.signal,
    })
    // Read, so that the connection can be used again.
    await readBody(response.body as ReadableStream<Uint8Array> | null, MAX_ANSWER_BYTES)
    return judge(url, response, options.now())
  } catch (error) {
    return down(abort.signal.aborted ? abort.signal.reason : noAnswer(url, error))
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', end)
    requests.delete(abort)
  }
}

/**
 * One id for all attempts, and no dot in it. A UUID is unique anywhere, and kept to be recognised; any other id is
 * unique within its source only, so both go into a digest.
 */
function webhookId({ id, source }: Message): string {
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)) return id
  const digest = createHash('sha256')
    .update(JSON.stringify([source, id]))
    .digest('base64url')
  return `msg_${digest.slice(0, 32)}`
}

function judge(url: URL, { status, ok, headers }: Response, nowMs: number): Answer {
  if (ok) return undefined
  const retryAfterMs = parseRetryAfter(headers.get('retry-after'), nowMs)
  const error = webhookError(url, `answered ${status}`, {
    code: `HTTP_${status}`,
    status,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  })
  const isOfEndpoint = status < 400 || status >= 500 || ENDPOINT.includes(status)
  const afterMs = COME_BACK.includes(status) ? retryAfterMs : undefined
  if (afterMs !== undefined || status === TOO_MANY) {
    return { ...later(error, Math.max(LEAST_AFTER_MS, afterMs ?? 0)), down: isOfEndpoint }
  }
  return isOfEndpoint ? down(error) : { error, retry: NOT_NOW.includes(status) }
}

/** Seconds, or a date as HTTP writes it; anything else is no time. An endpoint may not ask for more than an hour. */
function parseRetryAfter(header: string | null, nowMs: number): number | undefined {
  if (header === null) return undefined
  const isDate = /^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/.test(header)
  const ms = /^\d+$/.test(header) ? Number(header) * 1_000 : isDate ? Date.parse(header) - nowMs : NaN
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(0, ms), MOST_AFTER_MS)
}

function noAnswer(url: URL, error: unknown): WebhookError {
  const { cause } = error as { cause?: { code?: unknown } }
  const code = cause?.code
  return webhookError(url, `could not be reached`, { cause: cause ?? error, ...(typeof code === 'string' && { code }) })
}

/** Names the host alone: a path may hold a token. */
function webhookError(
  url: URL,
  what: string,
  rest: { cause?: unknown; code?: string; status?: number; retryAfterMs?: number } = {},
): WebhookError {
  const { cause, ...fields } = rest
  const error = cause === undefined ? new Error(`${url.host} ${what}`) : new Error(`${url.host} ${what}`, { cause })
  return Object.assign(error, { name: 'WebhookError' }, fields)
}

function statusOf(error: unknown): number | undefined {
  return (error as WebhookError).status
}

function isUnreachable(error: unknown): boolean {
  return UNREACHABLE.includes((error as { code?: string }).code ?? '')
}
