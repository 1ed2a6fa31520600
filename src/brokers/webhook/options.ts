/** The options of a webhook, source or sink: type, default and check in one place, resolved once. */
import { checkFunction, checkInteger, checkKnown, checkOneOf, nameProblem } from '../../check-options.js'
import { OnceboxError } from '../../errors.js'
import type { Incoming } from '../../message.js'

export type Scheme = 'standard' | 'stripe' | 'github'

/** A request whose signature was right. */
export interface VerifiedRequest {
  /**
   * By name in lower case. Of these a signature covers webhook-id and webhook-timestamp (standard) or nothing
   * (stripe, github): do not trust the rest more than you trust the network.
   */
  readonly headers: Readonly<Record<string, string>>
  /** The signed bytes. */
  readonly body: Uint8Array
  /** The body as JSON. What is not JSON is quarantined, and comes to neither `type` nor `map`. */
  readonly data: unknown
  /** What the box would get. */
  readonly message: Incoming
}

export interface WebhookSourceOptions {
  /** Who signs: Standard Webhooks, Stripe or GitHub. */
  scheme: Scheme
  /**
   * The signing secret, as its sender shows it; several while it is being rotated. Standard: base64 of at least 24 bytes;
   * others: at least 16 characters.
   */
  secret: string | readonly string[]
  /** How far a signed timestamp may be off, in the past and in the future. GitHub signs none. Default: 300 000. */
  toleranceMs?: number
  /** Larger bodies are answered 413, unread. Default: 1 MiB, as for the box. */
  maxBytes?: number
  /** How long a body may take to arrive; then it is answered 408. Default: 10 000. */
  bodyTimeoutMs?: number
  /**
   * What all bodies that are being read may take together, before any signature was checked. Where it is reached, the one
   * that has held the most for the longest is answered 503. Default: 64 MiB, or four times `maxBytes` if that is more; at
   * least twice `maxBytes`.
   */
  maxBufferedBytes?: number
  /**
   * The producer. Ids are unique within it. `'event'` leaves it to the sender, who may then speak for any producer: the
   * source and the id of a CloudEvent are its own. Default: the scheme.
   */
  source?: string
  /** The type of the message, or how to find it. Default: `type` of the body; GitHub: the header X-GitHub-Event. */
  type?: string | ((request: VerifiedRequest) => string | undefined)
  /** Changes what the box gets: `({ message }) => ({ ...message, key: … })`. */
  map?: (request: VerifiedRequest) => Incoming
  /**
   * Told of what the sender does not see: the database is away, a handler failed, `type` or `map` threw. Default: a
   * process warning; none for a handler, which the log of the box tells of.
   */
  onError?: (error: unknown) => void
  /** Milliseconds since 1970. Default: `Date.now`. */
  now?: () => number
  url?: undefined
}

export interface WebhookSinkOptions {
  /** Where events are posted to. Redirects are not followed. */
  url: string | URL
  /** Default: 'standard', the only one for sending. */
  scheme?: 'standard'
  /** The signing secret, base64 of at least 24 bytes, with or without `whsec_`. While it is being rotated, several: all of them sign. */
  secret: string | readonly string[]
  /** For one request, its answer included. Default: 15 000. */
  timeoutMs?: number
  /** Requests at a time. Events of one key go one after the other. Default: 8. */
  concurrency?: number
  /** Sent with every request, for gateways that ask for a token. */
  headers?: Readonly<Record<string, string>>
  /** What the sink is called in the outbox. Default: `webhook:` and host and path of the URL. */
  name?: string
  /** For a proxy or client certificates. Default: the global `fetch`. */
  fetch?: (url: string, init: RequestInit) => Promise<Response>
  /** Milliseconds since 1970. Default: `Date.now`. */
  now?: () => number
}

export interface ResolvedSource {
  readonly scheme: Scheme
  readonly keys: readonly Buffer[]
  readonly toleranceMs: number
  readonly maxBytes: number
  readonly bodyTimeoutMs: number
  readonly maxBufferedBytes: number
  /** Undefined: a CloudEvent's own. */
  readonly source: string | undefined
  /** What the source is called. */
  readonly name: string
  readonly type: WebhookSourceOptions['type']
  readonly map: WebhookSourceOptions['map']
  readonly onError: (error: unknown) => void
  /** Told of handlers that failed, which the log of the box has told of already. */
  readonly onFailed: (error: unknown) => void
  readonly now: () => number
}

export interface ResolvedSink {
  readonly url: URL
  readonly keys: readonly Buffer[]
  readonly timeoutMs: number
  readonly concurrency: number
  readonly headers: Readonly<Record<string, string>>
  readonly name: string
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>
  readonly now: () => number
}

const DAY = 86_400_000
/** As Standard Webhooks asks for. */
const LEAST_BYTES = 24
const LEAST_CHARACTERS = 16
const MIB = 1_048_576
const SOURCE_OPTIONS = [
  ...['scheme', 'secret', 'toleranceMs', 'maxBytes', 'bodyTimeoutMs', 'maxBufferedBytes'],
  ...['source', 'type', 'map', 'onError', 'now', 'url'],
]
const SINK_OPTIONS = ['url', 'scheme', 'secret', 'timeoutMs', 'concurrency', 'headers', 'name', 'fetch', 'now']

export function resolveSource(given: WebhookSourceOptions): ResolvedSource {
  if ('types' in given) {
    throw invalid(
      `which types it may send is said where it is attached: box.from(webhook(…), { types: ['order.paid'] })`,
    )
  }
  checkKnown('webhook', given, SOURCE_OPTIONS)
  const scheme = checkOneOf('webhook: scheme', given.scheme, ['standard', 'stripe', 'github'])
  if (scheme === 'github' && given.toleranceMs !== undefined) {
    throw invalid('toleranceMs does nothing for github, which signs no timestamp; leave it out')
  }
  if (given.source !== undefined) checkName('source', given.source)
  if (typeof given.type === 'string') checkName('type', given.type)
  else checkFunction('webhook: type', given.type)
  const maxBytes = checkInteger('webhook: maxBytes', given.maxBytes ?? 1_048_576, 1, 256 * MIB)
  const buffered = given.maxBufferedBytes ?? Math.max(64 * MIB, 4 * maxBytes)
  return {
    scheme,
    keys: keysOf(scheme, given.secret),
    toleranceMs: checkInteger('webhook: toleranceMs', given.toleranceMs ?? 300_000, 0, DAY),
    maxBytes,
    bodyTimeoutMs: checkInteger('webhook: bodyTimeoutMs', given.bodyTimeoutMs ?? 10_000, 1, DAY),
    maxBufferedBytes: checkInteger('webhook: maxBufferedBytes', buffered, 2 * maxBytes),
    source: given.source === 'event' ? undefined : (given.source ?? scheme),
    name: `webhook:${given.source ?? scheme}`,
    type: given.type,
    map: checkFunction('webhook: map', given.map),
    onError: checkFunction('webhook: onError', given.onError) ?? warn,
    onFailed: given.onError ?? (() => undefined),
    now: checkFunction('webhook: now', given.now) ?? Date.now,
  }
}

export function resolveSink(given: WebhookSinkOptions): ResolvedSink {
  checkKnown('webhook with a url, which is a sink,', given, SINK_OPTIONS)
  checkOneOf('webhook: scheme of a sink', given.scheme ?? 'standard', ['standard'])
  if (given.name !== undefined) checkName('name', given.name)
  const url = urlOf(given.url)
  return {
    url,
    keys: keysOf('standard', given.secret),
    timeoutMs: checkInteger('webhook: timeoutMs', given.timeoutMs ?? 15_000, 1, DAY),
    concurrency: checkInteger('webhook: concurrency', given.concurrency ?? 8, 1, 1_000),
    headers: headersOf(given.headers),
    // Without the query, which may hold a secret.
    name: given.name ?? `webhook:${url.host}${url.pathname}`.slice(0, 200),
    fetch: checkFunction('webhook: fetch', given.fetch) ?? ((url, init) => fetch(url, init)),
    now: checkFunction('webhook: now', given.now) ?? Date.now,
  }
}

/** The keys of HMAC. Errors never show a secret. */
function keysOf(scheme: Scheme, secret: string | readonly string[]): Buffer[] {
  const secrets: readonly unknown[] = Array.isArray(secret) ? secret : [secret]
  if (secrets.length === 0) throw invalid('secret is an empty list')
  return secrets.map((one) => {
    if (typeof one !== 'string' || one === '') {
      throw invalid(`secret must be text, and not empty; got ${one === '' ? 'an empty string' : typeof one}`)
    }
    checkSecret(one)
    if (scheme === 'standard') return standardKey(one)
    if (one.length < LEAST_CHARACTERS) {
      throw invalid(`secret must have at least ${LEAST_CHARACTERS} characters; this one has ${one.length}`)
    }
    return Buffer.from(one)
  })
}

/** What environment variables and files make of a secret that is not there, or was copied with too much around it. */
function checkSecret(secret: string): void {
  if (/^\s|\s$/.test(secret)) throw invalid('secret has white space around it; trim it where it is read')
  if (/^(undefined|null)$/i.test(secret)) throw invalid('secret is the word for nothing; is its variable set?')
}

function standardKey(secret: string): Buffer {
  if (/^wh[ps]k_/.test(secret)) {
    throw invalid(
      'secret is an asymmetric key (v1a), which is not supported; ask the sender for a symmetric one, whsec_…',
    )
  }
  const base64 = secret.replace(/^whsec_/, '')
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(base64) || base64.replace(/=+$/, '').length % 4 === 1) {
    throw invalid('secret of the scheme standard must be base64, with or without whsec_ before it')
  }
  const key = Buffer.from(base64, 'base64')
  if (key.length < LEAST_BYTES) {
    throw invalid(`secret of the scheme standard must have at least ${LEAST_BYTES} bytes; this one has ${key.length}`)
  }
  return key
}

function urlOf(given: string | URL): URL {
  let url: URL
  try {
    url = new URL(given)
  } catch {
    // A path may hold a token, so it is not shown.
    throw invalid('url is not a URL')
  }
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw invalid('url must begin with https: or http:')
  if (url.username !== '' || url.password !== '') {
    throw invalid('url must not contain a user or password; use headers: { authorization: … }')
  }
  return url
}

function headersOf(given: Readonly<Record<string, string>> = {}): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(given)) {
    const lower = name.toLowerCase()
    if (lower.startsWith('webhook-') || lower === 'content-length')
      throw invalid(`headers: ${lower} is set by the sink`)
    try {
      new Headers([[lower, value]])
    } catch {
      throw invalid(`headers: ${JSON.stringify(name)} is not a header, or its value cannot be one`)
    }
    headers[lower] = value
  }
  return headers
}

function checkName(option: string, value: unknown): void {
  const problem = nameProblem(value)
  if (problem) throw invalid(`${option} ${problem}`)
}

function invalid(what: string): OnceboxError {
  return new OnceboxError('OPTION_INVALID', `webhook: ${what}`)
}

/** Names and codes only: messages of a database may quote what it was given. Pass `onError` to see more. */
function warn(error: unknown): void {
  const { name, code, message } = error as { name?: unknown; code?: unknown; message?: unknown }
  const own = error instanceof OnceboxError ? `: ${String(message)}` : ''
  const what = [name, code].filter((one) => typeof one === 'string').join(' ') || typeof error
  process.emitWarning(`a webhook could not be delivered to the box (${what})${own}`, { code: 'ONCEBOX_WEBHOOK' })
}
