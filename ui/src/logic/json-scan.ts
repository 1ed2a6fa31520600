/**
 * Scan: finds its way in the text of a JSON value without parsing the whole of it. A payload may be five megabytes and nested
 * five hundred deep: what is inside of a value is skipped in one pass, without recursion, until somebody opens it.
 *
 * The text has to be JSON. See `isJson`.
 */

export type Kind = 'object' | 'array' | 'string' | 'number' | 'word'

/** A value, by its place in the text. */
export interface Place {
  readonly kind: Kind
  readonly from: number
  readonly to: number
}

export interface Inner extends Place {
  /** Of a member of an object, decoded; a name may be anything, such as `__proto__`. */
  readonly name?: string
}

const SPACE = /[ \t\n\r]*/y
const SCALAR = /[^\s,\]}]+/y
const [QUOTE, COMMA, OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET] = [0x22, 0x2c, 0x7b, 0x7d, 0x5b, 0x5d]

export function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

export function rootOf(text: string): Place {
  return placeAt(text, skipSpace(text, 0))
}

/** What is directly in an object or an array, in the order of the text. */
export function* innerOf(text: string, { kind, from }: Place): Generator<Inner> {
  if (kind !== 'object' && kind !== 'array') return
  let at = skipSpace(text, from + 1)
  while (text[at] !== '}' && text[at] !== ']') {
    let name: string | undefined
    if (kind === 'object') {
      const end = endOfString(text, at)
      name = readString(text, { from: at, to: end })
      at = skipSpace(text, skipSpace(text, end) + 1)
    }
    const place = placeAt(text, at)
    yield name === undefined ? place : { ...place, name }
    at = skipSpace(text, place.to)
    if (text[at] !== ',') return
    at = skipSpace(text, at + 1)
  }
}

/** How many are directly in an object or an array: a third of the time that it takes to find them. */
export function countInner(text: string, { from, to }: Place): number {
  if (skipSpace(text, from + 1) === to - 1) return 0
  let depth = 0
  let commas = 0
  for (let at = from; at < to; at += 1) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) at = endOfString(text, at) - 1
    else if (code === OPEN_BRACE || code === OPEN_BRACKET) depth += 1
    else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) depth -= 1
    else if (code === COMMA && depth === 1) commas += 1
  }
  return commas + 1
}

export function readString(text: string, { from, to }: Pick<Place, 'from' | 'to'>): string {
  const inner = text.slice(from + 1, to - 1)
  return inner.includes('\\') ? (JSON.parse(text.slice(from, to)) as string) : inner
}

function placeAt(text: string, from: number): Place {
  const first = text[from]
  if (first === '{') return { kind: 'object', from, to: endOfContainer(text, from) }
  if (first === '[') return { kind: 'array', from, to: endOfContainer(text, from) }
  if (first === '"') return { kind: 'string', from, to: endOfString(text, from) }
  SCALAR.lastIndex = from
  const to = from + (SCALAR.exec(text)?.[0].length ?? 0)
  return { kind: first === 't' || first === 'f' || first === 'n' ? 'word' : 'number', from, to }
}

function skipSpace(text: string, at: number): number {
  SPACE.lastIndex = at
  SPACE.exec(text)
  return SPACE.lastIndex
}

function endOfString(text: string, from: number): number {
  // A pattern with a choice for each character would overflow the stack of some engines on a string of megabytes.
  let at = from + 1
  for (;;) {
    const quote = text.indexOf('"', at)
    if (quote === -1) return text.length
    let slashes = 0
    while (text[quote - 1 - slashes] === '\\') slashes += 1
    if (slashes % 2 === 0) return quote + 1
    at = quote + 1
  }
}

function endOfContainer(text: string, from: number): number {
  let depth = 0
  for (let at = from; at < text.length; at += 1) {
    // By number: five megabytes of characters as texts would be five million small ones.
    const code = text.charCodeAt(at)
    if (code === QUOTE) at = endOfString(text, at) - 1
    else if (code === OPEN_BRACE || code === OPEN_BRACKET) depth += 1
    else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) depth -= 1
    if (depth === 0) return at + 1
  }
  return text.length
}
