/**
 * A transaction of Prisma on a client that oncebox has begun on.
 *
 * Prisma's adapter asks the pool for a client, sends BEGIN, and at the end COMMIT or ROLLBACK. Asked in the async context of
 * a stage, the pool answers with the stage's own client instead, on which what begins and ends a transaction reaches nobody.
 * A stage is taken once: whatever else the handler begins on Prisma runs on a connection of its own, as it would elsewhere.
 *
 *     waiting → beginning (the pool was asked) → open (Prisma has called us) → ending (our work is done)
 */
import { sharedByCopies } from '../../copies.js'
import { AsyncLocalStorage } from 'node:async_hooks'
import { transactionClosed } from '../../postgres/drivers/loan-errors.js'
import { refused } from '../../postgres/drivers/watch.js'

/** A client of pg, or one that is lent. */
export interface Queryable {
  query(statement: unknown): Promise<unknown>
}

/** A call of a handler: its statements go to the client that it was lent, until it has returned. */
export interface Place {
  readonly stage: Stage
  readonly client?: Queryable
  readonly isOpen?: boolean
}

/** Where a statement comes from. Prisma keeps the async context of the caller. */
const places = sharedByCopies('prisma-places', () => new AsyncLocalStorage<Place>())

export function inPlace<R>(place: Place, work: () => R): R {
  return places.run(place, work)
}

/** What Prisma's adapter reads of an answer to BEGIN and its like. */
const NOTHING = { rows: [], fields: [], rowCount: 0 }

export class Stage {
  phase: 'waiting' | 'beginning' | 'open' | 'ending' = 'waiting'
  /** Prisma's transaction, once it is open. */
  tx: object | undefined
  /** For statements whose context was lost. */
  client: Queryable
  /** The client's own errors since the last loan: Prisma makes errors of its own of them. */
  readonly failures: unknown[] = []

  readonly #pool: object

  constructor(pool: object, client: Queryable) {
    this.#pool = pool
    this.client = client
  }

  awaits(pool: object): boolean {
    return this.phase === 'waiting' && this.#pool === pool
  }

  /** The client as the adapter uses one. */
  take(): object {
    this.phase = 'beginning'
    const nothing = (): void => {}
    return {
      query: (statement: unknown) => this.#query(statement),
      on: nothing,
      removeListener: nothing,
      release: nothing,
    }
  }

  async #query(statement: unknown): Promise<unknown> {
    if (this.phase !== 'open') return NOTHING
    const place = places.getStore()
    const mine = place?.stage === this ? place : undefined
    try {
      if (mine?.isOpen === false) return await refused(transactionClosed())
      return await (mine?.client ?? this.client).query(statement)
    } catch (error) {
      this.failures.push(error)
      throw error
    }
  }
}

interface Pool {
  connect(...args: unknown[]): unknown
}

const watched = sharedByCopies('prisma-pools', () => new WeakSet<object>())

/** From now on the pool answers a stage with its own client. */
export function watchPool(pool: object): void {
  if (watched.has(pool)) return
  watched.add(pool)
  const { connect } = pool as Pool
  const instead: Pool['connect'] = function (this: unknown, ...args) {
    const stage = places.getStore()?.stage
    // pg's pool calls it with a callback for a statement of its own.
    if (!stage?.awaits(pool) || args.length > 0) return Reflect.apply(connect, this, args)
    return Promise.resolve(stage.take())
  }
  Object.defineProperty(pool, 'connect', { value: instead, writable: true, configurable: true })
}
