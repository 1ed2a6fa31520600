/** Bodies: bytes in, JSON data out, held to its schema, and the fingerprint that tells two bodies under one id apart. */
import { hash } from 'node:crypto'
import { storableText, toFailure } from './failure.js'
import type { StandardSchemaV1 } from './standard-schema.js'

/** Deeper data would overflow the stack of the code that walks it, handlers and JSON.stringify included. */
const MAX_DEPTH = 500

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export type Decoded = { readonly text: string; readonly data: unknown } | { readonly problem: string }

/** What has something in it of which JSON keeps nothing, and what to pass in its place. By the names that every realm has for them. */
const EMPTY: Readonly<Record<string, string>> = {
  '[object Map]': 'a Map; pass Object.fromEntries(map)',
  '[object Set]': 'a Set; pass [...set]',
  '[object Error]': 'an Error; pass what matters of it, such as { message }',
}

/** Of data that has become `{}`. JSON is the truth, so it is taken; whoever wrote a Map meant something else. */
export function warnOfEmpty(
  warnOnce: (key: string, about: object, text: string) => void,
  type: string,
  data: unknown,
): void {
  const what = EMPTY[Object.prototype.toString.call(data)]
  if (what) warnOnce(`empty ${type}`, { type }, `JSON keeps nothing of the data of a message, ${what}`)
}

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
    return { problem: `not JSON${whereNot(error as Error)}` }
  }
}

/** V8's own words quote the text, a short one whole. */
function whereNot({ message }: Error): string {
  if (message === 'Unexpected end of JSON input') return ': it ends too early'
  const position = / at position \d+(?: \(line \d+ column \d+\))?$/.exec(message)?.[0]
  return position === undefined ? '' : `:${position}`
}

/**
 * The data of a stored body, for people and hooks. Undefined if it is no JSON, or nested so deep that to write it as JSON
 * again would overflow the stack of whoever does.
 */
export function readData(text: string): { readonly data: unknown } | undefined {
  const decoded = decodeBody(text)
  return 'problem' in decoded || isTooDeep({ body: text, data: decoded.data }) ? undefined : decoded
}

/** Is it nested deeper than anybody can walk? Most have fewer brackets than that in all, and need not be read. */
export function isTooDeep({ body, data }: Pick<Unread, 'body' | 'data'>): boolean {
  if (body.length <= 2 * MAX_DEPTH || count(body, '{') + count(body, '[') <= MAX_DEPTH) return false
  return isDeeper(dataOf({ body, data }), MAX_DEPTH)
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1))
}

function count(text: string, mark: string): number {
  let found = 0
  for (let at = text.indexOf(mark); at >= 0; at = text.indexOf(mark, at + 1)) found++
  return found
}

/** A message as far as its body goes. Most are stored and not looked at: what nobody asks for is not worked out. */
export interface Unread {
  readonly body: string
  /** Undefined if nobody has read it yet, or somebody has taken it. */
  data: unknown
  /** The fingerprint in hex, null if bodies are not to be compared. Undefined: that of the body, which nobody has made yet. */
  readonly hash: string | null | undefined
}

/** After the JSON round trip, before any schema. */
export function dataOf({ body, data }: Pick<Unread, 'body' | 'data'>): unknown {
  return data === undefined ? (JSON.parse(body) as unknown) : data
}

/** The data for a handler, which may change it: the next handler gets a copy of its own. */
export function takeData(message: Pick<Unread, 'body' | 'data'>): unknown {
  const data = dataOf(message)
  message.data = undefined
  return data
}

/** What a schema says of data. */
export interface Checked {
  /** What the schema made of it; as it came, if there is a problem. */
  readonly data: unknown
  readonly problem: string | undefined
  /** Which fields are wrong, for logs. */
  readonly fields?: readonly string[] | undefined
}

/** Holds data that came from JSON to its schema. A type without one is not checked: its consumer may run in another process. */
export function validate(schema: StandardSchemaV1 | undefined, data: unknown): Checked | Promise<Checked> {
  if (schema === undefined) return { data, problem: undefined }
  const read = (result: StandardSchemaV1.Result<unknown>): Checked =>
    result.issues === undefined ? { data: result.value, problem: undefined } : { data, ...problemOf(result.issues) }
  const threw = (error: unknown): Checked => {
    return { data, problem: storableText(`the schema threw: ${toFailure(error).message}`.slice(0, 2_000)) }
  }
  try {
    const result = schema['~standard'].validate(data)
    return result instanceof Promise ? result.then(read, threw) : read(result)
  } catch (error) {
    return threw(error)
  }
}

function problemOf(issues: readonly StandardSchemaV1.Issue[]): Pick<Checked, 'problem' | 'fields'> {
  const shown = issues.slice(0, 10)
  const texts = shown.map((issue) => {
    const path = keysOf(issue).join('.')
    return path ? `${path}: ${issue.message}` : issue.message
  })
  return { problem: storableText(texts.join('; ').slice(0, 2_000)) || 'invalid', fields: fieldsOf(shown) }
}

function keysOf({ path = [] }: StandardSchemaV1.Issue): string[] {
  return path.map((part) => String(typeof part === 'object' ? part.key : part))
}

/** As names of fields are written. A key of a map may be anything, such as an address or a number of an account. */
const NAME = /^(?:[a-z_$][a-z_$-]{0,39}\d{0,2}|\d{1,6})$/i

/** The names of wrong fields: nothing of what is in them. */
function fieldsOf(issues: readonly StandardSchemaV1.Issue[]): string[] {
  const fields = issues.map((issue) => keysOf(issue).map((key) => (NAME.test(key) ? key : '‹key›')).join('.')) // prettier-ignore
  return [...new Set(fields.filter((field) => field !== ''))]
}

/** By the body: a schema or an `identity` may have changed the data. What is too deep to be walked is refused before. */
export function hashOf({ body, hash }: Pick<Unread, 'body' | 'hash'>): string | null {
  return hash === undefined ? fingerprint(JSON.parse(body))! : hash
}

/** SHA-256 of the canonical JSON, in hex; undefined if the data is nested too deep to be walked. */
export function fingerprint(data: unknown): string | undefined {
  const text = canonical(data, 0)
  return text === undefined ? undefined : hash('sha256', text, 'hex')
}

export function fingerprintBytes(bytes: Uint8Array | string): string {
  return hash('sha256', bytes, 'hex')
}

/**
 * Keys sorted by UTF-16 code units, no white space: the same data always gives the same text. Every event that is sent
 * goes through here, so it is one pass, and JSON.stringify is asked only for what needs escapes.
 */
function canonical(value: unknown, depth: number): string | undefined {
  if (typeof value === 'string') return quote(value)
  if (typeof value !== 'object' || value === null) return String(value)
  if (depth >= MAX_DEPTH) return undefined
  let text = ''
  if (Array.isArray(value)) {
    for (const element of value) {
      const inner = canonical(element, depth + 1)
      if (inner === undefined) return undefined
      text += text === '' ? inner : `,${inner}`
    }
    return `[${text}]`
  }
  for (const key of sortedKeys(value)) {
    const inner = canonical((value as Record<string, unknown>)[key], depth + 1)
    if (inner === undefined) return undefined
    text += text === '' ? `${quote(key)}:${inner}` : `,${quote(key)}:${inner}`
  }
  return `{${text}}`
}

function sortedKeys(value: object): string[] {
  const keys = Object.keys(value)
  return keys.every((key, at) => at === 0 || keys[at - 1]! < key) ? keys : keys.sort()
}

const PLAIN = /^[ !#-[\]-~]*$/

function quote(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : JSON.stringify(text)
}
