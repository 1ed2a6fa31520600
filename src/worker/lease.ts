/** Keeps a lease alive while its holder works, and tells the holder when it is lost. */
import { toFailure } from '../failure.js'
import { isUnavailable } from '../postgres/errors.js'

export interface Leased {
  /** Extends the lease; answers false if any of it was lost. */
  extend(): Promise<boolean>
}

/** A heartbeat that failed is sent again after this share of the lease: over another connection it may get through. */
const AGAIN_SHARE = 1 / 12
const AGAIN_MOST_MS = 1_000

/**
 * Extends every third of the lease. Answers with a function that stops it. `lost` is told whether the database is to
 * blame: a holder that did not get round to it may have been kept from it by its own work. Drivers bound the wait for an
 * answer by a third of the lease (limits.ts), so a heartbeat that hangs has failed before the lease is over.
 */
export function keepLease(leased: Leased, leaseMs: number, lost: (why: string, away: boolean) => void): () => void {
  let lastExtended = performance.now()
  let running = false
  let stopped = false
  let failure: unknown
  let again: NodeJS.Timeout | undefined
  const beat = async (): Promise<void> => {
    if (running) return
    running = true
    clearTimeout(again)
    const asked = performance.now()
    try {
      if (await leased.extend()) lastExtended = asked
      else if (!stopped) lost('another worker has claimed it', false)
      failure = undefined
    } catch (error) {
      // The database is away, or too busy: the lease still stands until it runs out.
      failure = error
      if (!stopped) again = setTimeout(() => void beat(), Math.min(leaseMs * AGAIN_SHARE, AGAIN_MOST_MS))
    } finally {
      running = false
    }
  }
  const timer = setInterval(() => {
    if (performance.now() - lastExtended > leaseMs) {
      const why = failure === undefined ? '' : `: ${toFailure(failure).message}`
      lost(`it ran out before it could be extended${why}`, isUnavailable(failure))
    }
    void beat()
  }, leaseMs / 3)
  return () => {
    stopped = true
    clearInterval(timer)
    clearTimeout(again)
  }
}
