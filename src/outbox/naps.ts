/** Naps of a relay between two looks. `send` cannot tell when its transaction commits, so it nudges, and the relay looks soon. */
import { sleep } from '../backoff.js'
import type { OwnTurn } from '../lifecycle.js'

/** Many sends in a row are no reason to ask in a row: so long is every nap. */
export const SHORTEST_MS = 10

export class Naps {
  #nudged = false
  #rouse: (() => void) | undefined

  nudge(): void {
    this.#nudged = true
    this.#rouse?.()
  }

  /** Until somebody nudges, or the turn is over. Answers whether somebody has, also before it began. */
  async nap(ms: number, { goesOn, over }: OwnTurn): Promise<boolean> {
    await sleep(Math.min(ms, SHORTEST_MS), over)
    if (!this.#nudged && goesOn() && ms > SHORTEST_MS) {
      const roused = new Promise<void>((resolve) => (this.#rouse = resolve))
      await sleep(ms - SHORTEST_MS, roused, over)
      this.#rouse = undefined
    }
    const nudged = this.#nudged
    this.#nudged = false
    return nudged
  }
}
