/**
 * What a handler has thrown, and whether it still runs, whatever interceptors make of it: one that catches an error, calls the
 * handler again in the same transaction, or answers in its place after a while, would make a message handled of which half was
 * done.
 */
import { OnceboxError } from '../errors.js'

type Method = (...args: unknown[]) => unknown

export class FirstFailure {
  /** By the context that a call was made with. */
  readonly #failures = new WeakMap<object, { readonly error: unknown }>()
  readonly #running = new WeakMap<object, number>()

  /** The method, to Nest too: with its metadata, by which guards and interceptors are found. */
  noting(method: Method): Method {
    const noted = new Proxy(method, {
      apply: async (_, self, args: unknown[]) => {
        const ctx = args[1] as object
        this.#count(ctx, 1)
        try {
          return await lastOf(await Reflect.apply<unknown, unknown[], unknown>(method, self, args))
        } catch (error) {
          if (!this.#failures.has(ctx)) this.#failures.set(ctx, { error })
          throw error
        } finally {
          this.#count(ctx, -1)
        }
      },
    })
    const { getMetadataKeys, getMetadata, defineMetadata } = Reflect as unknown as Metadata
    for (const key of getMetadataKeys(method)) defineMetadata(key, getMetadata(key, method), noted)
    return noted
  }

  /** The answer of a call, if its handler has returned. What an interceptor throws in its place counts. */
  async checked(ctx: object, answer: Promise<unknown>): Promise<unknown> {
    const result = await answer
    const failure = this.#failures.get(ctx)
    if (failure) throw failure.error
    if (this.#running.get(ctx)) {
      const advice = 'let it wait for the handler, or throw; timeoutMs of the consumer is a deadline'
      throw new OnceboxError('UNAWAITED_CALL', `an interceptor answered while the handler still ran; ${advice}`)
    }
    return result
  }

  #count(ctx: object, change: 1 | -1): void {
    this.#running.set(ctx, (this.#running.get(ctx) ?? 0) + change)
  }
}

/** A handler may answer an observable, which runs until it completes: Nest takes its last value. */
function lastOf(result: unknown): unknown {
  const { subscribe, pipe } = Object(result) as Partial<Observable>
  if (typeof subscribe !== 'function' || typeof pipe !== 'function') return result
  return new Promise((resolve, reject) => {
    let last: unknown
    const next = (value: unknown): void => void (last = value)
    ;(result as Observable).subscribe({ next, error: reject, complete: () => resolve(last) })
  })
}

/** Of rxjs, as far as it is needed. */
interface Observable {
  subscribe(observer: { next(value: unknown): void; error(error: unknown): void; complete(): void }): unknown
  pipe(): unknown
}

/** Of reflect-metadata, which Nest has loaded. */
interface Metadata {
  getMetadataKeys(target: object): unknown[]
  getMetadata(key: unknown, target: object): unknown
  defineMetadata(key: unknown, value: unknown, target: object): void
}
