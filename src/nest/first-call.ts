/**
 * The one call of a handler: what it has thrown, and whether it still runs, whatever interceptors make of it. One that catches an
 * error, or answers in the handler's place after a while, would make a message handled of which half was done. One that calls the
 * handler again, as a second `subscribe` of `next.handle()` does, would commit what it writes twice: it gets the first answer.
 */
import { OnceboxError } from '../errors.js'

type Method = (...args: unknown[]) => unknown

interface Called {
  answer: Promise<unknown>
  running: boolean
  failure?: { readonly error: unknown }
}

export class FirstCall {
  /** By the context that it was made with: each attempt has its own. */
  readonly #calls = new WeakMap<object, Called>()

  /** The method, to Nest too: with its metadata, by which guards and interceptors are found. */
  noting(method: Method): Method {
    const noted = new Proxy(method, {
      apply: (_, self, args: unknown[]) => {
        const ctx = args[1] as object
        let called = this.#calls.get(ctx)
        if (!called) this.#calls.set(ctx, (called = begin(() => Reflect.apply(method, self, args))))
        return called.answer
      },
    })
    const { getMetadataKeys, getMetadata, defineMetadata } = Reflect as unknown as Metadata
    for (const key of getMetadataKeys(method)) defineMetadata(key, getMetadata(key, method), noted)
    return noted
  }

  /** The answer of a call, if its handler has returned. What an interceptor throws in its place counts. */
  async checked(ctx: object, answer: Promise<unknown>): Promise<unknown> {
    const result = await answer
    const called = this.#calls.get(ctx)
    if (called?.failure) throw called.failure.error
    if (called?.running) {
      const advice = 'let it wait for the handler, or throw; timeoutMs of the consumer is a deadline'
      throw new OnceboxError('UNAWAITED_CALL', `an interceptor answered while the handler still ran; ${advice}`)
    }
    return result
  }
}

function begin(call: () => unknown): Called {
  const run = async (): Promise<unknown> => {
    try {
      return await lastOf(await call())
    } catch (error) {
      called.failure = { error }
      throw error
    } finally {
      called.running = false
    }
  }
  const called: Called = { answer: Promise.resolve(), running: true }
  called.answer = run()
  return called
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
