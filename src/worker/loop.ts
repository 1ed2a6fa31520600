/**
 * Loop: several slots that look for work, one after the other when there is little and all at once when there is much.
 *
 * Of the idle slots one keeps watch: it polls, so a lost wake-up costs at most one interval. A wake-up rouses another one, as
 * long as there is one. A slot that finds work, and may have left some, rouses the next; one that has found all there was
 * only sees to it that somebody keeps watch.
 */
import { backoffMs, sleep } from '../backoff.js'

export interface LoopOptions {
  readonly slots: number
  /** Does one piece of work, if there is any, and says as soon as it has found it whether there may be more. Answers whether it did. */
  step(found: (more: boolean) => void): Promise<boolean>
  /** How long until something falls due, as far as is known, 0 if something is: asked when there was nothing to do. */
  nextDueMs(): Promise<number | undefined>
  failed(error: unknown): void
  readonly pollMs?: number
}

export interface Loop {
  start(): void
  readonly wake: () => void
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

/** What a sleeper is roused for: to look for work, or to keep watch. */
type Reason = 'look' | 'watch'

interface Sleeper {
  readonly watches: boolean
  rouse(why: Reason): void
}

export function createLoop({ slots, step, nextDueMs, failed, pollMs = POLL_MS }: LoopOptions): Loop {
  let running: Promise<void>[] = []
  let stopping = false
  const sleepers: Sleeper[] = []
  /** A wake-up that found nobody asleep is kept for the next one who would go to sleep. */
  let pending = false

  /** Who keeps watch is left to it while there is anybody else. */
  const takeSleeper = (): Sleeper | undefined => {
    const at = sleepers.findIndex(({ watches }) => !watches)
    return sleepers.splice(Math.max(0, at), 1)[0]
  }
  const wake = (): void => {
    const sleeper = takeSleeper()
    if (sleeper) sleeper.rouse('look')
    else pending = true
  }
  const found = (more: boolean): void => {
    if (more) wake()
    else if (!watched) takeSleeper()?.rouse('watch')
  }

  /** Answers what it was cut short for, if it was. */
  const nap = async (ms: number, watches = false): Promise<Reason | undefined> => {
    if (pending || stopping) {
      pending = false
      return 'look'
    }
    let reason: Reason | undefined
    let sleeper: Sleeper | undefined
    const woken = new Promise<void>((resolve) => {
      const rouse = (why: Reason): void => {
        reason = why
        resolve()
      }
      sleeper = { watches, rouse }
      sleepers.push(sleeper)
    })
    await sleep(ms, woken)
    const at = sleepers.indexOf(sleeper!)
    if (at >= 0) sleepers.splice(at, 1)
    return reason
  }

  let watched = false
  /** Looks in a row that found something due, and nothing to do. */
  let fruitless = 0
  /** Waits until there may be something to do. While nothing is due it only looks, which is half of what a step costs. */
  const watch = async (): Promise<void> => {
    watched = true
    try {
      const due = await nextDueMs()
      if (due === 0) return void (await nap(Math.min(LOCKED_MS.most, LOCKED_MS.first * 2 ** fruitless++), true))
      fruitless = 0
      for (let next = due; next !== 0; next = await nextDueMs()) {
        const ms = Math.min(pollMs, next ?? pollMs)
        if ((await nap(Math.max(1, ms), true)) || ms === next) return
      }
    } finally {
      watched = false
    }
  }

  const run = async (): Promise<void> => {
    let failures = 0
    let reason: Reason | undefined
    while (!stopping) {
      try {
        const worked = reason !== 'watch' && (await step(found))
        reason = undefined
        failures = 0
        if (worked) fruitless = 0
        if (worked || stopping) continue
        if (watched) reason = await nap(UNWATCHED_MS)
        else await watch()
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
      for (const sleeper of sleepers.splice(0)) sleeper.rouse('look')
      await Promise.all(running)
      running = []
    },
    get alive() {
      return running.length > 0 && !stopping
    },
  }
}
