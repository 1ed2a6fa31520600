/**
 * A client that sits on pg's, as ORMs do: it keeps writes back until it is flushed, wraps errors, and is found by its async
 * context. Its driver binds it to what the driver of pg lends.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type pg from 'pg'
import type { Driver } from 'oncebox'
import { fromPg } from 'oncebox/pg'

export class UnitOfWork {
  static readonly #context = new AsyncLocalStorage<UnitOfWork>()
  readonly client: pg.ClientBase
  readonly #kept: string[] = []

  constructor(client: pg.ClientBase) {
    this.client = client
  }

  /** The one that a handler runs in. */
  static get current(): UnitOfWork | undefined {
    return UnitOfWork.#context.getStore()
  }

  within<R>(work: () => Promise<R>): Promise<R> {
    return UnitOfWork.#context.run(this, work)
  }

  keep(text: string): void {
    this.#kept.push(text)
  }

  async flush(): Promise<void> {
    for (const text of this.#kept.splice(0)) await this.query(text)
  }

  async query(text: string): Promise<unknown> {
    return this.client.query(text).catch((error: unknown) => {
      throw Object.assign(new Error(`query failed: ${text}`), { original: error })
    })
  }
}

export function fromUnits(pool: pg.Pool): Driver<UnitOfWork> {
  const base = fromPg(pool)
  const clientOf = (unit: UnitOfWork | undefined) => (unit === undefined ? undefined : (unit?.client ?? unit)) as never
  return {
    pipelines: base.pipelines,
    capacity: base.capacity,
    query: (text, values, unit, options) => base.query(text, values, clientOf(unit), options),
    transaction: (work, options) => base.transaction((client) => work(new UnitOfWork(client)), options),
    listen: (channel, wake) => base.listen!(channel, wake),
    silentMs: (unit) => base.silentMs!(clientOf(unit)),
    hangUp: (unit, reason) => base.hangUp!(clientOf(unit), reason),
    lend(unit) {
      const { tx, giveBack } = base.lend!(clientOf(unit))
      const lent = new UnitOfWork(tx)
      return {
        tx: lent,
        run: (handler) =>
          lent
            .within(async () => {
              const result = await handler()
              await lent.flush()
              return result
            })
            .catch((error: { original?: unknown } | undefined) => {
              throw error?.original === undefined ? error : Object.assign(error, { cause: error.original })
            }),
        giveBack,
      }
    },
  }
}
