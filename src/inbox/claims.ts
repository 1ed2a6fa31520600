/** Claims: what a consumer claims next, of messages and of lanes, and from whom it takes nothing for the moment. */
import { randomUUID } from 'node:crypto'
import { backoffMs, sleep } from '../backoff.js'
import { NEXT_DUE, type NextDue } from '../postgres/sql/claim.js'
import type { Runtime } from '../runtime.js'
import type { Pace } from '../worker/pace.js'
import { claimMessages, type ClaimedMessages } from './claim.js'
import type { ConsumerDeclaration } from './consumer.js'
import type { Claim } from './held.js'
import { claimLanes, LaneDepth, type ClaimedLanes } from './lanes.js'
import { LowWater, type Look } from './low-water.js'
import { isAway } from './transaction.js'
import { giveBackUnheard } from './unheard.js'

/** Consumers without order look for lanes too, in case they had one before: no row may be out of everybody's sight. */
const LANES_LOOK_MS = 5_000
/**
 * For so long after an outage nothing is taken from others whose lease ran out in it. They met it too, and give back what
 * they hold within a second; taken from them, it would count as a death.
 */
const GRACE_MS = 3_000

export class Claims {
  /** Claims that wait for the database to be given back. */
  readonly releasing = new Set<Promise<void>>()
  readonly #runtime: Runtime
  readonly #consumer: ConsumerDeclaration
  readonly #pace: Pace
  readonly #givesUp: (error: unknown) => boolean
  readonly #depth: LaneDepth
  #lanesFirst: boolean
  #lastLanes = -Infinity
  /** When the database was away last. */
  #lastAway = -Infinity
  /** Claims of all that was due. */
  readonly #complete = new WeakSet<Claim>()
  readonly #low = { messages: new LowWater(), lanes: new LowWater() }

  constructor(runtime: Runtime, consumer: ConsumerDeclaration, pace: Pace, givesUp: (error: unknown) => boolean) {
    this.#runtime = runtime
    this.#consumer = consumer
    this.#pace = pace
    this.#givesUp = givesUp
    this.#depth = new LaneDepth(consumer.options.group)
    this.#lanesFirst = consumer.options.order === 'key'
  }

  noteAway(error: unknown): void {
    if (isAway(error)) this.#lastAway = performance.now()
  }

  /** What waits to be given back here was cut off in an outage that may not be over. */
  get calm(): boolean {
    return this.releasing.size > 0 || performance.now() - this.#lastAway < GRACE_MS
  }

  /** The next claim leaves nothing out. */
  lookEverywhere(): void {
    this.#lastLanes = -Infinity
    this.#low.messages.forget()
    this.#low.lanes.forget()
  }

  /** Claims some of what is due: of all that has fallen due by `until`, if it is given. */
  async next(until?: string): Promise<Claim | undefined> {
    // Leases that ran out while the database was away are ours to give back: to claim them would count as a death.
    if (this.releasing.size > 0) {
      await Promise.allSettled(this.releasing)
      this.#lastAway = performance.now()
    }
    // Messages without a key must not starve behind those with one, nor the other way round.
    this.#lanesFirst = !this.#lanesFirst
    if (this.#lanesFirst) return (await this.#lanes(until)) ?? (await this.#messages(until))
    return (await this.#messages(until)) ?? (await this.#lanes(until))
  }

  /** How long until something falls due, as far as is known: 0 if something is. */
  async nextDueMs(): Promise<number | undefined> {
    const { messages, lanes } = this.#low
    const low = messages.hint
    const lanesLow = lanes.hint
    const isAll = low === undefined || lanesLow === undefined
    const row = isAll
      ? await messages.lookAtAll(() => lanes.lookAtAll(() => this.#nextDue({}), lookOf), lookOf)
      : await this.#nextDue({ low, lanesLow })
    if (row?.ms === '0') {
      // Something is due that a look at messages alone, or from the hint on, did not find.
      if (isAll) this.lookEverywhere()
      this.#lastLanes = -Infinity
    }
    return row?.ms == null ? undefined : Number(row.ms)
  }

  async #nextDue(from: { low?: string; lanesLow?: string }): Promise<NextDue | undefined> {
    const [row] = await this.#runtime.db.run(NEXT_DUE, { consumer: this.#consumer.name, ...from })
    return row
  }

  /** May something be due that this claim has left? */
  mayHaveLeft(claim: Claim): boolean {
    return !this.#complete.has(claim)
  }

  /** However long it takes: a claim that is left to run out makes its messages suspects. */
  giveBackLater(giveBack: () => Promise<void>): void {
    const late = this.#giveBack(giveBack).finally(() => this.releasing.delete(late))
    this.releasing.add(late)
  }

  async #giveBack(giveBack: () => Promise<void>): Promise<void> {
    for (let attempt = 0; ; attempt++) {
      await sleep(backoffMs(attempt, 20, 500))
      try {
        return await giveBack()
      } catch (error) {
        if (this.#givesUp(error)) return
      }
    }
  }

  /** A claim may stand though its answer was lost: then it is given back. */
  async #claim<T>(claim: (token: string) => Promise<T>): Promise<T> {
    const token = randomUUID()
    const asked = performance.now()
    try {
      return await claim(token)
    } catch (error) {
      const unheard = { runtime: this.#runtime, consumer: this.#consumer, token, asked }
      this.giveBackLater(() => giveBackUnheard(unheard))
      throw error
    }
  }

  async #lanes(until: string | undefined): Promise<Claim | undefined> {
    const isOrdered = this.#consumer.options.order === 'key'
    if (!isOrdered && until === undefined && performance.now() - this.#lastLanes < LANES_LOOK_MS) return undefined
    const asked = { limit: this.#pace.claimSize, depth: this.#depth, until, calm: this.calm }
    const claim = (low?: string): Promise<ClaimedLanes | undefined> =>
      this.#claim((token) => claimLanes(this.#runtime, this.#consumer, token, { ...asked, low }))
    const { lanes } = this.#low
    const found = await (until === undefined ? lanes.claim(claim) : lanes.claimAny(claim))
    // Where there was one there may be more.
    if (!found) this.#lastLanes = performance.now()
    return found?.claim
  }

  async #messages(until: string | undefined): Promise<Claim | undefined> {
    const size = this.#pace.claimSize
    const asked = { limit: size, until, calm: this.calm }
    const claim = (low?: string): Promise<ClaimedMessages | undefined> =>
      this.#claim((token) => claimMessages(this.#runtime, this.#consumer, token, { ...asked, low }))
    const { messages } = this.#low
    const found = await (until === undefined ? messages.claim(claim) : messages.claimAny(claim))
    this.#pace.claimed(found?.claim.queue.length ?? 0, size)
    // An ordered consumer has lanes besides.
    if (found?.isAll && this.#consumer.options.order === 'none') this.#complete.add(found.claim)
    return found?.claim
  }
}

/** If nothing is due now, nothing had fallen due before. */
function lookOf(row: NextDue | undefined): Look {
  return row ? { now: row.ms === '0' ? undefined : Number(row.now), tookMs: Number(row.took) } : {}
}
