/** Keeps a lease alive while its holder works, and tells the holder when it is lost. */
import { isConnectionLoss } from '../postgres/driver.js'

export interface Leased {
  /** Extends the lease; answers false if any of it was lost. */
  extend(): Promise<boolean>
}

/** Extends every third of the lease. Answers with a function that stops it. */
export function keepLease(leased: Leased, leaseMs: number, lost: (why: string) => void): () => void {
  let lastExtended = performance.now()
  let running = false
  let stopped = false
  const beat = async (): Promise<void> => {
    if (running) return
    running = true
    const asked = performance.now()
    try {
      if (await leased.extend()) lastExtended = asked
      else if (!stopped) lost('another worker has claimed it')
    } catch (error) {
      // The database is away: the lease still stands until it runs out.
      if (!isConnectionLoss(error) && !stopped) lost(`it could not be extended: ${String(error)}`)
    } finally {
      running = false
    }
  }
  const timer = setInterval(() => {
    if (performance.now() - lastExtended > leaseMs) lost('it ran out before it could be extended')
    void beat()
  }, leaseMs / 3)
  return () => {
    stopped = true
    clearInterval(timer)
  }
}
