/**
 * The driver for Prisma 7 on @prisma/adapter-pg, through what both promise: the pool that the adapter is given, and
 * `$transaction`. Handlers get Prisma's own interactive transaction; its timeouts never end it, the handler's own does.
 */
import type { Driver } from '../postgres/driver.js'
import { fromPg, type PgClient, type PgPool } from '../postgres/drivers/pg.js'
import { type Expected } from '../postgres/drivers/loan-errors.js'
import { isPgPool, unfit, wrongClient } from '../postgres/drivers/wrong-client.js'
import type { OnceboxError } from '../errors.js'
import { invalid } from '../options.js'
import { type Begun, type Binding, bound, type Bound, type Rows } from './bound.js'
import { withCauses } from './causes.js'
import { isOf, original } from './prisma/errors.js'
import { Lent } from './prisma/lent.js'
import { inPlace, type Queryable, Stage, watchPool } from './prisma/stage.js'

/** A Prisma client, as generated or extended. `Tx` is what its `$transaction` hands to a function. */
export interface PrismaLike<Tx> {
  $connect(): Promise<void>
  $transaction(work: (tx: Tx) => Promise<unknown>, options?: { maxWait?: number; timeout?: number }): Promise<unknown>
}

/** A transaction: the client itself, which has `$connect`, does not compile. */
export type PrismaTransaction<Tx> = Tx & { readonly $connect?: never }

/**
 * Runs oncebox on the pool that Prisma's adapter was made with: `new PrismaPg(pool)`. Handlers get Prisma's transaction;
 * `send` and `once` take the one that `prisma.$transaction(async (tx) => …)` hands over. Pool and client stay yours.
 */
export function fromPrisma<Tx extends object>(
  prisma: PrismaLike<Tx>,
  pool: PgPool<PgClient>,
): Driver<Tx, PrismaTransaction<Tx>> {
  if (!isPrismaClient(prisma)) {
    const expected = 'a Prisma client and the pool of its adapter: fromPrisma(prisma, pool)'
    if (isPrismaClient(pool)) throw unfit('fromPrisma', expected, 'them in another order')
    if (isTransaction(prisma))
      throw unfit('fromPrisma', expected, 'a transaction: pass the client that it was begun on')
    throw wrongClient('fromPrisma', prisma, expected)
  }
  if (!isPgPool(pool)) {
    const expected = 'the pool that the adapter was made with as its second argument, as in new PrismaPg(pool)'
    throw wrongClient('fromPrisma', pool, expected)
  }
  watchPool(pool)
  return bound<Tx, PrismaTransaction<Tx>>(fromPg(pool) as Driver<never>, new PrismaBinding<Tx>(prisma, pool))
}

const EXPECTED: Expected = [
  'a transaction of Prisma',
  'pass what prisma.$transaction(async (tx) => …) hands to its function',
]

/** Prisma ends a transaction by timers of its own. More than this overflows a timer, which would end it at once. */
const NEVER_MS = 2 ** 31 - 1

class PrismaBinding<Tx extends object> implements Binding<Tx> {
  readonly expected = EXPECTED
  readonly late = true
  readonly single = true
  readonly #prisma: PrismaLike<Tx>
  readonly #pool: object
  readonly #stages = new WeakMap<object, Stage>()

  constructor(prisma: PrismaLike<Tx>, pool: object) {
    this.#prisma = prisma
    this.#pool = pool
  }

  /** Settles when the work does: how Prisma ends its side concerns nobody, and may wait for a server that is silent. */
  around<R>(client: object, work: () => Promise<R>): Promise<R> {
    const stage = new Stage(this.#pool, client as Queryable)
    this.#stages.set(client, stage)
    return new Promise((resolve, reject) => {
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- handlers may throw anything
      const failed = (error: unknown): void => reject(withCauses(error, stage.failures, isOf))
      const inside = async (tx: Tx): Promise<void> => {
        if (stage.phase === 'waiting') throw otherPool()
        stage.phase = 'open'
        stage.tx = tx
        try {
          resolve(await work())
        } catch (error) {
          failed(error)
          throw error
        } finally {
          stage.phase = 'ending'
        }
      }
      const begin = (): Promise<unknown> => this.#prisma.$transaction(inside, { maxWait: NEVER_MS, timeout: NEVER_MS })
      inPlace({ stage }, begin).catch(failed)
    })
  }

  bind(client: object, of?: object): Bound<Tx> {
    const stage = this.#stages.get(of ?? client)!
    if (!of) return { tx: stage.tx as Tx }
    const before = stage.client
    const lent = new Lent(stage, client as Queryable)
    stage.client = lent.client
    stage.failures.length = 0
    return {
      tx: lent.tx as Tx,
      run: (handler) =>
        inPlace(lent, handler).catch((error: unknown) => {
          throw withCauses(error, stage.failures, isOf)
        }),
      leave: () => lent.leave(),
      close: () => void (stage.client = before),
    }
  }

  begunBy(tx: object): Begun | string | undefined {
    const { $connect, $queryRawUnsafe, $executeRawUnsafe } = tx as Partial<Raw> & { readonly $connect?: unknown }
    if (typeof $connect === 'function') return 'the Prisma client itself'
    if (typeof $queryRawUnsafe !== 'function' || typeof $executeRawUnsafe !== 'function') return undefined
    return { run: (text, values) => runIn(tx as Raw, text, values) }
  }
}

interface Raw {
  $queryRawUnsafe(text: string, ...values: readonly unknown[]): PromiseLike<Rows>
  $executeRawUnsafe(text: string): PromiseLike<number>
}

/** Several commands in one text have several answers, which only the one that counts rows can take. */
async function runIn(tx: Raw, text: string, values: readonly unknown[]): Promise<Rows> {
  try {
    if (values.length > 0 || !text.includes(';')) return await tx.$queryRawUnsafe(text, ...values)
    await tx.$executeRawUnsafe(text)
    return []
  } catch (error) {
    throw original(error, EXPECTED)
  }
}

function isPrismaClient(it: unknown): boolean {
  const { $connect, $transaction } = (it ?? {}) as { readonly $connect?: unknown; readonly $transaction?: unknown }
  return typeof $connect === 'function' && typeof $transaction === 'function'
}

function isTransaction(it: unknown): boolean {
  return typeof (it as { readonly $queryRawUnsafe?: unknown } | null | undefined)?.$queryRawUnsafe === 'function'
}

/** Prisma opened a connection elsewhere: its transaction was not ours. */
function otherPool(): OnceboxError {
  return invalid(
    'this Prisma client does not use the pool that was given to fromPrisma: make both with one pool, ' +
      'new PrismaClient({ adapter: new PrismaPg(pool) }) and fromPrisma(prisma, pool). ' +
      'If they do have one, the adapter has another copy of pg than the one that the pool comes from',
  )
}
