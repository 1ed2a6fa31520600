/** How much differs in each conflict of a list: one after the other, from the first on, while the list is looked at. */
import { useEffect } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import { api, type Item } from '../../api.js'
import { count } from '../../logic/format.js'
import { session } from '../../session.js'
import { compare, differWords, type Compared } from './compare.js'

/** Larger ones are compared when they are opened. */
const MOST_BYTES = 64_000

/** In words, by number in quarantine. Undefined: not yet. */
export type Differences = ReadonlyMap<string, string>

/** Undefined: the reader may not see what bodies say. */
export function useDifferences(box: string, items: readonly Item[]): Differences | undefined {
  const known = useSignal<Differences>(new Map())
  const isAllowed = session.value?.may.includes('bodies') === true
  const numbers = items.flatMap(({ n }) => n ?? [])
  useEffect(() => {
    const giveUp = new AbortController()
    const { signal } = giveUp
    const look = async (): Promise<void> => {
      for (const n of numbers) {
        if (known.peek().has(n)) continue
        const words = await wordsOf(n, { box, signal })
        if (signal.aborted) return
        known.value = new Map([...known.peek(), [n, words]])
      }
    }
    if (isAllowed) void look()
    return () => giveUp.abort()
  }, [box, numbers.join(' '), isAllowed])
  return isAllowed ? known.value : undefined
}

async function wordsOf(n: string, at: { readonly box: string; readonly signal: AbortSignal }): Promise<string> {
  try {
    const { box, signal } = at
    const conflict = await api.conflict({ box, n }, { signal })
    return inShort((await compare(conflict, { ...at, most: MOST_BYTES })).difference)
  } catch {
    return '–'
  }
}

const WHY: Readonly<Record<Extract<Compared, string>, string>> = {
  'too-large': 'large',
  'no-json': 'no JSON',
  hidden: '–',
  gone: 'first body gone',
}

function inShort(compared: Compared): string {
  if (typeof compared === 'string') return WHY[compared]
  if (compared.values === 0) return 'same data'
  return compared.atLeast ? `${count(compared.values)}+ values differ` : differWords(compared)
}
