/** Ids of entries are two numbers of 64 bits, and not in the order of text. */
export function placeOf(id: string): bigint {
  const [ms = 0n, n = 0n] = id.split('-').map(BigInt)
  return (ms << 64n) | n
}

export function compareIds(a: string, b: string): number {
  return comparePlaces(placeOf(a), placeOf(b))
}

export function comparePlaces(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0
}
