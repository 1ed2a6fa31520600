/**
 * Wake-ups: tells the loops of this process at once, and those of other processes by a notification.
 *
 * A notification is a statement of its own, after the commit. It goes out at once, so that a message that comes alone waits
 * for nothing; while they come faster than `NOTIFY_MS`, one stands for all that came since the last.
 */
import { sleep } from '../backoff.js'
import type { Database } from '../postgres/database.js'
import { NOTIFY } from '../postgres/sql/receive.js'

/**
 * At least so long between two notifications: half as many as messages where a thousand come in a second. One for each commit
 * would cost as much as the commits.
 */
const NOTIFY_MS = 2

/** At the end, the last notification is waited for no longer than this: nothing but a poll of the others depends on it. */
const LAST_MS = 1_000

/** Anybody in the database may notify us: however often they do, we look no more often than this. */
const HEAR_MS = 2

export interface Waker {
  /** Something was committed: wake everybody. */
  wake(): void
  /** Calls back on wake-ups from here and from elsewhere. */
  subscribe(listener: () => void): () => void
  /** Starts listening to other processes; a driver that cannot listen leaves it to polling. */
  listen(failed: (error: unknown) => void): Promise<void>
  /** Sends what is still to be told, and listens no more. */
  close(): Promise<void>
}

export function createWaker(db: Database): Waker {
  const listeners = new Set<() => void>()
  let unlisten: (() => Promise<void>) | undefined

  const local = (): void => {
    for (const listener of listeners) listener()
  }
  // A lost notification costs at most one poll of the others.
  const tell = spaced(NOTIFY_MS, () => db.run(NOTIFY, [db.channel]).catch(() => undefined))
  const hear = spaced(HEAR_MS, local)
  return {
    wake() {
      local()
      if (db.driver.listen) tell.call()
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    async listen(failed) {
      if (unlisten || !db.driver.listen) return
      try {
        unlisten = await db.driver.listen(db.channel, hear.call)
      } catch (error) {
        failed(error)
      }
    },
    async close() {
      hear.close()
      await sleep(LAST_MS, tell.flush())
      await unlisten?.()
      unlisten = undefined
    },
  }
}

interface Spaced {
  call(): void
  /** What was called for and has not begun does not happen. */
  close(): void
  /** What was called for happens now. Resolves when it is over. */
  flush(): Promise<void>
}

/** Calls `act` at once, and once more for all calls that come before it is over and so long has passed. */
function spaced(ms: number, act: () => unknown): Spaced {
  let resting = false
  let again = false
  let timer: NodeJS.Timeout | undefined
  let acting: unknown

  const call = (): void => {
    again = resting
    if (resting) return
    resting = true
    void begin()
  }
  const begin = async (): Promise<void> => {
    const started = performance.now()
    acting = act()
    await acting
    const left = ms - (performance.now() - started)
    if (left <= 0) return rested()
    timer = setTimeout(rested, Math.ceil(left))
    timer.unref()
  }
  const rested = (): void => {
    resting = false
    if (again) call()
  }
  const close = (): void => {
    clearTimeout(timer)
    resting = again = false
  }
  return {
    call,
    close,
    async flush() {
      await acting
      const waits = again
      close()
      // Where there was no need to rest, the next has begun.
      await (waits ? act() : acting)
    },
  }
}
