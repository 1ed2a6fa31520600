/** What a `verify` of one's own needs: comparisons that take the same time whatever they are given, and a look at the clock. */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { invalid } from '../../options.js'

export interface HmacOptions {
  /** Several while it is being rotated. */
  secret: string | Uint8Array | readonly (string | Uint8Array)[]
  /** How the signature is written. */
  encoding: 'hex' | 'base64'
  /** Default: 'sha256'. */
  algorithm?: 'sha256' | 'sha384' | 'sha512' | undefined
}

/** Whether a signature is the HMAC of these parts, one behind the other. No signature is not. */
export function isHmac(
  signature: string | null | undefined,
  options: HmacOptions,
  ...parts: readonly (string | Uint8Array)[]
): boolean {
  const { secret, encoding, algorithm = 'sha256' } = options
  const secrets = typeof secret === 'string' || secret instanceof Uint8Array ? [secret] : secret
  // An empty secret signs for anybody.
  if (secrets.length === 0 || secrets.some((one) => one === undefined || one.length === 0)) {
    throw invalid('isHmac: the secret is missing or empty; is its variable set?')
  }
  if (!signature) return false
  let found = false
  for (const one of secrets) {
    const hmac = createHmac(algorithm, one)
    for (const part of parts) hmac.update(part)
    if (isSame(signature, hmac.digest(encoding))) found = true
  }
  return found
}

/** Whether a text is the expected one, in a time that tells nothing but their length. No text is not. */
export function isSame(given: string | null | undefined, expected: string): boolean {
  // Anybody can give an empty one.
  if (typeof expected !== 'string' || expected === '') {
    throw invalid('isSame: what is expected is missing or empty; is its variable set?')
  }
  if (typeof given !== 'string') return false
  const [a, b] = [Buffer.from(given), Buffer.from(expected)]
  return a.length === b.length && timingSafeEqual(a, b)
}

/** Whether a signed time, in seconds since 1970 or as a date, is near enough to now, in the past and in the future. */
export function isTimely(time: string | number | null, { toleranceMs = 300_000, nowMs = Date.now() } = {}): boolean {
  if (time === null || time === '') return false
  const seconds = Number(time)
  const ms = Number.isNaN(seconds) ? Date.parse(String(time)) : seconds * 1_000
  return Math.abs(nowMs - ms) <= toleranceMs
}
