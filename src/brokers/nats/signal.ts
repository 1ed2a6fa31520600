import { sleep } from '../../backoff.js'

export interface Signal {
  give(): void
  taken(ms: number): Promise<void>
}

/** One waits until another gives, for so long at most; what was given before is not lost. */
export function createSignal(): Signal {
  let given = false
  let wake: (() => void) | undefined
  return {
    give() {
      given = true
      wake?.()
    },
    async taken(ms) {
      const woken = new Promise<void>((resolve) => (wake = resolve))
      if (!given) await sleep(ms, woken)
      given = false
      wake = undefined
    },
  }
}
