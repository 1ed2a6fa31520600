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
  get #hint(): string | undefined {
    return this.#low && performance.now() < this.#low.until ? this.#low.at : undefined
  }

  forget(): void {
    this.#low = undefined
  }

  /**
   * Claims from the hint on, and if nothing is there, whatever is due. `earliest`: when the first of what was due had fallen due,
   * in ms since 1970. Only a claim without a hint can say so: one with a hint may end after its time, and has not looked below it.
   */
  async claim<T extends { readonly earliest: number }>(
    claim: (low: string | undefined) => Promise<T | undefined>,
  ): Promise<T | undefined> {
    const low = this.#hint
    const found = low === undefined ? undefined : await claim(low)
    if (found !== undefined) return found
    this.forget()
    const all = await claim(undefined)
    if (all) {
      const at = new Date(all.earliest - LATE_MARGIN_MS).toISOString()
      this.#low = { at, until: performance.now() + LATE_LOOK_MS }
    }
    return all
  }
}
