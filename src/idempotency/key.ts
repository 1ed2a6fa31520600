/** The key of a request, and what tells its payload from another one. */
import { createHash } from 'node:crypto'

/**
 * A string of RFC 8941, as the draft of the header asks for, or the bare text that most clients send. Both without a comma: a
 * header that came twice is joined with one, be it that of `"a` and `b"`.
 */
const QUOTED = /^"((?:[ !#-+\--[\]-~]|\\["\\])*)"$/
const BARE = /^[!#-+\--~]*$/
const MOST_CHARACTERS = 255

export type Key = { readonly key: string | undefined } | { readonly problem: string }

/** `"abc"` and `abc` are the same key. */
export function readKey(headers: Headers): Key {
  const header = headers.get('idempotency-key')
  if (header === null) return { key: undefined }
  const [, quoted] = QUOTED.exec(header) ?? []
  const key = quoted === undefined ? header : quoted.replaceAll(/\\(.)/g, '$1')
  if (quoted === undefined && !BARE.test(header))
    return { problem: 'it is malformed, there more than once, or has a comma' }
  if (key === '') return { problem: 'it is empty' }
  if (key.length > MOST_CHARACTERS) return { problem: `it has more than ${MOST_CHARACTERS} characters` }
  return { key }
}

export interface Fingerprint {
  readonly method: string
  readonly path: string
  readonly sha256: string
}

/**
 * What is stored of a request: where it went, and a digest of all that makes two requests the same. Neither its body nor
 * its query, which may hold what must not be kept.
 */
export function fingerprintOf({ method, url }: Request, body: Uint8Array): Fingerprint {
  const { pathname, search } = new URL(url)
  const digest = createHash('sha256').update(`${method} ${pathname}${search}\n`).update(body).digest('hex')
  return { method, path: pathname.slice(0, 1_000), sha256: digest }
}
