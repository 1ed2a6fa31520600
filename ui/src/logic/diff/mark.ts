/** What differs of two values of one line: all of it if they are short, else the part from the first difference to the last. */
import { visible } from './print.js'

type Parts = readonly [before: string, mark: string, after: string]

/** Longer ones are shown around what differs. */
const WHOLE = 160
const AROUND = 40

export function differing(one: string, other: string): readonly [Parts, Parts] {
  if (one.length <= WHOLE && other.length <= WHOLE) return [whole(one), whole(other)]
  const shorter = Math.min(one.length, other.length)
  let begin = 0
  while (begin < shorter && one[begin] === other[begin]) begin += 1
  let end = 0
  while (end < shorter - begin && one[one.length - 1 - end] === other[other.length - 1 - end]) end += 1
  return [around(one, begin, end), around(other, begin, end)]
}

/** Quotes are no part of what differs. */
function whole(text: string): Parts {
  return text[0] === '"' ? ['"', visible(text.slice(1, -1)), '"'] : ['', visible(text), '']
}

function around(text: string, begin: number, end: number): Parts {
  const before = text.slice(0, begin)
  const mark = text.slice(begin, text.length - end)
  const after = text.slice(text.length - end)
  return [
    visible(before.length > AROUND ? `…${before.slice(-AROUND)}` : before),
    mark.length > WHOLE ? `${visible(mark.slice(0, WHOLE - AROUND))}…${visible(mark.slice(-AROUND))}` : visible(mark),
    visible(after.length > AROUND ? `${after.slice(0, AROUND)}…` : after),
  ]
}
