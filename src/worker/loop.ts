/**
 * Loop: several slots that look for work, one after the other when there is little and all at once when there is much.
 *
 * An idle loop waits for a wake-up or for the poll. One wake-up rouses one slot; a slot that finds more than it can
 * carry rouses the next. Polling always runs, so a lost wake-up costs at most one interval.
 */
import { backoffMs, sleep } from './backoff.js'

export interface LoopOptions {
  readonly slots: number
  /** Does one piece of work. Answers 'none' if there was nothing, 'more' if there may be more right now. */
  step(): Promise<'none' | 'done' | 'more'>
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

  const run = async (slot: number): Promise<void> => {
    let failures = 0
    while (!stopping) {
      try {
        const found = await step()
        failures = 0
        if (found === 'more') wake()
        if (found !== 'none' || stopping) continue
        // Only the first slot keeps watch; the others sleep until they are needed, and look now and then in case.
        const due = slot === 0 ? await nextDueMs() : undefined
        await nap(slot === 0 ? Math.max(1, Math.min(pollMs, due ?? pollMs)) : pollMs * (10 + slot))
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
      running = Array.from({ length: slots }, (_, slot) => run(slot))
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
