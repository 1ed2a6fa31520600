/**
 * What waits to be delivered, in the order of the queue. It is taken batch by batch, and of a key nothing while an earlier
 * message of it is on its way, waits for its time, or is yet to come again.
 */
import { firstInOrder, takeInOrder } from '../in-order.js'
import type { RabbitMessage } from './client.js'
import type { Comeback, Placed } from './comeback.js'
import type { ResolvedSource } from './options.js'
import type { Held } from './windows.js'

export interface Delivery extends Placed {
  readonly raw: RabbitMessage
  /** How often the box did not take it. */
  returns: number
  /** Not to be delivered before, by `performance.now()`. */
  dueAt: number
}

export class Waiting {
  readonly #options: ResolvedSource
  /** Keys of which something is on its way. */
  readonly #keys: Set<string>
  readonly #comeback: Comeback
  #list: Delivery[] = []
  readonly #turn = {
    keyOf: ({ incoming }: Delivery): string | undefined => incoming.key,
    isInFlight: (key: string): boolean => this.#keys.has(key),
  }

  constructor(options: ResolvedSource, keys: Set<string>, comeback: Comeback) {
    this.#options = options
    this.#keys = keys
    this.#comeback = comeback
  }

  get isEmpty(): boolean {
    return this.#list.length === 0
  }

  get isFull(): boolean {
    return this.#list.length >= this.#options.batch
  }

  /** At the end. */
  add(delivery: Delivery): void {
    this.#list.push(delivery)
  }

  /** In their places. */
  putBack(deliveries: readonly Delivery[]): void {
    if (deliveries.length === 0) return
    this.#list = [...this.#list, ...deliveries].sort((a, b) => a.place - b.place)
  }

  /** The next batch, whose keys are in flight until they are let go. */
  take(now: number): Delivery[] {
    const { isFull } = this
    const { taken, rest } = takeInOrder(this.#list, this.#options.batch, {
      ...this.#turn,
      isDue: (one) => (one.dueAt <= now || (isFull && one.returns === 0)) && this.#comeback.waitsUntil(one) === 0,
    })
    if (taken.length === 0) return taken
    this.#list = rest
    for (const { incoming } of taken) if (incoming.key !== undefined) this.#keys.add(incoming.key)
    return taken
  }

  letGo(batch: readonly Delivery[]): void {
    for (const { incoming } of batch) if (incoming.key !== undefined) this.#keys.delete(incoming.key)
  }

  /** When the next one is due. Infinity: all of it waits behind something in flight. */
  nextDue(): number {
    return firstInOrder(this.#list, this.#turn).reduce(
      (least, one) => Math.min(least, Math.max(one.dueAt, this.#comeback.waitsUntil(one))),
      Infinity,
    )
  }

  /** What cannot go on yet, and what is behind it in its key. Fewer than half a window hold up nothing. */
  held(now: number): Omit<Held, 'all'> {
    let messages = 0
    let bytes = 0
    const stuck = new Set<string>()
    if (this.#list.length * 2 > this.#options.prefetch) {
      for (const one of this.#list) {
        const { key } = one.incoming
        if (!(key !== undefined && stuck.has(key)) && !this.#waits(one, now)) continue
        if (key !== undefined) stuck.add(key)
        messages++
        bytes += one.raw.content.length
      }
    }
    return { messages, bytes }
  }

  #waits(one: Delivery, now: number): boolean {
    return (one.returns > 0 && one.dueAt > now) || this.#comeback.waitsUntil(one) > 0
  }
}
