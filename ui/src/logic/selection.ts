/** Rows that are selected, as queries that find these and no others. */
import type { Item } from '../../../src/dashboard/answers/index.js'
import { quote } from './query.js'

export interface Chosen {
  readonly count: number
  readonly consumer: string
  readonly q: string
}

/** What tells a row from all others. */
export function rowKey({ consumer, source, id, n }: Pick<Item, 'consumer' | 'source' | 'id' | 'n'>): string {
  return JSON.stringify([consumer, source, id, n ?? null])
}

/**
 * One for each consumer, source and state: a query is a filter, and two consumers with two ids would find four messages where two
 * are selected.
 */
export function queriesFor(items: readonly Item[], outbox: boolean): readonly Chosen[] {
  const groups = grouped(items)
  return [...groups.values()].map((of): Chosen => {
    const [{ consumer, source, state }] = of as [Item]
    const ids = [...new Set(of.map(({ id }) => quote(id)))].join(',')
    const box = outbox ? 'box:outbox ' : ''
    return {
      count: of.length,
      consumer,
      q: `${box}id:${ids} source:${quote(source)} consumer:${quote(consumer)} state:${state}`,
    }
  })
}

function groupOf({ consumer, source, state }: Item): string {
  return JSON.stringify([consumer, source, state])
}

function grouped(items: readonly Item[]): Map<string, Item[]> {
  const groups = new Map<string, Item[]>()
  for (const item of items) groups.set(groupOf(item), [...(groups.get(groupOf(item)) ?? []), item])
  return groups
}

/** What has arrived since: those of the newest page that are not shown. */
export function newSince(shown: readonly Item[], newest: readonly Item[]): number {
  const known = new Set(shown.map(rowKey))
  return newest.filter((item) => !known.has(rowKey(item))).length
}

/** The rows that are shown, with what is known of them now; none is moved, added or taken away. */
export function refreshed(shown: readonly Item[], newest: readonly Item[]): readonly Item[] {
  const now = new Map(newest.map((item) => [rowKey(item), item]))
  return shown.map((item) => now.get(rowKey(item)) ?? item)
}
