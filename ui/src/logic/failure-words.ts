/** What the page of failures says: the sentence above the groups, and the words of a group. */
import type { FailureGroup } from '../../../src/dashboard/answers/index.js'
import { about, percent, plural } from './format.js'

export const RANGES = { '1h': 3_600_000, '24h': 86_400_000, '7d': 604_800_000, all: Infinity } as const
export type Range = keyof typeof RANGES

export const RANGE_WORDS: Readonly<Record<Range, string>> = { '1h': '1 h', '24h': '24 h', '7d': '7 d', all: 'All' }

/** Groups of which one has been seen lately. */
export function groupsWithin(groups: readonly FailureGroup[], range: Range, now: number): readonly FailureGroup[] {
  return groups.filter(({ lastAt }) => now - Date.parse(lastAt) <= RANGES[range])
}

/** 1 243 dead, in 4 groups */
export function failuresTitle(groups: readonly FailureGroup[], { complete }: { readonly complete: boolean }): string {
  const dead = groups.reduce((sum, { count }) => sum + count, 0)
  return `${about(dead, { atLeast: !complete })} dead, in ${plural(groups.length, 'group')}`
}

const GROWS_MS = 300_000

/** The group that is most of it, if there is one. */
export function largest(
  groups: readonly FailureGroup[],
  now: number,
): { readonly group: FailureGroup; readonly share: string; readonly grows: boolean } | undefined {
  const dead = groups.reduce((sum, { count }) => sum + count, 0)
  const [group] = groups
  if (!group || groups.length < 2 || group.count * 2 < dead) return undefined
  return { group, share: percent(group.count, dead), grows: now - Date.parse(group.lastAt) < GROWS_MS }
}

/** A message in parts: what varies from one to the next is marked. */
export function partsOfMessage(message: string): readonly { readonly text: string; readonly varies: boolean }[] {
  return message
    .split(/(‹[^›]{1,20}›)/)
    .filter((text) => text !== '')
    .map((text) => ({ text, varies: /^‹.*›$/.test(text) }))
}

/** GatewayTimeout, or the code of a database. */
export function groupName({ name, code }: FailureGroup): string {
  return code === undefined || code === name ? name : `${name} ${code}`
}
