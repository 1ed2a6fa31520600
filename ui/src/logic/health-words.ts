/** How a part is, and what is known of the brokers: as much as this process has sources. */
import type { Overview } from '../../../src/dashboard/answers/index.js'

export const UP = { tone: 'handled', shape: 'up' } as const
export const DOWN = { tone: 'dead', shape: 'behind' } as const
const UNKNOWN = { tone: 'pending', shape: 'pending' } as const

export type Known = (typeof UP | typeof DOWN | typeof UNKNOWN) & { readonly words: string }

export function brokersOf({ attached, sources }: Overview['health']): Known {
  if (attached === 0) return { ...UNKNOWN, words: 'not known here: this process has no source' }
  if (!sources) return { ...DOWN, words: 'a source is not connected' }
  return { ...UP, words: 'every source of this process is connected' }
}
