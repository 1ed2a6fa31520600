/**
 * Low water: nothing earlier was due when everything was looked at last, but for what claims have taken since. Looks that start
 * from there skip index entries that are dead but cannot be vacuumed yet, because a transaction somewhere is still open. A million
 * of them take a third of a second to look through.
 */

/** While there is work, everything is looked at so often, to find what committed late, or was given back to go first. */
const LATE_LOOK_MS = 1_000
/** Commits may lag behind their time by this much before they wait for the next look at everything. */
const LATE_MARGIN_MS = 250
/** A look at everything that takes the server longer is dear: then nobody looks at everything for so many times as long. */
const DEAR_MS = 50
const REST = 10
const MOST_REST_MS = 5_000

/** What a look says. */
export interface Look {
  /** When the first of what was due had fallen due, in ms since 1970; undefined if nothing was. */
  readonly earliest?: number | undefined
  /** What time it was, if nothing was due by then. */
  readonly now?: number | undefined
  /** How long it took the server, if that is told. */
  readonly tookMs?: number | undefined
  /** Not all was taken that it kept from others meanwhile. */
  readonly left?: boolean | undefined
}

/** What a claim of so many rows tells of its look. */
export function readLook(text: string, taken: number): Look {
  const [earliest, tookMs, seen] = text.split(' ').map(Number) as [number, number, number]
  return { earliest, tookMs, left: seen > taken }
}

export class LowWater {
  /** In ms since 1970, by the database's clock. */
  #low: number | undefined
  /** How long the last look at everything took the server, as far as is known. */
  #tookMs = 0
  /** Looks at everything that are under way, when the last one began, and when the last one that has ended had begun. */
  #looking = 0
  #began = -Infinity
  #looked = -Infinity
  /** How often it was forgotten: a look that began before says nothing. */
  #forgotten = 0
  /** How often something was found below it, or left there: a claim that began before raises nothing. */
  #lowered = 0
  readonly #now: () => number

  constructor(now = (): number => performance.now()) {
    this.#now = now
  }

  get #isDear(): boolean {
    return this.#tookMs > DEAR_MS
  }

  /** One that hangs keeps nobody from it for long. */
  get #isLookedAt(): boolean {
    return this.#looking > 0 && this.#now() - this.#began < MOST_REST_MS
  }

  /** Nobody has to look at everything so soon. */
  #isFresh(ms: number): boolean {
    const rest = this.#isDear ? Math.min(this.#tookMs * REST, MOST_REST_MS) : 0
    return this.#now() - this.#looked < Math.max(ms, rest)
  }

  /** From where to look; undefined if it is time to look at everything. One is enough for that. */
  get hint(): string | undefined {
    if (this.#low === undefined || !(this.#isFresh(LATE_LOOK_MS) || this.#isLookedAt)) return undefined
    return new Date(this.#low - LATE_MARGIN_MS).toISOString()
  }

  forget(): void {
    this.#low = undefined
    this.#forgotten++
  }

  /** Claims from the hint on, and if nothing is there, whatever is due, unless that is dear to look for, and somebody has or does. */
  async claim<T extends Look>(claim: (low: string | undefined) => Promise<T | undefined>): Promise<T | undefined> {
    const low = this.hint
    const lowered = this.#lowered
    const from = this.#low
    if (low !== undefined) {
      const found = await claim(low).catch((error: unknown) => {
        // What it had locked is free again.
        this.#move({ earliest: from, left: true }, false)
        throw error
      })
      if (found) {
        this.#move(found, lowered === this.#lowered)
        return found
      }
      if (this.#low !== undefined && this.#isDear && (this.#isFresh(0) || this.#isLookedAt)) return undefined
    }
    return this.claimAny(() => claim(undefined))
  }

  /** Claims whatever is due, and leaves nothing out. */
  claimAny<T extends Look>(claim: () => Promise<T | undefined>): Promise<T | undefined> {
    return this.lookAtAll(claim, (found) => found ?? {})
  }

  /** Looks at everything. `told` reads the answer. */
  async lookAtAll<T>(look: () => Promise<T>, told: (answer: T) => Look): Promise<T> {
    const began = this.#now()
    const forgotten = this.#forgotten
    const lowered = this.#lowered
    this.#began = began
    this.#looking++
    try {
      const answer = await look()
      this.#looked = Math.max(this.#looked, began)
      if (forgotten === this.#forgotten) this.#learn(told(answer), lowered === this.#lowered)
      return answer
    } finally {
      this.#looking--
    }
  }

  /** Whatever lies between is dead, or another's, who takes all of it or says what is left. */
  #move({ earliest, left }: Look, mayRise: boolean): void {
    if (this.#low === undefined || earliest === undefined) return
    if (left) {
      this.#lowered++
      this.#low = Math.min(this.#low, earliest)
    } else if (mayRise) this.#low = Math.max(this.#low, earliest)
  }

  /** Of two looks side by side, or beside a claim that has left something, the lower one counts. */
  #learn({ earliest, now, tookMs }: Look, mayRise: boolean): void {
    this.#tookMs = tookMs ?? this.#tookMs
    this.#lowered++
    // Where everything is cheap to look at, nothing is known for long.
    const low = earliest ?? (this.#isDear ? (now ?? this.#low) : undefined)
    if (mayRise || low === undefined) this.#low = low
    else if (this.#low !== undefined) this.#low = Math.min(this.#low, low)
  }
}
