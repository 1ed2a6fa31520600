/**
 * The difference of two bodies, as canonical JSON: the order of members and white space make none. Walked through together, so that
 * a value is compared with the one in its place, and what is equal is never printed.
 */
import { inSlices, type SliceOptions } from '../sliced.js'
import { align } from './align.js'
import { differing } from './mark.js'
import { indent, innerOf, labelOf, linesOf, membersOf, shown, type Place } from './print.js'
import { Rows, type DiffRow, type Line } from './rows.js'
import { isContainer, isObject, leafText, readTape, type Tape } from './tape.js'
import { areEqual } from './equal.js'

export type { DiffRow, Line } from './rows.js'

export interface Difference {
  readonly rows: readonly DiffRow[]
  /** Values that differ, or that only one of them has. */
  readonly values: number
  /** There are more: it was not counted further. */
  readonly atLeast: boolean
  /** There is more than the rows show. */
  readonly isCut: boolean
}

const MOST_ROWS = 300
const MOST_VALUES = 10_000
const MOST_LINES_OF_ONE = 60
const REST_EVERY = 200

/** Undefined if one of them is no JSON, or nested too deep; or if it was given up. */
export function diffBodies(left: string, right: string, options?: SliceOptions): Promise<Difference | undefined> {
  return inSlices(diffing(left, right), options)
}

export function* diffing(left: string, right: string): Generator<void, Difference | undefined> {
  const [one, other] = [yield* readTape(left), yield* readTape(right)]
  if (!one || !other) return undefined
  const walk = new Walk(one, other)
  yield* walk.pair(0, 0, ROOT)
  return walk.end()
}

/** A pair of values, and where it stands. */
type Both = Omit<Place, 'comma'> & { readonly commas: readonly [string, string]; readonly name: string | undefined }
const ROOT: Both = { depth: 0, label: '', commas: ['', ''], name: undefined }

class Walk {
  private readonly rows = new Rows(MOST_ROWS)
  private readonly line = { left: 0, right: 0 }
  private values = 0
  private steps = 0

  constructor(
    private readonly left: Tape,
    private readonly right: Tape,
  ) {}

  end(): Difference {
    this.rows.end()
    const atLeast = this.values >= MOST_VALUES
    return { rows: this.rows.rows, values: this.values, atLeast, isCut: this.rows.isFull }
  }

  *pair(one: number, other: number, place: Both): Generator<void, void> {
    const { left, right } = this
    if (this.values >= MOST_VALUES) return
    if (++this.steps % REST_EVERY === 0) yield
    if (areEqual(left, one, right, other)) return this.equal(one, other, place)
    const alike = isContainer(left, one) && isContainer(right, other)
    if (!alike || isObject(left, one) !== isObject(right, other)) return this.replaced(one, other, place)
    const { depth, label, commas } = place
    const [begin, end] = isObject(left, one) ? ['{', '}'] : ['[', ']']
    this.rows.pinned(this.same(`${indent(depth)}${label}${begin}`, ['', '']))
    yield* isObject(left, one) ? this.members(one, other, depth + 1) : this.elements(one, other, depth + 1)
    this.rows.pinned(this.same(`${indent(depth)}${end}`, commas))
  }

  private *members(one: number, other: number, depth: number): Generator<void, void> {
    const [mine, theirs] = [membersOf(this.left, one), membersOf(this.right, other)]
    const names = [...new Set([...mine.keys(), ...theirs.keys()])].sort((a, b) => (a < b ? -1 : 1))
    const last = [[...mine.keys()].at(-1), [...theirs.keys()].at(-1)] as const
    for (const name of names) {
      const [a, b] = [mine.get(name), theirs.get(name)]
      const commas = [name === last[0] ? '' : ',', name === last[1] ? '' : ','] as const
      const label = a === undefined ? labelOf(this.right, b!) : labelOf(this.left, a)
      yield* this.either(a, b, { depth, label, commas, name })
    }
  }

  private *elements(one: number, other: number, depth: number): Generator<void, void> {
    const [mine, theirs] = [innerOf(this.left, one), innerOf(this.right, other)]
    const pairs = align(
      mine.map((entry) => this.left.hash[entry]!),
      theirs.map((entry) => this.right.hash[entry]!),
    )
    for (const [at, to] of pairs) {
      const commas = [at === mine.length - 1 ? '' : ',', to === theirs.length - 1 ? '' : ','] as const
      const [a, b] = [at === undefined ? undefined : mine[at], to === undefined ? undefined : theirs[to]]
      yield* this.either(a, b, { depth, label: '', commas, name: undefined })
    }
  }

  private *either(one: number | undefined, other: number | undefined, place: Both): Generator<void, void> {
    if (one !== undefined && other !== undefined) return yield* this.pair(one, other, place)
    this.values += 1
    if (one !== undefined) this.only('left', one, place)
    else this.only('right', other!, place)
  }

  private equal(one: number, other: number, place: Both): void {
    const { depth, label, commas, name } = place
    const lines = this.left.lines[one]!
    if (lines === 1) {
      const [mine, theirs] = [leafText(this.left, one), leafText(this.right, other)]
      const text = (value: string): string => `${indent(depth)}${label}${shown(value)}`
      this.rows.equal({ lines, name, row: this.same(text(mine), commas, text(theirs)) })
      return
    }
    this.rows.equal({ lines, name })
    this.line.left += lines
    this.line.right += this.right.lines[other]!
  }

  private same(text: string, commas: readonly [string, string], theirs = text): DiffRow {
    const line = (own: string, at: number, comma: string): Line => ({
      line: at,
      before: own + comma,
      mark: '',
      after: '',
    })
    return {
      kind: 'same',
      left: line(text, ++this.line.left, commas[0]),
      right: line(theirs, ++this.line.right, commas[1]),
    }
  }

  /** Another value in its place. */
  private replaced(one: number, other: number, place: Both): void {
    this.values += 1
    const { depth, label, commas } = place
    if (isContainer(this.left, one) || isContainer(this.right, other)) {
      this.only('left', one, place)
      this.only('right', other, place)
      return
    }
    const [mine, theirs] = differing(leafText(this.left, one), leafText(this.right, other))
    const line = (at: number, [before, mark, after]: readonly [string, string, string], comma: string): Line => ({
      line: at,
      before: `${indent(depth)}${label}${before}`,
      mark,
      after: after + comma,
    })
    const left = line(++this.line.left, mine, commas[0])
    this.rows.changed({ kind: 'changed', left, right: line(++this.line.right, theirs, commas[1]) })
  }

  /** A value that the other body does not have. */
  private only(side: 'left' | 'right', entry: number, { depth, label, commas }: Both): void {
    const tape = this[side]
    const comma = commas[side === 'left' ? 0 : 1]
    const lines = tape.lines[entry]!
    let count = 0
    for (const text of linesOf(tape, entry, { depth, label, comma })) {
      if (count >= MOST_LINES_OF_ONE || this.rows.isFull) break
      count += 1
      const mark = text.trimStart()
      const before = text.slice(0, text.length - mark.length)
      const line: Line = { line: ++this.line[side], before, mark, after: '' }
      this.rows.changed(side === 'left' ? { kind: 'removed', left: line } : { kind: 'added', right: line })
    }
    if (count < lines) this.rows.changed({ kind: 'cut', side, lines: lines - count })
    this.line[side] += lines - count
  }
}
