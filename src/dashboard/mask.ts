/**
 * Mask: takes values out of a text, in one pass over it. What is put in their place is not looked through again, so that a value
 * such as `red` does not find itself in it. A text may have been cut: what is the begin of a value at its end goes too. What cannot be looked for in a bounded time withholds the text.
 */

export const MASK = '[redacted]'

/** Shorter ones would black out half of every text. */
const LEAST = 3
const MOST_VALUES = 2_000
/** Characters that are compared, beside those of the text. */
const MOST_WORK = 20_000_000

/** Values by how they begin, the longest first, so that none hides in a longer one. */
type Index = ReadonlyMap<string, readonly string[]>

export function createMask(values: Iterable<string | undefined>): (text: string) => string {
  let index: Index | undefined | 'none'
  return (text) => {
    // Most messages have no text to take anything out of.
    index ??= indexOf(values) ?? 'none'
    return index === 'none' ? MASK : maskedBy(index, text)
  }
}

/** Undefined if there are too many. */
function indexOf(values: Iterable<string | undefined>): Index | undefined {
  const long = [...new Set(values)].filter((value): value is string => value !== undefined && value.length >= LEAST)
  if (long.length > MOST_VALUES) return undefined
  const index = new Map<string, string[]>()
  const forms = [...new Set(long.flatMap(formsOf))].filter(({ length }) => length >= LEAST)
  for (const value of forms.sort((a, b) => b.length - a.length)) {
    const begin = value.slice(0, LEAST)
    const alike = index.get(begin)
    if (alike) alike.push(value)
    else index.set(begin, [value])
  }
  return index
}

/** As errors quote it: as JSON, or JSON in JSON, in a URL, and a number as JavaScript prints it. */
function formsOf(value: string): string[] {
  const json = JSON.stringify(value).slice(1, -1)
  const inUrl = encodeURIComponent(value.toWellFormed())
  const inForm = new URLSearchParams([['', value]]).toString().slice(1)
  const number = NUMBER.test(value) ? [String(Number(value))] : []
  return [value, json, JSON.stringify(json).slice(1, -1), inUrl, inForm, ...number]
}

const NUMBER = /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/
/** What is recorded of an error ends so where it was cut. */
const CUT = /… \(\d{1,12} more characters\)$/

function maskedBy(index: Index, text: string): string {
  if (index.size === 0) return text
  const parts: string[] = []
  const end = CUT.exec(text)?.index ?? text.length
  let [from, until, work] = [0, 0, 0]
  for (let at = 0; at + LEAST <= text.length; at++) {
    for (const value of index.get(text.slice(at, at + LEAST)) ?? []) {
      work += Math.min(value.length, text.length - at)
      if (work > MOST_WORK) return MASK
      const isCut = at + LEAST <= end && at + value.length > end && value.startsWith(text.slice(at, end))
      if (!isCut && !text.startsWith(value, at)) continue
      // One that begins within another goes with it.
      if (at >= until) parts.push(text.slice(from, at), MASK)
      from = until = Math.max(until, isCut ? end : at + value.length)
      break
    }
  }
  return parts.join('') + text.slice(from)
}
