/**
 * Entries that may not be acknowledged yet. Redis has no way to give an entry back: it stays pending, and waits here until its
 * time has come. What is behind it in its key waits with it.
 */
import type { Incoming } from '../../message.js'
import { firstInOrder, takeInOrder } from '../in-order.js'
import { comparePlaces, placeOf } from './id.js'

/** An entry as the box gets it. */
export interface Delivery {
  readonly id: string
  readonly incoming: Incoming
  readonly key: string | undefined
  /** It was given to nobody else before. */
  readonly isFresh: boolean
  /** How often it failed here. */
  readonly failures: number
}

export interface WaitingEntry {
  readonly id: string
  readonly place: bigint
  readonly key: string | undefined
  /** Not to be delivered before, by `performance.now()`: no clock that is set stalls it. */
  readonly at: number
  readonly isFresh: boolean
  readonly failures: number
}

export class Waiting {
  readonly #entries = new Map<string, WaitingEntry>()
  /** In the order of the stream; undefined after a change. */
  #sorted: readonly WaitingEntry[] | undefined

  get size(): number {
    return this.#entries.size
  }

  has(id: string): boolean {
    return this.#entries.has(id)
  }

  ids(): string[] {
    return [...this.#entries.keys()]
  }

  add({ id, key, isFresh, failures }: Delivery, delayMs: number): void {
    const at = performance.now() + delayMs
    this.#entries.set(id, { id, place: placeOf(id), key, at, isFresh, failures })
    this.#sorted = undefined
  }

  remove(ids: readonly string[]): void {
    for (const id of ids) this.#entries.delete(id)
    this.#sorted = undefined
  }

  /** Entries whose time has come, none before an earlier one of its key. They stay here until they are removed. */
  due(most: number): readonly WaitingEntry[] {
    const now = performance.now()
    return takeInOrder(this.#inOrder(), most, { keyOf, isDue: ({ at }) => at <= now }).taken
  }

  /** When the next entry is due, by `performance.now()`; Infinity if nothing waits. */
  nextDueAt(): number {
    return firstInOrder(this.#inOrder(), { keyOf }).reduce((least, { at }) => Math.min(least, at), Infinity)
  }

  /** The deliveries that are not behind a waiting entry of their key. The others begin to wait. */
  letPass(deliveries: readonly Delivery[]): readonly Delivery[] {
    const firstOfKey = new Map<string, bigint>()
    for (const { key, place } of this.#inOrder()) {
      if (key !== undefined && !firstOfKey.has(key)) firstOfKey.set(key, place)
    }
    return deliveries.filter((one) => {
      const first = one.key === undefined ? undefined : firstOfKey.get(one.key)
      const isFree = first === undefined || placeOf(one.id) < first
      if (!isFree) this.add(one, 0)
      return isFree
    })
  }

  #inOrder(): readonly WaitingEntry[] {
    return (this.#sorted ??= [...this.#entries.values()].sort((a, b) => comparePlaces(a.place, b.place)))
  }
}

function keyOf({ key }: WaitingEntry): string | undefined {
  return key
}
