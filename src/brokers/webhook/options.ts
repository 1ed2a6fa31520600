/** The options of a webhook, source or sink. */
import { createSecretKey, type KeyObject } from 'node:crypto'
import { checkInteger } from '../../check-options.js'
import { DAY_MS, MIB } from '../../figures.js'
import { warning } from '../../http/report.js'
import type { Incoming } from '../../message.js'
import { callback, checked, integer, invalid, name, nameOr, oneOf, optional, resolve } from '../../options.js'

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
  toleranceMs?: number | undefined
  /** Larger bodies are answered 413, unread. Default: 1 MiB, as for the box. */
  maxBytes?: number | undefined
  /** How long a body may take to arrive; then it is answered 408. Default: 10 000. */
  bodyTimeoutMs?: number | undefined
  /**
   * What all bodies that are being read may take together, before any signature was checked. Where it is reached, the one
   * that has held the most for the longest is answered 503. Default: 64 MiB, or four times `maxBytes` if that is more; at
   * least twice `maxBytes`.
   */
  maxBufferedBytes?: number | undefined
  /**
   * The producer. Ids are unique within it. `'event'` leaves it to the sender, who may then speak for any producer: the
   * source and the id of a CloudEvent are its own. Default: the scheme.
   */
  source?: string | undefined
  /** The type of the message, or how to find it. Default: `type` of the body; GitHub: the header X-GitHub-Event. */
  type?: string | ((request: VerifiedRequest) => string | undefined) | undefined
  /** Changes what the box gets: `({ message }) => ({ ...message, key: … })`. */
  map?: ((request: VerifiedRequest) => Incoming) | undefined
  /**
   * Told of what the sender does not see: the database is away, a handler failed, `type` or `map` threw, and the sender is
   * told to try again. Default: a process warning; none for a handler, which the log of the box tells of.
   */
  onError?: ((error: unknown) => void) | undefined
  /** Milliseconds since 1970. Default: `Date.now`. */
  now?: (() => number) | undefined
  url?: undefined
}

export interface WebhookSinkOptions {
  /** Where events are posted to. Redirects are not followed. */
  url: string | URL
  /** Default: 'standard', the only one for sending. */
  scheme?: 'standard' | undefined
  /**
   * The signing secret, base64 of at least 24 bytes, with or without `whsec_`. While it is being rotated, several: all of them
   * sign.
   */
  secret: string | readonly string[]
  /** For one request, its answer included. Default: 15 000. */
  timeoutMs?: number | undefined
  /** Requests at a time. Events of one key go one after the other. Default: 8. */
  concurrency?: number | undefined
  /** Sent with every request, for gateways that ask for a token. */
  headers?: Readonly<Record<string, string>> | undefined
  /** What the sink is called in the outbox. Default: `webhook:` and host and path of the URL. */
  name?: string | undefined
  /** For a proxy or client certificates. Default: the global `fetch`. */
  fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined
  /** Milliseconds since 1970. Default: `Date.now`. */
  now?: (() => number) | undefined
}

/** As Standard Webhooks asks for. */
const LEAST_BYTES = 24
const LEAST_CHARACTERS = 16

/** Errors never show a secret. What it has to be depends on the scheme. */
const SECRET = checked((where, given: string | readonly string[]): readonly string[] => {
  const secrets: readonly unknown[] = Array.isArray(given) ? given : [given]
  if (secrets.length === 0) throw invalid(`${where} is an empty list`)
  return secrets.map((one) => {
    if (typeof one === 'string' && one !== '') return checkSecret(where, one)
    throw invalid(`${where} must be text, and not empty; got ${one === '' ? 'an empty string' : typeof one}`)
  })
})
const NOW = optional(callback<() => number>(), '`Date.now`')

export const SOURCE = {
  scheme: oneOf(['standard', 'stripe', 'github']),
  secret: SECRET,
  toleranceMs: optional(integer({ least: 0, most: DAY_MS }), '300 000'),
  maxBytes: integer({ least: 1, most: 256 * MIB, fallback: MIB }),
  bodyTimeoutMs: integer({ least: 1, most: DAY_MS, fallback: 10_000 }),
  maxBufferedBytes: optional(integer({ least: 2 }), '64 MiB, or 4 × `maxBytes` if that is more'),
  source: optional(name(), 'the scheme'),
  type: optional(nameOr<(request: VerifiedRequest) => string | undefined>(), 'as above'),
  map: optional(callback<(request: VerifiedRequest) => Incoming>()),
  onError: optional(callback<(error: unknown) => void>(), 'a process warning, without details'),
  now: NOW,
}

export const SINK = {
  url: checked(checkUrl),
  scheme: oneOf(['standard'], 'standard'),
  secret: SECRET,
  timeoutMs: integer({ least: 1, most: DAY_MS, fallback: 15_000 }),
  concurrency: integer({ least: 1, most: 1_000, fallback: 8 }),
  headers: optional(checked(checkHeaders)),
  name: optional(name(), '`webhook:` and host and path of the URL'),
  fetch: optional(callback<(url: string, init: RequestInit) => Promise<Response>>(), 'the global one'),
  now: NOW,
}

export type ResolvedSource = ReturnType<typeof resolveSource>
export type ResolvedSink = ReturnType<typeof resolveSink>

export function resolveSource({ url: _, ...given }: WebhookSourceOptions) {
  if ('types' in given) {
    throw invalid(
      `webhook: which types it may send is said where it is attached: box.from(webhook(…), { types: ['order.paid'] })`,
    )
  }
  const options = resolve('webhook', given, SOURCE)
  const { scheme } = options
  if (scheme === 'github' && options.toleranceMs !== undefined) {
    throw invalid('webhook: toleranceMs does nothing for github, which signs no timestamp; leave it out')
  }
  return {
    ...options,
    keys: keysOf(scheme, options.secret),
    toleranceMs: options.toleranceMs ?? 300_000,
    ...finish(options),
    /** Undefined: a CloudEvent's own. */
    source: options.source === 'event' ? undefined : (options.source ?? scheme),
    /** What the source is called. */
    name: `webhook:${options.source ?? scheme}`,
  }
}

/** What every webhook that receives has. */
export function finish(given: {
  maxBytes: number
  maxBufferedBytes: number | undefined
  onError: ((error: unknown) => void) | undefined
  now: (() => number) | undefined
}) {
  const { maxBytes, maxBufferedBytes = Math.max(64 * MIB, 4 * maxBytes), onError, now = Date.now } = given
  return {
    maxBufferedBytes: checkInteger('webhook: maxBufferedBytes', maxBufferedBytes, 2 * maxBytes),
    onError: onError ?? WARNING,
    /** Told of handlers that failed, which the log of the box has told of already. */
    onFailed: onError ?? (() => undefined),
    onUnmapped: onError ?? UNMAPPED_WARNING,
    now,
  }
}

const WARNING = warning('a webhook could not be delivered to the box', 'ONCEBOX_WEBHOOK')
const UNMAPPED_WARNING = warning(
  'type or map of a webhook failed, and its sender is told to try again; mend it, and give onError to see the whole error',
  'ONCEBOX_WEBHOOK',
)

export function resolveSink(given: WebhookSinkOptions) {
  const options = resolve('webhook with a url, which is a sink,', given, SINK)
  const { url, secret, headers = {}, now = Date.now } = options
  // Without the query, which may hold a secret.
  const { name = `webhook:${url.host}${url.pathname}`.slice(0, 200) } = options
  const { fetch: send = (to: string, init: RequestInit) => fetch(to, init) } = options
  return { ...options, keys: keysOf('standard', secret), headers, name, fetch: send, now }
}

/** Objects of their own, which show nothing of the secret where somebody prints them. */
function keysOf(scheme: Scheme, secrets: readonly string[]): readonly KeyObject[] {
  return secrets.map((one) => {
    if (scheme === 'standard') return createSecretKey(standardKey(one))
    if (one.length >= LEAST_CHARACTERS) return createSecretKey(Buffer.from(one))
    throw invalid(`webhook: secret must have at least ${LEAST_CHARACTERS} characters; this one has ${one.length}`)
  })
}

/** What environment variables and files make of a secret that is not there, or was copied with too much around it. */
function checkSecret(where: string, secret: string): string {
  if (/^\s|\s$/.test(secret)) throw invalid(`${where} has white space around it; trim it where it is read`)
  if (/^(undefined|null)$/i.test(secret)) throw invalid(`${where} is the word for nothing; is its variable set?`)
  return secret
}

function standardKey(secret: string): Buffer {
  if (/^wh[ps]k_/.test(secret)) {
    throw invalid(
      'webhook: secret is an asymmetric key (v1a), which is not supported; ask the sender for a symmetric one, whsec_…',
    )
  }
  const base64 = secret.replace(/^whsec_/, '')
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(base64) || base64.replace(/=+$/, '').length % 4 === 1) {
    throw invalid('webhook: secret of the scheme standard must be base64, with or without whsec_ before it')
  }
  const key = Buffer.from(base64, 'base64')
  if (key.length < LEAST_BYTES) {
    throw invalid(
      `webhook: secret of the scheme standard must have at least ${LEAST_BYTES} bytes; this one has ${key.length}`,
    )
  }
  return key
}

function checkUrl(where: string, given: string | URL): URL {
  // A path may hold a token, so it is not shown.
  if (!URL.canParse(String(given))) throw invalid(`${where} is not a URL`)
  const url = new URL(given)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw invalid(`${where} must begin with https: or http:`)
  if (url.username !== '' || url.password !== '') {
    throw invalid(`${where} must not contain a user or password; use headers: { authorization: … }`)
  }
  return url
}

function checkHeaders(where: string, given: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(given)) {
    const lower = name.toLowerCase()
    if (lower.startsWith('webhook-') || lower === 'content-length')
      throw invalid(`${where}: ${lower} is set by the sink`)
    try {
      new Headers([[lower, value]])
    } catch {
      throw invalid(`${where}: ${JSON.stringify(name)} is not a header, or its value cannot be one`)
    }
    headers[lower] = value
  }
  return headers
}
