/** Scan: a query's parts and their values, with their places. Every character is looked at once. */
import { Problem } from './problem.js'

export interface Scanned {
  /** Before the colon; `id` for a bare word. */
  readonly qualifier: string
  readonly values: readonly Value[]
  readonly from: number
  readonly to: number
}

export interface Value {
  readonly text: string
  /** In quotes: it is a text, whatever it looks like. */
  readonly quoted: boolean
}

const QUALIFIED = /([a-zA-Z][\w-]*(?:\.[^\s:",]+)*):/y
const SPACE = /\s+/y
const PLAIN = /[^\s,"]+/y
/** A backslash stands for what follows it. */
const QUOTED = /"((?:[^"\\]|\\.)*)"/sy
const MOST_CHARACTERS = 1_000

export function scan(text: string): Scanned[] {
  const terms: Scanned[] = []
  let at = 0
  const take = (pattern: RegExp): RegExpExecArray | undefined => {
    pattern.lastIndex = at
    const found = pattern.exec(text) ?? undefined
    at += found?.[0].length ?? 0
    return found
  }
  const value = (): Value => {
    const quoted = take(QUOTED)
    if (quoted) return checked({ text: quoted[1]!.replace(/\\(.)/gs, '$1'), quoted: true })
    if (text[at] === '"') throw new Problem('QUERY_INVALID', 'a quote is open: it has no second one')
    return checked({ text: take(PLAIN)?.[0] ?? '', quoted: false })
  }
  for (;;) {
    take(SPACE)
    if (at >= text.length) return terms
    const from = at
    const qualifier = take(QUALIFIED)?.[1] ?? 'id'
    const values = [value()]
    while (text[at] === ',') {
      at += 1
      values.push(value())
    }
    // Such as a"b": what stands after a value belongs to the next part.
    if (values.some((one) => one.text === '' && !one.quoted)) throw missing(qualifier)
    terms.push({ qualifier, values, from, to: at })
  }
}

function checked(value: Value): Value {
  if (value.text.length <= MOST_CHARACTERS) return value
  throw new Problem('QUERY_INVALID', `a value has at most ${MOST_CHARACTERS} characters`)
}

function missing(qualifier: string): Problem {
  return new Problem('QUERY_INVALID', `‘${qualifier}:’ has no value; an empty one is ${qualifier}:""`)
}
