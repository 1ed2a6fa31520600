/**
 * Low water: nothing earlier was due when everything was looked at last, but for what claims have taken since. Looks that start
 * from there skip index entries that are dead but cannot be vacuumed yet, because a transaction somewhere is still open. A million
 * of them take a third of a second to look through.
 */

/** Everything is looked at so often, to find what committed late, or was given back to go first. */
const LATE_LOOK_MS = 1_000
/** Commits may lag behind their time by this much before they wait for the next look at everything. */
const LATE_MARGIN_MS = 250
/** A look at everything that takes longer is dear: after it nobody looks at everything for so many times as long. */
const DEAR_MS = 50
const REST = 10
const MOST_REST_MS = 5_000

interface Found {
  readonly earliest: number
}

export class LowWater {
  /** In ms since 1970, by the database's clock. */
  #low: number | undefined
  /** Looks at everything that are under way. */
  #looking = 0
  /** Everything is to be looked at again from then on, and is not looked at before. */
  #due = -Infinity
  #rested = -Infinity
  /** How often it was forgotten: a look that began before says nothing. */
  #forgotten = 0
  readonly #now: () => number

  constructor(now = (): number => performance.now()) {
    this.#now = now
  }

  /** From where to look; undefined if it is time to look at everything. One is enough for that. */
  get hint(): string | undefined {
    if (this.#low === undefined || (this.#now() >= this.#due && this.#looking === 0)) return undefined
    return new Date(this.#low - LATE_MARGIN_MS).toISOString()
  }

  forget(): void {
    this.#low = undefined
    this.#forgotten++
  }

  /**
   * Claims from the hint on, and if nothing is there, whatever is due, unless that is dear to look for, or somebody does.
   * `earliest`: when the first of what was due had fallen due, in ms since 1970.
   */
  async claim<T extends Found>(claim: (low: string | undefined) => Promise<T | undefined>): Promise<T | undefined> {
    const low = this.hint
    if (low !== undefined) {
      const found = await claim(low)
      if (this.#low !== undefined) {
        // Whatever lies between is dead, or another's.
        if (found) this.#low = Math.max(this.#low, found.earliest)
        else if (this.#looking > 0 || this.#now() < this.#rested) return undefined
      }
      if (found) return found
    }
    return this.claimAny(() => claim(undefined))
  }

  /** Claims whatever is due, and leaves nothing out. */
  claimAny<T extends Found>(claim: () => Promise<T | undefined>): Promise<T | undefined> {
    return this.lookAtAll(claim, (found) => found?.earliest)
  }

  /** Looks at everything, notes how long that takes, and what the answer says: nothing had fallen due before `earliest`. */
  async lookAtAll<T>(look: () => Promise<T>, earliest: (answer: T) => number | undefined): Promise<T> {
    const began = this.#now()
    const forgotten = this.#forgotten
    this.#looking++
    try {
      const answer = await look()
      if (forgotten === this.#forgotten) this.#low = earliest(answer) ?? this.#low
      return answer
    } finally {
      this.#looking--
      const now = this.#now()
      const rest = now - began > DEAR_MS ? Math.min((now - began) * REST, MOST_REST_MS) : 0
      this.#rested = now + rest
      this.#due = now + Math.max(LATE_LOOK_MS, rest)
    }
  }
}
