/**
 * What the server has delivered here, and what is neither acknowledged nor given back.
 *
 *     came → waits for its time, in the order of the stream → taken, to be delivered → settled, or put back into its place
 *
 * What comes behind a gap is put aside, until the gap is closed.
 */
import type { JsMsg } from '@nats-io/jetstream'
import type { Incoming } from '../../message.js'
import { firstInOrder, takeInOrder } from '../in-order.js'

/** A message that is held here: `raw` is its latest delivery by the server. */
export interface Held {
  raw: JsMsg
  readonly incoming: Incoming
  /** Not to be delivered before, by `performance.now()`; undefined if it was not yet. */
  dueAt: number | undefined
  /** How often it failed here. */
  failures: number
}

export class Holding {
  #waiting: Held[] = []
  #aside: Held[] = []
  /** All of it, in the order of the stream. */
  readonly #held = new Set<Held>()
  readonly #bySequence = new Map<number, Held>()
  #bytes = 0

  get count(): number {
    return this.#held.size
  }

  get bytes(): number {
    return this.#bytes
  }

  /** How many are not being delivered. */
  get waitingCount(): number {
    return this.#waiting.length + this.#aside.length
  }

  /** Does one of them wait for its retry? */
  get hasFailed(): boolean {
    return this.#waiting.some(({ failures }) => failures > 0)
  }

  /**
   * Answers whether it was here before: the server delivers again what it has heard nothing of, when the connection was lost,
   * and it keeps its place.
   */
  add(raw: JsMsg, read: (raw: JsMsg) => Incoming, isBehindGap: boolean): boolean {
    const known = this.#bySequence.get(raw.seq)
    if (known?.raw.timestampNanos === raw.timestampNanos) {
      known.raw = raw
      return true
    }
    const one = { raw, incoming: read(raw), dueAt: undefined, failures: 0 }
    ;(isBehindGap ? this.#aside : this.#waiting).push(one)
    this.#held.add(one)
    this.#bySequence.set(raw.seq, one)
    this.#bytes += raw.data.length
    return false
  }

  hasDue(): boolean {
    return this.#due(1).taken.length > 0
  }

  /** When the first will be due, by `performance.now()`; Infinity if nothing waits. */
  firstDueAt(): number {
    return firstInOrder(this.#waiting, { keyOf }).reduce((least, { dueAt = 0 }) => Math.min(least, dueAt), Infinity)
  }

  /** Some that are due, to be settled or put back. */
  take(most: number): readonly Held[] {
    const { taken, rest } = this.#due(most)
    this.#waiting = rest
    return taken
  }

  putBack(some: readonly Held[]): void {
    const places = new Map([...this.#held].map((one, place) => [one, place]))
    this.#waiting = [...some, ...this.#waiting].sort((a, b) => places.get(a)! - places.get(b)!)
  }

  /** The gap is closed: what came meanwhile has its place in the stream. */
  joinAside(): void {
    const inOrder = [...this.#held].sort((a, b) => a.raw.seq - b.raw.seq)
    this.#held.clear()
    for (const one of inOrder) this.#held.add(one)
    this.putBack(this.#aside)
    this.#aside = []
  }

  settle(one: Held, how: (message: JsMsg) => void): void {
    this.#held.delete(one)
    this.#bytes -= one.raw.data.length
    if (this.#bySequence.get(one.raw.seq) === one) this.#bySequence.delete(one.raw.seq)
    tell(one, how)
  }

  /** In the order of the stream, and all of a key after the time of its first: else what follows it would come before it. */
  giveBack(): void {
    const now = performance.now()
    const firsts = new Map<string, Held>()
    for (const one of this.#waiting) {
      const key = keyOf(one)
      if (key !== undefined && !firsts.has(key)) firsts.set(key, one)
      const { dueAt = 0 } = key === undefined ? one : firsts.get(key)!
      this.settle(one, (message) => message.nak(dueAt > now ? Math.ceil(dueAt - now) : undefined))
    }
  }

  /** Tells the server that all of it is worked on. */
  keep(): void {
    for (const one of this.#held) tell(one, (message) => message.working())
  }

  #due(most: number): ReturnType<typeof takeInOrder<Held>> {
    const now = performance.now()
    return takeInOrder(this.#waiting, most, { keyOf, isDue: ({ dueAt = 0 }) => dueAt <= now })
  }
}

function keyOf({ incoming }: Held): string | undefined {
  return incoming.key
}

function tell({ raw }: Held, what: (message: JsMsg) => void): void {
  try {
    what(raw)
  } catch {
    // The connection is closed. The server will deliver it again, and the box knows it.
  }
}
