/**
 * Work on a handler's transaction that a client begins at once, such as a transaction within it. Work that nobody awaited,
 * or that is under way when the handler has returned, fails the message; its rejection must not end the process.
 */
import { ignore } from '../postgres/drivers/watch.js'

const HEEDS = new Set<string | symbol>(['then', 'catch', 'finally', 'asCallback'])

export class Heeded {
  readonly #pending = new Set<PromiseLike<unknown>>()
  readonly #unheeded = new Set<PromiseLike<unknown>>()

  /** How much is under way. */
  get pending(): number {
    return this.#pending.size
  }

  /** How much is under way, or was awaited by nobody. */
  get count(): number {
    return new Set([...this.#pending, ...this.#unheeded]).size
  }

  /** The same promise; `await` asks for its `then`, which it would not do of a native one. */
  watch<P extends PromiseLike<unknown>>(work: P): P {
    this.#pending.add(work)
    this.#unheeded.add(work)
    const settled = (): boolean => this.#pending.delete(work)
    work.then(settled, settled).then(ignore, ignore)
    return new Proxy(work, {
      get: (_, key) => {
        const value: unknown = Reflect.get(work, key, work)
        if (!HEEDS.has(key)) return value
        this.#unheeded.delete(work)
        return (value as () => unknown).bind(work)
      },
    })
  }

  /** Resolves once what is under way now has settled. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#pending)
  }
}
