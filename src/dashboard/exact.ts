/**
 * Exact JSON: a tree that remembers how each number was written, so that what was not changed is printed as it came. To parse and
 * to stringify would turn 9007199254740993 into 9007199254740992.
 */

export interface ExactNode {
  /** As JSON.parse would have it. */
  readonly value: unknown
  /** Of a number: as it was written. */
  readonly text?: string
  readonly members?: ReadonlyMap<string, ExactNode>
  readonly elements?: readonly ExactNode[]
}

/** Deeper data would overflow the stack of the code that walks it. */
const MAX_DEPTH = 500

const SPACE = /[ \t\n\r]*/y
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const WORDS: readonly (readonly [string, unknown])[] = [['true', true], ['false', false], ['null', null]] // prettier-ignore

/** Undefined if it is no JSON, or nested too deep. */
export function parseExact(text: string): ExactNode | undefined {
  const reader = new Reader(text)
  try {
    const node = reader.value(0)
    return reader.atEnd ? node : undefined
  } catch (error) {
    if (error instanceof Malformed || error instanceof SyntaxError) return undefined
    throw error
  }
}

class Malformed extends Error {}

class Reader {
  private at = 0
  constructor(private readonly source: string) {}

  get atEnd(): boolean {
    this.take(SPACE)
    return this.at === this.source.length
  }

  value(depth: number): ExactNode {
    if (depth > MAX_DEPTH) throw new Malformed()
    this.take(SPACE)
    const first = this.source[this.at]
    if (first === '{') return this.object(depth)
    if (first === '[') return this.array(depth)
    if (first === '"') return { value: this.string() }
    for (const [word, value] of WORDS) {
      if (!this.source.startsWith(word, this.at)) continue
      this.at += word.length
      return { value }
    }
    const text = this.take(NUMBER)
    if (text === '') throw new Malformed()
    return { value: Number(text), text }
  }

  private object(depth: number): ExactNode {
    const value: Record<string, unknown> = {}
    const members = new Map<string, ExactNode>()
    this.at += 1
    if (this.skip('}')) return { value, members }
    do {
      this.take(SPACE)
      const name = this.string()
      if (!this.skip(':')) throw new Malformed()
      const node = this.value(depth + 1)
      members.set(name, node)
      // A name like any other, which an assignment would take for the prototype.
      Object.defineProperty(value, name, { value: node.value, enumerable: true, writable: true, configurable: true })
    } while (this.skip(','))
    if (!this.skip('}')) throw new Malformed()
    return { value, members }
  }

  private array(depth: number): ExactNode {
    const elements: ExactNode[] = []
    this.at += 1
    if (!this.skip(']')) {
      do elements.push(this.value(depth + 1))
      while (this.skip(','))
      if (!this.skip(']')) throw new Malformed()
    }
    return { value: elements.map(({ value }) => value), elements }
  }

  private string(): string {
    if (this.source[this.at] !== '"') throw new Malformed()
    let end = this.at
    // A pattern would keep a place to come back to for every character of a long text.
    do end = this.source.indexOf('"', end + 1)
    while (end > 0 && this.isEscaped(end))
    if (end < 0) throw new Malformed()
    const text = this.source.slice(this.at, end + 1)
    this.at = end + 1
    return JSON.parse(text) as string
  }

  private isEscaped(at: number): boolean {
    let first = at
    while (this.source[first - 1] === '\\') first -= 1
    return (at - first) % 2 === 1
  }

  private take(pattern: RegExp): string {
    pattern.lastIndex = this.at
    const [found = ''] = pattern.exec(this.source) ?? []
    this.at += found.length
    return found
  }

  private skip(character: string): boolean {
    this.take(SPACE)
    if (this.source[this.at] !== character) return false
    this.at += 1
    return true
  }
}

/** JSON of a value that was made from `node`'s: a number that is where it was, and what it was, is written as it was. */
export function writeExact(value: unknown, node: ExactNode | undefined): string {
  return write(value, node, 0) ?? 'null'
}

function write(value: unknown, node: ExactNode | undefined, depth: number): string | undefined {
  if (depth > MAX_DEPTH) throw new RangeError('nested too deep to be written')
  if (typeof value === 'number' && node?.text !== undefined && Object.is(node.value, value)) return node.text
  if (typeof value === 'bigint') return String(value)
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) {
    return `[${value.map((element, at) => write(element, node?.elements?.[at], depth + 1) ?? 'null').join(',')}]`
  }
  if (typeof (value as { toJSON?: unknown }).toJSON === 'function') return JSON.stringify(value)
  const members = Object.entries(value).flatMap(([name, inner]) => {
    const text = write(inner, node?.members?.get(name), depth + 1)
    return text === undefined ? [] : `${JSON.stringify(name)}:${text}`
  })
  return `{${members.join(',')}}`
}

/** What the leaves of a tree say, numbers as they were written. */
export function* leavesOf(node: ExactNode): Generator<string> {
  if (node.text !== undefined) yield node.text
  else if (typeof node.value === 'string') yield node.value
  for (const inner of node.members?.values() ?? node.elements ?? []) yield* leavesOf(inner)
}
