/** What the broker waits for an answer to, by delivery tag. The tags of a channel count up, so they are in the order of delivery. */
import type { RabbitChannel, RabbitMessage, Session } from './client.js'

interface Delivered {
  readonly raw: RabbitMessage
}

export class Unacknowledged<T extends Delivered> {
  readonly #session: Session<RabbitChannel>
  readonly #byTag = new Map<number, T>()

  constructor(session: Session<RabbitChannel>) {
    this.#session = session
  }

  get size(): number {
    return this.#byTag.size
  }

  all(): Iterable<T> {
    return this.#byTag.values()
  }

  add(one: T): void {
    this.#byTag.set(tagOf(one), one)
  }

  /** Answers the broker: `taken` are acknowledged, `rejected` become dead letters. */
  settle(taken: readonly T[], rejected: readonly T[]): void {
    try {
      this.#reject(rejected)
      this.#acknowledge(taken)
    } catch (error) {
      // The channel is closed. The broker delivers again, and the box knows what it has.
      this.#session.fail(error)
    }
  }

  #reject(rejected: readonly T[]): void {
    for (const one of rejected) {
      this.#session.channel.nack(one.raw, false, false)
      this.#byTag.delete(tagOf(one))
    }
  }

  /** With one word for all that come before everything that is still open, and one for each of the others. */
  #acknowledge(taken: readonly T[]): void {
    const rest = new Map(taken.map((one) => [tagOf(one), one]))
    let last: T | undefined
    for (const tag of this.#byTag.keys()) {
      const one = rest.get(tag)
      if (!one) break
      last = one
      rest.delete(tag)
      this.#byTag.delete(tag)
    }
    if (last) this.#session.channel.ack(last.raw, true)
    for (const [tag, one] of rest) {
      this.#session.channel.ack(one.raw)
      this.#byTag.delete(tag)
    }
  }
}

function tagOf({ raw }: Delivered): number {
  return raw.fields.deliveryTag
}
