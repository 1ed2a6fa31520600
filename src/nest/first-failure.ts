/**
 * What a handler has thrown, whatever interceptors make of it: one that catches an error, or calls the handler again in the
 * same transaction, would make a message handled of which half was done.
 */
type Method = (...args: unknown[]) => unknown

export class FirstFailure {
  /** By the context that a call was made with. */
  readonly #failures = new WeakMap<object, { readonly error: unknown }>()

  /** The method, to Nest too: with its metadata, by which guards and interceptors are found. */
  noting(method: Method): Method {
    const noted = new Proxy(method, {
      apply: async (_, self, args: unknown[]) => {
        try {
          return await Reflect.apply<unknown, unknown[], unknown>(method, self, args)
        } catch (error) {
          const ctx = args[1] as object
          if (!this.#failures.has(ctx)) this.#failures.set(ctx, { error })
          throw error
        }
      },
    })
    const { getMetadataKeys, getMetadata, defineMetadata } = Reflect as unknown as Metadata
    for (const key of getMetadataKeys(method)) defineMetadata(key, getMetadata(key, method), noted)
    return noted
  }

  /** The answer of a call, if its handler has thrown nothing. What an interceptor throws in its place counts. */
  async checked(ctx: object, answer: Promise<unknown>): Promise<unknown> {
    const result = await answer
    const failure = this.#failures.get(ctx)
    if (failure) throw failure.error
    return result
  }
}

/** Of reflect-metadata, which Nest has loaded. */
interface Metadata {
  getMetadataKeys(target: object): unknown[]
  getMetadata(key: unknown, target: object): unknown
  defineMetadata(key: unknown, value: unknown, target: object): void
}
