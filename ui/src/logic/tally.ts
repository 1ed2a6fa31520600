/** How many of a search are in which state, beside the rows that are listed. */
import type { Item, Tally } from '../../../src/dashboard/answers/index.js'

/** Where no further was looked, there are at least as many as can be seen. */
export function seenAtLeast({ states }: Tally, items: readonly Item[]): Tally {
  const raised = Object.entries(states).map(([state, one]) => {
    const listed = one.atLeast ? items.filter((item) => item.state === state).length : 0
    return [state, { ...one, count: Math.max(one.count, listed) }] as const
  })
  return { states: Object.fromEntries(raised) }
}
