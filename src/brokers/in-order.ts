/**
 * Order per key on the way to the box: what was not taken goes again before anything newer of its key.
 *
 * An adapter keeps what it may not acknowledge in its place among what waits, and takes the next batch from here.
 */

export interface Turn<T> {
  keyOf(one: T): string | undefined
  /** Whether its time has come. */
  isDue(one: T): boolean
  /** Whether something of this key is on its way. */
  isInFlight?(key: string): boolean
}

/**
 * The first of those that wait, in their order, up to so many: those that are due, but none whose key is in flight or has
 * an earlier one that stays behind.
 */
export function takeInOrder<T>(waiting: readonly T[], most: number, turn: Turn<T>): { taken: T[]; rest: T[] } {
  const taken: T[] = []
  const rest: T[] = []
  const passed = new Set<string>()
  for (const one of waiting) {
    const key = turn.keyOf(one)
    const isFree = key === undefined || !(passed.has(key) || turn.isInFlight?.(key))
    if (taken.length < most && isFree && turn.isDue(one)) taken.push(one)
    else {
      rest.push(one)
      if (key !== undefined) passed.add(key)
    }
  }
  return { taken, rest }
}

/** Those that come next, in their keys: the first of each key that is not in flight, and all without one. */
export function firstInOrder<T>(waiting: readonly T[], turn: Omit<Turn<T>, 'isDue'>): T[] {
  const seen = new Set<string>()
  return waiting.filter((one) => {
    const key = turn.keyOf(one)
    if (key === undefined) return true
    if (seen.has(key)) return false
    seen.add(key)
    return !turn.isInFlight?.(key)
  })
}
