/** Bodies: bytes in, JSON data out, and the fingerprint that tells two bodies under one id apart. */
import { hash } from 'node:crypto'

/** Deeper data would overflow the stack of whoever walks it, handlers and JSON.stringify included. */
const MAX_DEPTH = 500

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export type Decoded = { readonly text: string; readonly data: unknown } | { readonly problem: string }

/** Reads a raw body as JSON. The text is kept as it came. */
export function decodeBody(body: Uint8Array | string): Decoded {
  let text: string
  if (typeof body === 'string') {
    if (!body.isWellFormed()) return { problem: 'the text has a lone surrogate' }
    text = body
  } else {
    try {
      text = utf8.decode(body)
    } catch {
      return { problem: 'the bytes are not valid UTF-8' }
    }
  }
  try {
    return { text, data: JSON.parse(text) as unknown }
  } catch (error) {
    return { problem: `not JSON: ${(error as Error).message.slice(0, 200).toWellFormed()}` }
  }
}

/** SHA-256 of the canonical JSON, in hex; undefined if the data is nested too deep to be walked. */
export function fingerprint(data: unknown): string | undefined {
  const order = keyOrder(data, 0)
  if (order === 'deep') return undefined
  return hash('sha256', order === 'sorted' ? JSON.stringify(data) : canonical(data), 'hex')
}

export function fingerprintBytes(bytes: Uint8Array | string): string {
  return hash('sha256', bytes, 'hex')
}

/** Keys sorted by UTF-16 code units, no white space: the same data always gives the same text. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  const members = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonical((value as Record<string, unknown>)[key])}`)
  return `{${members.join(',')}}`
}

/** Most messages are built from a literal, always in the same order: then native JSON.stringify does the work. */
function keyOrder(value: unknown, depth: number): 'sorted' | 'unsorted' | 'deep' {
  if (value === null || typeof value !== 'object') return 'sorted'
  if (depth >= MAX_DEPTH) return 'deep'
  let order: 'sorted' | 'unsorted' = 'sorted'
  if (Array.isArray(value)) {
    for (const element of value) {
      const inner = keyOrder(element, depth + 1)
      if (inner === 'deep') return 'deep'
      if (inner === 'unsorted') order = 'unsorted'
    }
    return order
  }
  let previous: string | undefined
  for (const key of Object.keys(value)) {
    if (previous !== undefined && key < previous) order = 'unsorted'
    previous = key
    const inner = keyOrder((value as Record<string, unknown>)[key], depth + 1)
    if (inner === 'deep') return 'deep'
    if (inner === 'unsorted') order = 'unsorted'
  }
  return order
}
