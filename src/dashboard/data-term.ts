/** A part of a query that looks into payloads: `data.lines.sku:tea,coffee`. Numbers are compared as they are written. */
import type { ExactNode } from './exact.js'
import { Problem } from './problem.js'
import type { Value } from './scan.js'

export interface DataTerm {
  fits(node: ExactNode): boolean
  /** False: the text of a body shows that it does not fit. */
  mayBeIn(body: string): boolean
}

const MOST_STEPS = 16
const MOST_DIGITS = 1_000

export function dataTerm(path: string, values: readonly Value[]): DataTerm {
  const steps = path.split('.')
  if (steps.length > MOST_STEPS || steps.includes('')) {
    throw new Problem('QUERY_INVALID', `data.${path} is no path: names with a dot between them, at most ${MOST_STEPS}`)
  }
  return {
    fits: (node) => reached(node, steps).some((leaf) => values.some((value) => isSame(leaf, value))),
    mayBeIn: (body) => values.some(({ text }) => !/^[\w-]+$/.test(text) || isNumber(text) || body.includes(text)),
  }
}

/** What a path leads to: of an array, its elements, or the one with that number. */
function reached(node: ExactNode, steps: readonly string[]): readonly ExactNode[] {
  const [step, ...rest] = steps
  if (step === undefined) return node.elements ?? [node]
  if (node.elements) {
    const [own] = /^\d{1,9}$/.test(step) ? [node.elements[Number(step)]] : []
    return own ? reached(own, rest) : node.elements.flatMap((element) => reached(element, steps))
  }
  const inner = node.members?.get(step)
  return inner ? reached(inner, rest) : []
}

function isSame(leaf: ExactNode, { text, quoted }: Value): boolean {
  if (typeof leaf.value === 'string') return leaf.value === text
  if (quoted || leaf.members || leaf.elements) return false
  if (leaf.text === undefined) return String(leaf.value) === text
  // Longer than any value of a query is only the same if it is written so.
  if (leaf.text.length > MOST_DIGITS) return leaf.text === text
  return isNumber(text) && decimal(leaf.text) === decimal(text)
}

function isNumber(text: string): boolean {
  return /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d{1,6})?$/.test(text)
}

/** The same for 1, 1.0 and 10e-1, and different for numbers that only look alike once they are rounded. */
function decimal(text: string): string {
  const [, sign = '', whole = '', fraction = '', power = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? []
  const digits = (whole + fraction).replace(/^0+/, '')
  let end = digits.length
  // A pattern such as 0+$ would begin again at every zero.
  while (digits[end - 1] === '0') end -= 1
  const significant = digits.slice(0, end)
  if (significant === '') return '0'
  return `${sign}${significant}e${Number(power) - fraction.length + digits.length - significant.length}`
}
