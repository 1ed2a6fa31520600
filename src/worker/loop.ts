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
  /** How long until something falls due, as far as is known, 0 if something is: asked when there was nothing to do. */
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
/** While something is due that nobody can get at: its row is locked. Each look takes twice as long to come as the last. */
const LOCKED_MS = { first: 2, most: 500 }
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

  /** Answers whether it was cut short. */
  const nap = async (ms: number): Promise<boolean> => {
    if (pending || stopping) {
      pending = false
      return true
    }
    let roused = (): void => undefined
    const woken = new Promise<void>((resolve) => {
      roused = resolve
    })
    sleepers.push(roused)
    await sleep(ms, woken)
    const at = sleepers.indexOf(roused)
    if (at < 0) return true
    sleepers.splice(at, 1)
    return false
  }

  let watched = false
  /** Looks in a row that found something due, and nothing to do. */
  let fruitless = 0
  /** Waits until there may be something to do. While nothing is due it only looks, which is half of what a step costs. */
  const watch = async (): Promise<void> => {
    watched = true
    try {
      const due = await nextDueMs()
      if (due === 0) return void (await nap(Math.min(LOCKED_MS.most, LOCKED_MS.first * 2 ** fruitless++)))
      fruitless = 0
      for (let next = due; next !== 0; next = await nextDueMs()) {
        const ms = Math.min(pollMs, next ?? pollMs)
        if ((await nap(Math.max(1, ms))) || ms === next) return
      }
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
        if (worked) fruitless = 0
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
