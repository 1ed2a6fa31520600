/** Wake-ups: tells the loops of this process at once, and those of other processes by a debounced notification. */
import type { Database } from '../postgres/database.js'
import { NOTIFY } from '../postgres/sql/receive.js'

/** At most one notification in so long: one per commit would halve throughput. */
const DEBOUNCE_MS = 20

/** Anybody in the database may notify us: however often they do, we look no more often than this. */
const REMOTE_MS = 5

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
  let lastHeard = -Infinity
  let heard: NodeJS.Timeout | undefined
  /** At once, and once more for all that come in the moment after it. */
  const remote = (): void => {
    if (heard) return
    const since = performance.now() - lastHeard
    if (since >= REMOTE_MS) {
      lastHeard = performance.now()
      return local()
    }
    heard = setTimeout(() => {
      heard = undefined
      lastHeard = performance.now()
      local()
    }, REMOTE_MS - since)
    heard.unref()
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
        unlisten = await db.driver.listen(db.channel, remote)
      } catch (error) {
        failed(error)
      }
    },
    async close() {
      clearTimeout(timer)
      clearTimeout(heard)
      timer = heard = undefined
      await unlisten?.()
      unlisten = undefined
    },
  }
}
