/**
 * Loop: several slots that look for work, one after the other when there is little and all at once when there is much.
 *
 * Of the idle slots one keeps watch: it polls, so a lost wake-up costs at most one interval. A slot that finds work
 * rouses the next one, which finds more or takes over the watch.
 */
import { backoffMs, sleep } from '../backoff.js'

export interface LoopOptions {
  readonly slots: number
  /** Does one piece of work, if there is any, and says so as soon as it has found it. Answers whether it did. */
  step(found: () => void): Promise<boolean>
  /** How long until something falls due, as far as is known: asked when there was nothing to do. */
  nextDueMs(): Promise<number | undefined>
  failed(error: unknown): void
  readonly pollMs?: number
}

export interface Loop {
  start(): void
  wake(): void
  /** Stops looking for work. Resolves when every slot has finished what it was doing. */
  stop(): Promise<void>
  readonly alive: boolean
}

const POLL_MS = 1_000
const MAX_BACKOFF_MS = 1_000
/** A slot that does not keep watch sleeps until it is roused; this is for nothing but surprises. */
const UNWATCHED_MS = 30_000

export function createLoop({ slots, step, nextDueMs, failed, pollMs = POLL_MS }: LoopOptions): Loop {
  let running: Promise<void>[] = []
  let stopping = false
  const sleepers: (() => void)[] = []
  /** A wake-up that found nobody asleep is kept for the next one who would go to sleep. */
  let pending = false

  const wake = (): void => {
    const sleeper = sleepers.shift()
    if (sleeper) sleeper()
    else pending = true
  }

  const nap = async (ms: number): Promise<void> => {
    if (pending || stopping) {
      pending = false
      return
    }
    let roused = (): void => undefined
    const woken = new Promise<void>((resolve) => {
      roused = resolve
    })
    sleepers.push(roused)
    await sleep(ms, woken)
    const at = sleepers.indexOf(roused)
    if (at >= 0) sleepers.splice(at, 1)
  }

  let watched = false
  const watch = async (): Promise<void> => {
    watched = true
    try {
      const due = await nextDueMs()
      await nap(Math.max(1, Math.min(pollMs, due ?? pollMs)))
    } finally {
      watched = false
    }
  }

  const run = async (): Promise<void> => {
    let failures = 0
    while (!stopping) {
      try {
        const worked = await step(wake)
        failures = 0
        if (worked || stopping) continue
        await (watched ? nap(UNWATCHED_MS) : watch())
      } catch (error) {
        failed(error)
        if (!stopping) await nap(backoffMs(failures++, 50, MAX_BACKOFF_MS))
      }
    }
  }

  return {
    start() {
      if (running.length > 0) return
      stopping = false
      running = Array.from({ length: slots }, () => run())
    },
    wake,
    async stop() {
      stopping = true
      for (const roused of sleepers.splice(0)) roused()
      await Promise.all(running)
      running = []
    },
    get alive() {
      return running.length > 0 && !stopping
    },
  }
}
