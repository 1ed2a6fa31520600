/** Prints values as canonical JSON: names in order, two blanks a level, numbers as they were written. */
import { childrenOf, isContainer, isObject, leafText, nameOf, type Tape } from './tape.js'

/** Members in the order of their names; of two with one name the last counts, as JSON.parse has it. */
export function membersOf(tape: Tape, entry: number): Map<string, number> {
  const members = [...childrenOf(tape, entry)].map((child): [string, number] => [nameOf(tape, child), child])
  const byName = new Map(members)
  return new Map([...byName].sort(([one], [other]) => (one < other ? -1 : 1)))
}

/** What is inside of it, in the order in which it is printed. */
export function innerOf(tape: Tape, entry: number): number[] {
  return isObject(tape, entry) ? [...membersOf(tape, entry).values()] : [...childrenOf(tape, entry)]
}

export interface Place {
  readonly depth: number
  /** `"name": `, or nothing. */
  readonly label: string
  /** A comma, or nothing. */
  readonly comma: string
}

export function indent(depth: number): string {
  return '  '.repeat(Math.min(depth, 40))
}

/** Its lines, and no more than so many. */
export function* linesOf(tape: Tape, entry: number, place: Place): Generator<string> {
  const { depth, label, comma } = place
  if (!isContainer(tape, entry)) {
    yield `${indent(depth)}${label}${shown(leafText(tape, entry))}${comma}`
    return
  }
  const [begin, end] = isObject(tape, entry) ? ['{', '}'] : ['[', ']']
  yield `${indent(depth)}${label}${begin}`
  const inner = innerOf(tape, entry)
  for (const [at, child] of inner.entries()) {
    const comma = at < inner.length - 1 ? ',' : ''
    yield* linesOf(tape, child, { depth: depth + 1, label: labelOf(tape, child), comma })
  }
  yield `${indent(depth)}${end}${comma}`
}

export function labelOf(tape: Tape, entry: number): string {
  return tape.nameTo[entry] === 0 ? '' : `${shown(JSON.stringify(nameOf(tape, entry)))}: `
}

const MOST_SHOWN = 400
/** Characters that nobody sees, or that turn around what stands beside them. */
const UNSEEN =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u001f\u007f-\u00a0\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g

export function visible(text: string): string {
  return text.replace(UNSEEN, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** A text that is shown whole if it is short. */
export function shown(text: string): string {
  if (text.length <= MOST_SHOWN) return visible(text)
  const half = MOST_SHOWN / 2
  return `${visible(text.slice(0, half))}…${visible(text.slice(-half))}`
}
