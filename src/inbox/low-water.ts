/**
 * Low water: nothing earlier was due when everything was looked at last. Claims that start from there skip index entries that
 * are dead but cannot be vacuumed yet, because a transaction somewhere is still open.
 */

/** The hint is left out so often, to find what committed late. */
const LATE_LOOK_MS = 1_000
/** Commits may lag behind their time by this much before they wait for the next look without the hint. */
const LATE_MARGIN_MS = 2_000

export class LowWater {
  #low: { readonly at: string; readonly until: number } | undefined

  /** Undefined if the next claim has to look at everything. */
  get hint(): string | undefined {
    return this.#low && performance.now() < this.#low.until ? this.#low.at : undefined
  }

  /** A claim has found this to be the earliest that was due, in ms since 1970. What a claim with a hint finds says nothing. */
  remember(earliest: number): void {
    if (this.hint !== undefined) return
    this.#low = {
      at: new Date(earliest - LATE_MARGIN_MS).toISOString(),
      until: performance.now() + LATE_LOOK_MS,
    }
  }

  forget(): void {
    this.#low = undefined
  }

  /** Claims from the hint on, and if nothing is there, whatever is due. */
  async claim<T>(claim: (low: string | undefined) => Promise<T | undefined>): Promise<T | undefined> {
    const low = this.hint
    const found = await claim(low)
    if (found !== undefined || low === undefined) return found
    this.forget()
    return claim(undefined)
  }
}
