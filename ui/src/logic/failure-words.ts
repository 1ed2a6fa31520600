/** What the page of failures says: the sentence above the groups, and the words of a group. */
import type { FailureGroup, Failures } from '../../../src/dashboard/answers/index.js'
import { about, duration, percent, plural } from './format.js'

/** In minutes. */
export const RANGES = { '1h': 60, '24h': 1_440, '7d': 10_080, all: undefined } as const
export type Range = keyof typeof RANGES

export const RANGE_WORDS: Readonly<Record<Range, string>> = { '1h': '1 h', '24h': '24 h', '7d': '7 d', all: 'All' }

/** 1 243 dead, in 4 groups */
export function failuresTitle({ examined, total, complete }: Failures): string {
  return `${about(examined, { atLeast: !complete })} dead, in ${plural(total, 'group')}`
}

const RECENT_MS = 300_000

/** The group that is most of it, if there is one. */
export function largest(
  { groups, examined }: Failures,
  now: number,
): { readonly group: FailureGroup; readonly share: string; readonly last: string } | undefined {
  const [group] = groups
  if (!group || groups.length < 2 || group.count * 2 < examined) return undefined
  const isRecent = now - Date.parse(group.lastAt) < RECENT_MS
  const last = isRecent ? `, the last one less than ${duration(RECENT_MS)} ago` : ''
  return { group, share: percent(group.count, examined), last }
}

/** A message in parts: what varies from one to the next is marked. */
export function partsOfMessage(message: string): readonly { readonly text: string; readonly varies: boolean }[] {
  return message
    .split(/(‹[^›]{1,20}›)/)
    .filter((text) => text !== '')
    .map((text) => ({ text, varies: /^‹.*›$/.test(text) }))
}

/** GatewayTimeout, or the code of a database, and what caused it: TypeError ← Error ECONNREFUSED. */
export function groupName({ name, code, cause }: FailureGroup): string {
  const own = code === undefined || code === name ? name : `${name} ${code}`
  return cause === undefined ? own : `${own} ← ${cause}`
}
