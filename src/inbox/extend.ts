/**
 * Extend: the heartbeat of a claim. It has to get through where others keep its rows locked: every receive of a key holds
 * the row of its lane until its commit, and with several receivers it is hardly ever free.
 *
 *     extend what is free, all at once → wait for each of the others in turn
 */
import { isConflict } from '../postgres/errors.js'
import type { Lease } from './held.js'

/**
 * `held`: all of it is ours still, and some of it was locked for the whole time, so that nobody could take it either.
 * `lost`: some of it is not ours any more.
 */
type Extension = 'extended' | 'held' | 'lost'

/** The rows of a claim, as the heartbeat needs to know them. */
export interface LeasedRows<T> {
  readonly leaseMs: number
  rows(): readonly T[]
  /** Extends those that are free. Answers those that are still ours, and whether they were extended. */
  extendFree(rows: readonly T[]): Promise<ReadonlyMap<T, boolean>>
  /** Extends one as soon as it is free. Answers whether it is still ours; rejects if it waited for too long. */
  extendLocked(row: T, waitMs: number): Promise<boolean>
  /** False once it is settled or given up. */
  has(row: T): boolean
  /** A statement that takes our token away was sent: it may have committed before we hear of it, or have failed. */
  isLeaving(row: T): boolean
}

/** The next heartbeat comes after a third of the lease; this one is over shortly before. */
const WAIT_SHARE = 0.3
const LEAST_WAIT_MS = 5

async function extendRows<T>(leased: LeasedRows<T>): Promise<Extension> {
  const until = performance.now() + leased.leaseMs * WAIT_SHARE
  const isLost = (row: T): boolean => leased.has(row) && !leased.isLeaving(row)
  const asked = leased.rows()
  if (asked.length === 0) return 'extended'
  const found = await leased.extendFree(asked)
  if (asked.some((row) => !found.has(row) && isLost(row))) return 'lost'
  let locked = asked.filter((row) => found.get(row) === false)
  while ((locked = locked.filter((row) => leased.has(row))).length > 0) {
    const waitMs = Math.floor((until - performance.now()) / locked.length)
    if (waitMs < LEAST_WAIT_MS) return 'held'
    const [row, ...others] = locked as [T, ...T[]]
    try {
      if (!(await leased.extendLocked(row, waitMs)) && isLost(row)) return 'lost'
      locked = others
    } catch (error) {
      if (!isConflict(error)) throw error
      // The others first: one that is locked for long must not keep them from their turn.
      locked = [...others, row]
    }
  }
  return 'extended'
}

/** The lease of these rows. */
export function leaseOf<T>(token: string, leased: LeasedRows<T>): Lease {
  return {
    token,
    frozen: false,
    async extend() {
      return this.frozen || (await extendRows(leased)) !== 'lost'
    },
    async extendAll() {
      for (;;) {
        const extension = await extendRows(leased)
        if (extension !== 'held') return extension === 'extended' && leased.rows().length > 0
      }
    },
  }
}
