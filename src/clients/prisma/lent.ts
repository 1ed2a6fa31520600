/**
 * Prisma's transaction as one handler gets it: of no use once the handler has returned, and aware of promises that nobody
 * awaited. Prisma sends nothing before somebody does, so such a statement would be missing without a word.
 */
import { OnceboxError } from '../../errors.js'
import { forgottenQuery, transactionClosed, unawaitedQuery } from '../../postgres/drivers/loan-errors.js'
import { refused } from '../../postgres/drivers/watch.js'
import { Heeded } from '../heeded.js'
import { inPlace, type Place, type Queryable, type Stage } from './stage.js'

type Method = (...args: unknown[]) => unknown

export class Lent implements Place {
  readonly stage: Stage
  readonly client: Queryable
  readonly tx: object
  isOpen = true
  /** Made, and awaited by nobody so far. */
  readonly #made = new Set<object>()
  readonly #within = new Heeded()

  constructor(stage: Stage, client: Queryable) {
    this.stage = stage
    this.client = client
    this.tx = this.#guard(stage.tx!)
  }

  /** A promise that rejects if the handler has forgotten a statement, once those that are under way were answered. */
  leave(): undefined | Promise<void> {
    const [made, begun] = [this.#made.size, this.#within.count]
    if (made + begun > 0) return this.#refuse(made, begun)
    this.isOpen = false
    return undefined
  }

  async #refuse(made: number, begun: number): Promise<never> {
    await this.#within.settled(() => this.stage.phase !== 'open')
    this.isOpen = false
    throw begun > 0 ? unawaitedQuery(begun) : forgottenQuery(made)
  }

  /** The transaction, or what is on it: models, and what extensions have added. */
  #guard(target: object): object {
    return standIn(target, (key) => {
      const value: unknown = Reflect.get(target, key, target)
      if (typeof key === 'symbol' || key.startsWith('_')) return value
      if (typeof value === 'function') return key === 'constructor' ? value : this.#method(target, key, value as Method)
      return typeof value === 'object' && value !== null ? this.#guard(value) : value
    })
  }

  #method(target: object, name: string, method: Method): Method {
    return (...args) => {
      if (!this.isOpen) return tooLate()
      if (name === '$transaction') return this.#transaction(target, method, args)
      const answer = inPlace(this, () => Reflect.apply(method, target, args))
      if (isPrismaPromise(answer)) return this.#watch(answer)
      // Of an extension, which may do something else first.
      return answer instanceof Promise ? this.#within.watch(answer) : answer
    }
  }

  #transaction(target: object, method: Method, [work, ...options]: unknown[]): unknown {
    if (typeof work !== 'function') return refused(apart())
    const inner = (tx: object): unknown => (work as Method)(this.#guard(tx))
    const answer = inPlace(this, () => Reflect.apply(method, target, [inner, ...options]))
    return this.#within.watch(answer as Promise<unknown>)
  }

  /** Counts a promise of Prisma's: as made until somebody awaits it or goes on from it, as begun until it is answered. */
  #watch(promise: PromiseLike<unknown>): object {
    this.#made.add(promise)
    return standIn(promise, (key) => {
      const value: unknown = Reflect.get(promise, key, promise)
      if (typeof value !== 'function') return value
      return (...args: unknown[]) => {
        const awaits = key === 'then' || key === 'catch' || key === 'finally'
        if (!this.isOpen) return awaits ? Reflect.apply(Promise.prototype[key] as Method, tooLate(), args) : tooLate()
        const isFirst = this.#made.delete(promise)
        // Before whoever awaits it: they are told last, and may return at once.
        if (isFirst && awaits) inPlace(this, () => this.#within.begun(promise))
        const answer = inPlace(this, () => Reflect.apply(value as Method, promise, args))
        // Its relations: `findUnique().orders()`.
        return isPrismaPromise(answer) ? this.#watch(answer) : answer
      }
    })
  }
}

/**
 * The same in all respects but what is read of it. It is not a proxy of the original, which is one of Prisma's: after each read
 * the engine would ask that one for a descriptor, in which Prisma makes several objects.
 */
function standIn(original: object, get: (key: string | symbol) => unknown): object {
  return new Proxy({}, new StandIn(original, get))
}

class StandIn implements ProxyHandler<object> {
  readonly #original: object
  readonly #get: (key: string | symbol) => unknown

  constructor(original: object, get: (key: string | symbol) => unknown) {
    this.#original = original
    this.#get = get
  }

  get(_: object, key: string | symbol): unknown {
    return this.#get(key)
  }

  set(_: object, key: string | symbol, value: unknown): boolean {
    return Reflect.set(this.#original, key, value)
  }

  has(_: object, key: string | symbol): boolean {
    return Reflect.has(this.#original, key)
  }

  ownKeys(): (string | symbol)[] {
    return Reflect.ownKeys(this.#original)
  }

  getOwnPropertyDescriptor(_: object, key: string | symbol): PropertyDescriptor | undefined {
    const found = Reflect.getOwnPropertyDescriptor(this.#original, key)
    // What the stand-in has not must not seem to be fixed.
    return found && { ...found, configurable: true }
  }

  getPrototypeOf(): object | null {
    return Reflect.getPrototypeOf(this.#original)
  }
}

function tooLate(): Promise<never> {
  return refused(transactionClosed())
}

function isPrismaPromise(value: unknown): value is PromiseLike<unknown> {
  return (value as { [Symbol.toStringTag]?: unknown } | null | undefined)?.[Symbol.toStringTag] === 'PrismaPromise'
}

/** Prisma runs a list on a connection of its own, whatever it is called on. */
function apart(): OnceboxError {
  return new OnceboxError(
    'TRANSACTION_REQUIRED',
    'tx.$transaction([…]) would commit on its own, whatever becomes of the handler: await the statements one after the ' +
      'other, or pass a function',
  )
}
