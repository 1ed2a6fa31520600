/** MikroORM hands out its pool of pg by a promise: until it has come, a request for a connection waits for it. */
import type { PgPool } from '../../postgres/drivers/pg.js'
import { limitOpening, type Openable } from '../../postgres/drivers/pg/checkout.js'
import { isPgPool, wrongClient } from '../../postgres/drivers/wrong-client.js'

interface Pool extends Openable {
  connect(...args: unknown[]): unknown
  on(event: string, listener: unknown): unknown
}

export interface LazyPool {
  readonly pool: PgPool<never>
  /** False until it has come. */
  isKnown(): boolean
  /** Rejects if it has none. */
  ready(): Promise<void>
}

export function lazyPool(native: () => Promise<unknown>): LazyPool {
  let known: Pool | undefined
  let asked: Promise<Pool> | undefined
  /** Listeners that were added before. */
  const early: [event: string, listener: unknown][] = []
  const ask = (): Promise<Pool> => {
    asked ??= native().then((pool) => {
      if (!isPgPool(pool)) throw wrongClient('fromMikroOrm', pool, 'a MikroORM for PostgreSQL, on a pool of pg')
      known = pool as Pool
      // Whoever was given it before had nothing to limit.
      limitOpening(known)
      for (const [event, listener] of early.splice(0)) known.on(event, listener)
      return known
    })
    // A server that is away now may be back when somebody asks again.
    asked.catch(() => (asked = undefined))
    return asked
  }
  const on = (event: string, listener: unknown): unknown =>
    known ? known.on(event, listener) : early.push([event, listener])
  const connect = (...args: unknown[]): unknown =>
    known ? known.connect(...args) : ask().then((pool) => pool.connect(...args))
  const pool = new Proxy({} as PgPool<never>, {
    get(_, key) {
      if (key === 'connect') return connect
      if (key === 'on') return on
      const value: unknown = known && Reflect.get(known, key, known)
      // A class is a function too, and is to stay what it is.
      return typeof value === 'function' && key !== 'Client' ? (value.bind(known) as unknown) : value
    },
  })
  return { pool, isKnown: () => known !== undefined, ready: () => ask().then(() => undefined) }
}
