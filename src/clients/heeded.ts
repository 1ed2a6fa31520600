/**
 * Work on a handler's transaction that a client begins at once, such as a transaction within it. Work that nobody awaited,
 * or that is under way when the handler has returned, fails the message; its rejection must not end the process.
 */
import { unawaitedQuery } from '../postgres/drivers/loan-errors.js'
import { whenSent } from '../postgres/drivers/watch.js'

const HEEDS = new Set<string | symbol>(['then', 'catch', 'finally', 'asCallback'])

export class Heeded {
  readonly #pending = new Set<PromiseLike<unknown>>()
  readonly #unheeded = new Set<PromiseLike<unknown>>()
  #isOver = false

  /** The transaction is. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** How much is under way, or was awaited by nobody. */
  get count(): number {
    let count = this.#pending.size
    for (const work of this.#unheeded) if (!this.#pending.has(work)) count += 1
    return count
  }

  /** The same promise; `await` asks for its `then`, which it would not do of a native one. */
  watch<P extends PromiseLike<unknown>>(work: P): P {
    this.#unheeded.add(work)
    this.begun(work)
    return new Proxy(work, {
      get: (_, key) => {
        const value: unknown = Reflect.get(work, key, work)
        if (!HEEDS.has(key)) return value
        this.#unheeded.delete(work)
        return (value as () => unknown).bind(work)
      },
    })
  }

  /** Under way, and awaited by somebody. */
  begun(work: PromiseLike<unknown>): void {
    this.#pending.add(work)
    const settled = (): boolean => this.#pending.delete(work)
    void work.then(settled, settled)
  }

  /** A promise that rejects if anything is under way, or was awaited by nobody: once it has ended, or the transaction is over. */
  leave(): undefined | Promise<void> {
    const { count } = this
    return count > 0 ? this.#refuse(count) : undefined
  }

  async #refuse(count: number): Promise<never> {
    await this.settled(() => this.#isOver)
    throw unawaitedQuery(count)
  }

  /** The transaction is over: nothing is waited for any longer. */
  close(): void {
    this.#isOver = true
  }

  /** Resolves once nothing is under way any more, or what it waits for is over. */
  async settled(isOver: () => boolean): Promise<void> {
    while (this.#pending.size > 0 && !isOver()) {
      await Promise.allSettled(this.#pending)
      // The code that awaited one may go on with the next.
      await whenSent()
    }
  }
}
