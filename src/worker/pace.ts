/** Most messages that are claimed ahead where groups are smaller: should one turn out slow, the others wait for it. */
const MOST_AHEAD = 16

/** What is left of a group goes with it if all of it should take no longer than so many times `group.ms`. */
const STRETCH = 2
/** Messages that arrive together share a group if they should take no longer than so many times `group.ms`. */
const ARRIVAL_STRETCH = 3
/** After so many times `group.ms` nothing more starts. */
const MOST_STRETCH = 4

/** So often two messages share a transaction where groups do not go through. */
const TRY_TWO_EVERY = 50

/** Senders choose the types, where a consumer takes them all: so many are remembered. */
const MOST_TYPES = 1_000

/** The types that were added last. One that is forgotten is found out again. */
class LatestTypes {
  readonly #types = new Set<string>()

  get size(): number {
    return this.#types.size
  }

  has(type: string): boolean {
    return this.#types.has(type)
  }

  add(type: string): void {
    this.#types.add(type)
    if (this.#types.size > MOST_TYPES) this.#types.delete(this.#types.values().next().value!)
  }
}

/**
 * Pace: how much a consumer puts into one transaction, and how many transactions run side by side. Learned from how
 * long its handlers take and from how often its groups collide on row locks.
 */
export class Pace {
  readonly #max: { readonly messages: number; readonly ms: number }
  readonly #concurrency: number
  readonly #durations = new Map<string, number>()
  /** Types whose handlers call effects: they never share a transaction. */
  readonly alone = new LatestTypes()
  /** Types whose handlers do what cannot be done beside others: they never run at the same time in one transaction. */
  readonly apart = new LatestTypes()
  #limit: number
  /** Sizes of one that were answered since two were tried. */
  #alone = 0
  #permits: number
  #inUse = 0
  #calm = 0
  #ahead = 1
  readonly #waiting: (() => void)[] = []

  constructor(max: { readonly messages: number; readonly ms: number }, concurrency: number) {
    this.#max = max
    this.#concurrency = concurrency
    this.#limit = max.messages
    this.#permits = concurrency
  }

  /**
   * Most messages in the next shared transaction. Where they have come down to one, two are tried now and then: what runs alone
   * does not show that groups go through again.
   */
  nextSize(): number {
    if (this.#limit > 1 || this.#max.messages === 1) return this.#limit
    this.#alone = (this.#alone + 1) % TRY_TWO_EVERY
    return this.#alone === 0 ? 2 : 1
  }

  /**
   * How many messages to claim: as many as fit in one group, or slow ones would wait here while others idle. Small
   * groups claim for several once there is a backlog: a claim is a commit, and one for each message would double them.
   */
  get claimSize(): number {
    let slowest = 0
    for (const ms of this.#durations.values()) if (ms > slowest) slowest = ms
    const { messages } = this.#max
    // Whole groups: a stub would pay for a commit.
    const most = Math.max(messages, this.#ahead - (this.#ahead % messages))
    if (slowest * most <= this.#max.ms * 4) return most
    return Math.max(1, Math.min(most, Math.floor((this.#max.ms * 4) / slowest)))
  }

  /** So many were claimed of those asked for. As long as there are more, and they are known to be quick, claims grow. */
  claimed(count: number, asked: number): void {
    this.#ahead = count < asked || this.#durations.size === 0 ? 1 : Math.min(asked * 2, MOST_AHEAD)
  }

  /** Starts the clock of a group. What is left of it may take so many times its time, all in all. */
  clock(stretch = STRETCH): GroupClock {
    return new GroupClock(this, this.#max.ms, stretch)
  }

  /**
   * How many of these messages to mark for a group on arrival, given their types: what is marked and does not run has to
   * be marked again. Whoever sent them waits for all of them, so that only the locks of their rows ask for small groups: as
   * many as should fit before nothing more may start, with time to spare, in groups of one size.
   */
  share(types: readonly string[]): number {
    const most = this.nextSize()
    let fitting = 0
    let ms = 0
    for (const type of types) {
      ms += this.expectedMs(type)
      if (fitting >= most || (fitting > 0 && ms > this.#max.ms * ARRIVAL_STRETCH)) break
      fitting++
    }
    return Math.ceil(types.length / Math.ceil(types.length / fitting))
  }

  /** What a call of this type takes on average. */
  expectedMs(type: string): number {
    return this.#durations.get(type) ?? 0
  }

  took(type: string, ms: number): void {
    const before = this.#durations.get(type)
    if (before === undefined && this.#durations.size >= MOST_TYPES) return
    // Falls fast and rises slowly: on a busy machine everything takes long now and then, and to give up sharing
    // because of that would make it busier still. What is slow by nature is slow every time.
    const weight = before !== undefined && ms > before ? 0.05 : 0.5
    this.#durations.set(type, before === undefined ? ms : before + (ms - before) * weight)
  }

  /** Groups collided: fewer side by side, and once there is only one, smaller ones. */
  collided(): void {
    this.#calm = 0
    if (this.#permits > 1) this.#permits = Math.ceil(this.#permits / 2)
    else this.abandoned()
  }

  /** A group came to nothing because of one of its messages, and all of them run alone: the next ones are smaller. */
  abandoned(): void {
    this.#limit = Math.ceil(this.#limit / 2)
  }

  /** A group went through: after a while without collisions, try more again. */
  succeeded(): void {
    if (this.#limit === this.#max.messages && this.#permits === this.#concurrency) return
    if (this.#limit < this.#max.messages) {
      this.#limit = Math.min(this.#max.messages, this.#limit + Math.ceil(this.#max.messages / 20))
    } else if (++this.#calm >= 500) {
      this.#calm = 0
      this.#permits++
      this.#wakeOne()
    }
  }

  /** Waits for a turn to run a shared group. Answers with a function that ends it. */
  async turn(): Promise<() => void> {
    while (this.#inUse >= this.#permits) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    this.#inUse++
    let ended = false
    return () => {
      if (ended) return
      ended = true
      this.#inUse--
      this.#wakeOne()
    }
  }

  #wakeOne(): void {
    if (this.#inUse < this.#permits) this.#waiting.shift()?.()
  }
}

/**
 * The clock of one group. Its time is counted in what its handlers take on average: where several groups share a busy
 * processor each of them takes longer, and to commit sooner for that would make it busier still.
 */
export class GroupClock {
  readonly #pace: Pace
  readonly #ms: number
  readonly #stretch: number
  readonly #started = performance.now()
  #lap = this.#started
  #used = 0

  constructor(pace: Pace, ms: number, stretch: number) {
    this.#pace = pace
    this.#ms = ms
    this.#stretch = stretch
  }

  get elapsedMs(): number {
    return this.#lap - this.#started
  }

  /**
   * May one more message start, of so many that are left? Not if it would take longer than the time that remains, unless
   * all that is left fits in as much again (`stretch`): a stub would pay for a whole commit. In no case after four times as long.
   */
  hasTime(type: string, left: number): boolean {
    if (this.elapsedMs > this.#ms * MOST_STRETCH) return false
    const each = this.#pace.expectedMs(type)
    return this.#used + each <= this.#ms || this.#used + each * left <= this.#ms * this.#stretch
  }

  /** The leading messages for which there is time, where all of them start at once. */
  fitting<T extends { readonly type: string }>(messages: readonly T[]): T[] {
    const fitting: T[] = []
    for (const message of messages) {
      if (fitting.length > 0 && !this.hasTime(message.type, messages.length - fitting.length)) break
      fitting.push(message)
      this.#used += this.#pace.expectedMs(message.type)
    }
    return fitting
  }

  /** True once nothing more may start. */
  get isOver(): boolean {
    return performance.now() - this.#started > this.#ms * MOST_STRETCH
  }

  /** These have run side by side, for so long each: the time of the group is theirs by shares. */
  ranTogether(calls: readonly (readonly [type: string, ms: number])[]): void {
    const all = calls.reduce((sum, [, ms]) => sum + ms, 0)
    const share = all > 0 ? (performance.now() - this.#started) / all : 0
    for (const [type, ms] of calls) this.#pace.took(type, ms * share)
  }

  /** A message of this type has run. */
  ran(type: string): void {
    const now = performance.now()
    this.#pace.took(type, now - this.#lap)
    this.#used += this.#pace.expectedMs(type)
    this.#lap = now
  }
}
