/**
 * Who sent it: the signatures of three schemes.
 *
 * `readSignature` looks at headers alone, so a request without a proper signature is refused before its body is read.
 * Headers that came twice are joined with a comma by every HTTP stack, so a comma where none belongs means: refuse.
 */
import { createHmac, timingSafeEqual, type KeyObject } from 'node:crypto'
import type { Scheme } from './options.js'

export interface Signature {
  /** What is signed before the body. */
  readonly prefix: string
  readonly encoding: 'base64' | 'hex'
  /** One of them has to be right. */
  readonly candidates: readonly string[]
  /** The id, where a header has it. */
  readonly id: string | undefined
  /** When it was signed, where that is signed too. */
  readonly time?: Date
}

export interface Refusal {
  readonly status: 400 | 401
  readonly error: string
}

export interface Clock {
  readonly nowMs: number
  readonly toleranceMs: number
}

export function readSignature(scheme: Scheme, headers: Headers, clock: Clock): Signature | Refusal {
  switch (scheme) {
    case 'standard':
      return readStandard(headers, clock)
    case 'stripe':
      return readStripe(headers, clock)
    case 'github':
      return readGithub(headers)
  }
}

/** Whether one of the candidates is the signature of the body under one of the keys. */
export function isSigned(signature: Signature, body: Uint8Array, keys: readonly KeyObject[]): boolean {
  const { prefix, encoding, candidates } = signature
  let found = false
  for (const key of keys) {
    const expected = Buffer.from(createHmac('sha256', key).update(prefix).update(body).digest(encoding))
    for (const candidate of candidates) {
      const given = Buffer.from(candidate)
      if (given.length === expected.length && timingSafeEqual(given, expected)) found = true
    }
  }
  return found
}

/** What Standard Webhooks writes into `webhook-signature`. */
export function signStandard(id: string, timestamp: number, body: Uint8Array, keys: readonly KeyObject[]): string {
  const sign = (key: KeyObject): string =>
    createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')
  return keys.map((key) => `v1,${sign(key)}`).join(' ')
}

/** webhook-id, webhook-timestamp, and webhook-signature: `v1,<base64>` once or more, separated by spaces. */
function readStandard(headers: Headers, clock: Clock): Signature | Refusal {
  const id = headers.get('webhook-id')
  const timestamp = headers.get('webhook-timestamp')
  const signatures = headers.get('webhook-signature')
  if (!signatures) return unsigned('webhook-signature')
  // With a dot in it, a part of the body could be passed off as a part of the id.
  if (!id || !/^[!-+\-/-~]{1,512}$/.test(id)) return malformed('webhook-id')
  if (!timestamp || !isTimestamp(timestamp)) return malformed('webhook-timestamp')
  const tokens = signatures.split(/ +/)
  if (!tokens.every((token) => /^[A-Za-z0-9]+,[!-+\--~]*$/.test(token))) return malformed('webhook-signature')
  const time = timeOf(timestamp)
  if (!isTimely({ time }, clock)) return UNTIMELY
  return {
    prefix: `${id}.${timestamp}.`,
    encoding: 'base64',
    candidates: tokens.filter((token) => token.startsWith('v1,')).map((token) => token.slice(3)),
    id,
    time,
  }
}

/** Stripe-Signature: `t=<seconds>,v1=<hex>`, with v1 once or more and schemes that are not for us. */
function readStripe(headers: Headers, clock: Clock): Signature | Refusal {
  const header = headers.get('stripe-signature')
  if (!header) return unsigned('stripe-signature')
  const parts = header.split(',')
  if (!parts.every((part) => /^[a-z0-9]+=[!-~]*$/.test(part))) return malformed('stripe-signature')
  const valuesOf = (name: string): string[] =>
    parts.filter((part) => part.startsWith(`${name}=`)).map((part) => part.slice(name.length + 1))
  const [timestamp, ...more] = valuesOf('t')
  if (timestamp === undefined || more.length > 0 || !isTimestamp(timestamp)) return malformed('stripe-signature')
  const time = timeOf(timestamp)
  if (!isTimely({ time }, clock)) return UNTIMELY
  return { prefix: `${timestamp}.`, encoding: 'hex', candidates: valuesOf('v1'), id: undefined, time }
}

/** X-Hub-Signature-256: `sha256=<hex>`, of the body alone; X-GitHub-Delivery has the id. */
function readGithub(headers: Headers): Signature | Refusal {
  const header = headers.get('x-hub-signature-256')
  if (!header) return unsigned('x-hub-signature-256')
  if (!/^sha256=[!-+\--~]*$/.test(header)) return malformed('x-hub-signature-256')
  const id = headers.get('x-github-delivery')
  if (!id || !/^[!-+\--~]{1,512}$/.test(id)) return malformed('x-github-delivery')
  const event = headers.get('x-github-event')
  if (!event || !/^[!-+\--~]{1,512}$/.test(event)) return malformed('x-github-event')
  return { prefix: '', encoding: 'hex', candidates: [header.slice('sha256='.length)], id }
}

export const UNTIMELY: Refusal = { status: 401, error: 'the timestamp is too far from the time here' }

function unsigned(header: string): Refusal {
  return { status: 401, error: `the header ${header} is missing` }
}

function malformed(header: string): Refusal {
  return { status: 400, error: `the header ${header} is missing, malformed or there more than once` }
}

/** Whole seconds since 1970, written as its sender signed them. */
function isTimestamp(text: string): boolean {
  return /^(0|[1-9][0-9]{0,11})$/.test(text)
}

function timeOf(timestamp: string): Date {
  return new Date(Number(timestamp) * 1_000)
}

/**
 * To the millisecond: rounded, a copy would be good for up to a second longer than consumers are made to remember it. What signs
 * no time never grows old.
 */
export function isTimely({ time }: Pick<Signature, 'time'>, { nowMs, toleranceMs }: Clock): boolean {
  return time === undefined || Math.abs(nowMs - time.getTime()) <= toleranceMs
}
