/** Whether two values are the same data: order of members, white space and escapes make no difference. */
import { childrenOf, isContainer, isObject, leafText, nameOf, plainNumber, type Tape } from './tape.js'

/** The hashes tell most of those that are not apart; what is written alike is alike. */
export function areEqual(left: Tape, one: number, right: Tape, other: number): boolean {
  if (!isContainer(left, one) || !isContainer(right, other)) {
    return (
      isContainer(left, one) === isContainer(right, other) &&
      plainNumber(leafText(left, one)) === plainNumber(leafText(right, other))
    )
  }
  if (left.text.slice(left.from[one], left.to[one]) === right.text.slice(right.from[other], right.to[other]))
    return true
  if (left.hash[one] !== right.hash[other]) return false
  if (left.lines[one] !== right.lines[other] || isObject(left, one) !== isObject(right, other)) return false
  if (!isObject(left, one)) return areAllEqual(left, [...childrenOf(left, one)], right, [...childrenOf(right, other)])
  const theirs = new Map([...childrenOf(right, other)].map((child) => [nameOf(right, child), child]))
  const mine = new Map([...childrenOf(left, one)].map((child) => [nameOf(left, child), child]))
  if (mine.size !== theirs.size || [...mine.keys()].some((name) => !theirs.has(name))) return false
  return areAllEqual(left, [...mine.values()], right, [...mine.keys()].map((name) => theirs.get(name)!)) // prettier-ignore
}

function areAllEqual(left: Tape, mine: readonly number[], right: Tape, theirs: readonly number[]): boolean {
  return mine.length === theirs.length && mine.every((child, at) => areEqual(left, child, right, theirs[at]!))
}
