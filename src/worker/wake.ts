/** Wake-ups: tells the loops of this process at once, and those of other processes by a debounced notification. */
import type { Database } from '../postgres/database.js'
import { NOTIFY } from '../postgres/sql/receive.js'

/** At most one notification in so long: one per commit would halve throughput. */
const DEBOUNCE_MS = 20

export interface Waker {
  /** Something was committed: wake everybody. */
  wake(): void
  /** Calls back on wake-ups from here and from elsewhere. */
  subscribe(listener: () => void): () => void
  /** Starts listening to other processes; a driver that cannot listen leaves it to polling. */
  listen(failed: (error: unknown) => void): Promise<void>
  close(): Promise<void>
}

export function createWaker(db: Database): Waker {
  const listeners = new Set<() => void>()
  let unlisten: (() => Promise<void>) | undefined
  let lastSent = -Infinity
  let timer: NodeJS.Timeout | undefined

  const local = (): void => {
    for (const listener of listeners) listener()
  }
  const send = (): void => {
    lastSent = performance.now()
    // A lost notification costs at most one poll of the others.
    db.run(NOTIFY, [db.channel]).catch(() => undefined)
  }
  return {
    wake() {
      local()
      if (!db.driver.listen || timer) return
      const since = performance.now() - lastSent
      if (since >= DEBOUNCE_MS) return send()
      timer = setTimeout(() => {
        timer = undefined
        send()
      }, DEBOUNCE_MS - since)
      timer.unref()
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    async listen(failed) {
      if (unlisten || !db.driver.listen) return
      try {
        unlisten = await db.driver.listen(db.channel, local)
      } catch (error) {
        failed(error)
      }
    },
    async close() {
      clearTimeout(timer)
      timer = undefined
      await unlisten?.()
      unlisten = undefined
    },
  }
}
