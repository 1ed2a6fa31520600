/** Since when something is so, as far as that is on record: in the minutes, in the rows themselves, in the audit. */
import { READ_SWITCHES } from '../postgres/sql/audit.js'
import { READ_SINCE } from '../postgres/sql/minutes.js'
import { PARKED_SINCE } from '../postgres/sql/parked.js'
import { runUnjitted } from '../postgres/unjitted.js'
import type { Runtime } from '../runtime.js'
import type { Finding } from './answers/index.js'

/** Of each consumer and reason: the first that came are mostly the first that stopped. */
const MOST_PARKED = 100
/** Of the audit: further back nobody looks every second. */
const MOST_DEEDS = 1_000

export interface Known {
  /** The lag beyond which a consumer is behind. */
  readonly limitMs: number
  /** When the first of the keys was blocked, in ms. */
  readonly blockedAt: number | undefined
}

/**
 * The findings, with the time since when it is so. The minutes tell since when there is something of the kind, the rows since when
 * those are there that are there now: the earlier of the two is true.
 */
export async function withSince(reads: Runtime, findings: readonly Finding[], known: Known): Promise<Finding[]> {
  if (findings.length === 0) return []
  const { limitMs, blockedAt } = known
  const consumers = findings.flatMap(({ code, consumer }) =>
    code === 'behind' && consumer !== undefined ? [consumer] : [],
  )
  const [minutes, parked] = await Promise.all([
    reads.db.run(READ_SINCE, { consumers, limitMs }),
    hasParked(findings) ? runUnjitted(reads.db, PARKED_SINCE, { limit: MOST_PARKED }) : [],
  ])
  const recorded = new Map(minutes.map(({ what, consumer, since }) => [`${what} ${consumer}`, Number(since)]))
  const stopped = new Map<string, number | undefined>([
    ['blocked', blockedAt],
    ...parked.map(({ what, since }) => [what, since === null ? undefined : Number(since)] as const),
  ])
  return findings.map((finding) => {
    const { code, consumer = '', lagMs, since } = finding
    if (since !== undefined) return finding
    // The oldest message passed the limit then: it is so at least since.
    const late = lagMs === undefined ? undefined : Date.now() - (lagMs - limitMs)
    const all = [recorded.get(`${code} ${consumer}`), stopped.get(code), late].filter((one) => one !== undefined)
    return all.length === 0 ? finding : { ...finding, since: new Date(Math.min(...all)).toISOString() }
  })
}

function hasParked(findings: readonly Finding[]): boolean {
  return findings.some(({ code }) => code === 'dead' || code === 'quarantined')
}

/** Since when consumers are paused, in ms, by name: since they were for the first time after they were resumed. */
export async function readPauses({ db }: Runtime): Promise<ReadonlyMap<string, number>> {
  const pauses = new Map<string, number>()
  for (const { at, action, detail } of await db.run(READ_SWITCHES, { limit: MOST_DEEDS })) {
    const { consumer } = JSON.parse(detail) as { consumer: string }
    if (action === 'resume') pauses.delete(consumer)
    else if (!pauses.has(consumer)) pauses.set(consumer, Number(at))
  }
  return pauses
}
