/**
 * Tape: JSON as rows of numbers, one entry for each value, in the order in which they are written. It remembers where each value
 * stands in the text, so that numbers are shown as they were sent, and a body of some megabytes needs no tree of objects.
 */

/** Deeper data would overflow the stack of whoever walks it. */
const MAX_DEPTH = 500
/** Values between two rests. */
const REST_EVERY = 5_000

export interface Tape {
  readonly text: string
  /** Where the value begins and ends in the text. */
  readonly from: number[]
  readonly to: number[]
  /** The entry after the value and all that is in it. */
  readonly next: number[]
  /** Lines that it takes when it is printed. */
  readonly lines: number[]
  /** Equal values have equal ones; others may. */
  readonly hash: number[]
  /** The name of a member, with its quotes; both 0 for an element. */
  readonly nameFrom: number[]
  readonly nameTo: number[]
}

/** Undefined if it is no JSON, or nested too deep. */
export function* readTape(text: string): Generator<void, Tape | undefined> {
  const reader = new Reader(text)
  try {
    reader.begin()
    while (reader.isOpen) {
      for (let count = 0; count < REST_EVERY && reader.isOpen; count++) reader.step()
      yield
    }
    return reader.end()
  } catch (error) {
    if (error instanceof Malformed) return undefined
    throw error
  }
}

/** Between braces or brackets, with something in it. */
export function isContainer({ next }: Tape, entry: number): boolean {
  return next[entry]! > entry + 1
}

export function isObject({ text, from }: Tape, entry: number): boolean {
  return text[from[entry]!] === '{'
}

/** The values directly in it. */
export function* childrenOf({ next }: Tape, entry: number): Generator<number> {
  for (let child = entry + 1; child < next[entry]!; child = next[child]!) yield child
}

/** Of one that has nothing in it: canonical, numbers as they were written. */
export function leafText({ text, from, to }: Tape, entry: number): string {
  const written = text.slice(from[entry], to[entry])
  if (written[0] === '{') return '{}'
  if (written[0] === '[') return '[]'
  return written[0] === '"' ? canonicalString(written) : written
}

/** Without quotes and escapes. */
export function nameOf({ text, nameFrom, nameTo }: Tape, entry: number): string {
  const written = text.slice(nameFrom[entry], nameTo[entry])
  return written.includes('\\') ? parseString(written) : written.slice(1, -1)
}

class Malformed extends Error {}

/** A container that is being read. */
interface Open {
  readonly entry: number
  readonly isObject: boolean
  lines: number
  hash: number
}

const SPACE = /[ \t\n\r]*/y
const LEAF = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y

class Reader {
  private readonly tape: Tape
  private readonly open: Open[] = []
  private at = 0

  constructor(private readonly text: string) {
    this.tape = { text, from: [], to: [], next: [], lines: [], hash: [], nameFrom: [], nameTo: [] }
  }

  get isOpen(): boolean {
    return this.open.length > 0
  }

  begin(): void {
    this.space()
    this.value(0, 0)
  }

  end(): Tape {
    this.space()
    if (this.at < this.text.length) throw new Malformed()
    return this.tape
  }

  /** The next value of the innermost container, or the end of it. */
  step(): void {
    const top = this.open.at(-1)!
    if (this.text[this.at] === (top.isObject ? '}' : ']')) {
      this.open.pop()
      this.at += 1
      this.close(top)
      return
    }
    if (top.entry < this.tape.from.length - 1) {
      if (this.text[this.at] !== ',') throw new Malformed()
      this.at += 1
      this.space()
    }
    if (!top.isObject) return this.value(0, 0)
    const from = this.at
    this.string()
    const to = this.at
    this.space()
    if (this.text[this.at] !== ':') throw new Malformed()
    this.at += 1
    this.space()
    this.value(from, to)
  }

  private value(nameFrom: number, nameTo: number): void {
    const { tape, text } = this
    const entry = tape.from.length
    const first = text[this.at]
    tape.from.push(this.at)
    tape.nameFrom.push(nameFrom)
    tape.nameTo.push(nameTo)
    tape.to.push(0)
    tape.next.push(0)
    tape.lines.push(0)
    tape.hash.push(0)
    if (first === '{' || first === '[') {
      if (this.open.length >= MAX_DEPTH) throw new Malformed()
      this.at += 1
      this.space()
      this.open.push({ entry, isObject: first === '{', lines: 0, hash: first === '{' ? 1 : 2 })
      return
    }
    if (first === '"') this.string()
    else this.leaf()
    tape.to[entry] = this.at
    this.done(entry, { lines: 1, hash: hashOf(plainNumber(leafText(tape, entry))) })
  }

  private close({ entry, lines, hash }: Open): void {
    this.tape.to[entry] = this.at
    this.done(entry, { lines: lines === 0 ? 1 : lines + 2, hash })
  }

  private done(entry: number, { lines, hash }: { lines: number; hash: number }): void {
    const { tape } = this
    tape.next[entry] = tape.from.length
    tape.lines[entry] = lines
    tape.hash[entry] = hash
    const parent = this.open.at(-1)
    if (parent) {
      parent.lines += lines
      // The order of members makes no difference, that of elements does.
      parent.hash = parent.isObject
        ? (parent.hash + mix(hashOf(nameOf(tape, entry)), hash)) | 0
        : mix(parent.hash, hash)
    }
    this.space()
  }

  private space(): void {
    // Most of the time there is none.
    if (this.text.charCodeAt(this.at) > 32) return
    SPACE.lastIndex = this.at
    SPACE.exec(this.text)
    this.at = SPACE.lastIndex
  }

  private leaf(): void {
    LEAF.lastIndex = this.at
    if (!LEAF.test(this.text)) throw new Malformed()
    this.at = LEAF.lastIndex
  }

  private string(): void {
    if (this.text[this.at] !== '"') throw new Malformed()
    let end = this.at
    do end = this.text.indexOf('"', end + 1)
    while (end > 0 && this.isEscaped(end))
    if (end < 0) throw new Malformed()
    this.at = end + 1
  }

  private isEscaped(at: number): boolean {
    let first = at
    while (this.text[first - 1] === '\\') first -= 1
    return (at - first) % 2 === 1
  }
}

/** Other numbers are rounded by JavaScript, and compared as they are written. */
const SHORT = /^-?(?:\d\.?){1,15}(?:[eE]|$)/

/** 1.0 and 1e0 are one number. */
export function plainNumber(text: string): string {
  if (!SHORT.test(text)) return text
  const value = Number(text)
  // Beyond what JavaScript has, all are infinite, or nothing.
  return Number.isFinite(value) && (value !== 0 || !/[1-9]/.test(text)) ? String(value) : text
}

function canonicalString(written: string): string {
  return written.includes('\\') ? JSON.stringify(parseString(written)) : written
}

function parseString(written: string): string {
  try {
    return JSON.parse(written) as string
  } catch {
    throw new Malformed()
  }
}

function hashOf(text: string): number {
  let hash = -2_128_831_035
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 16_777_619)
  return hash
}

function mix(one: number, other: number): number {
  return Math.imul(one ^ (other + 0x9e3779b9), 2_654_435_761) ^ (one >>> 13)
}
