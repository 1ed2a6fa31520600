/** What Prisma keeps beyond the conformance suite. */
import { setTimeout as sleep } from 'node:timers/promises'
import { PrismaPg } from '@prisma/adapter-pg'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { fromPg } from 'oncebox/pg'
import { fromPrisma } from 'oncebox/prisma'
import type { Driver, OnceboxErrorCode } from 'oncebox'
import { Prisma, PrismaClient } from '../../examples/prisma/client/client.js'
import { causes, toFailure, withoutValues } from '../../src/failure.js'
import { type ScratchDatabase, scratchDatabase } from '../support/postgres.js'
import { promisesOf } from './suite.js'

describe('Prisma', () => promisesOf({ name: 'prisma' }))

const TABLES = `
  create table orders (id text primary key, customer text not null, cents int not null check (cents > 0));
  create table invoices (order_id text primary key references orders (id), cents int not null)`

let database: ScratchDatabase
let pool: pg.Pool
let prisma: PrismaClient
let driver: Driver<Prisma.TransactionClient>

beforeAll(async () => {
  database = await scratchDatabase('client_prisma_own')
  pool = new pg.Pool({ connectionString: database.url, max: 4 })
  await pool.query(TABLES)
  // Ended by these, no handler could take its time.
  prisma = new PrismaClient({ adapter: new PrismaPg(pool), transactionOptions: { maxWait: 1_000, timeout: 20 } })
  driver = fromPrisma(prisma, pool)
})
beforeEach(() => pool.query('truncate orders, invoices'))
afterAll(async () => {
  await prisma?.$disconnect()
  await pool?.end()
  await database?.close()
})

const order = (id: string, cents = 100) => ({ id, customer: 'ada', cents })
const ids = async (): Promise<string[]> => (await prisma.order.findMany({ orderBy: { id: 'asc' } })).map(({ id }) => id)
const code = (value: OnceboxErrorCode) => ({ code: value })

/** A handler as the box calls it. */
function handled<Tx, R>(handler: (tx: Tx) => Promise<R>, on = driver as unknown as Driver<Tx>): Promise<R> {
  return on.transaction(async (tx) => {
    const loan = on.lend!(tx)
    const result = await loan.run!(() => handler(loan.tx))
    await loan.giveBack()
    return result
  })
}

async function errorOf(promise: Promise<unknown>): Promise<Error & { code?: unknown }> {
  return promise.then(
    () => expect.fail('it resolved'),
    (error: Error) => error,
  )
}

describe('in a handler', () => {
  test('models, relations, raw statements and transactions within are on the connection that is lent', async () => {
    await handled(async (tx: Prisma.TransactionClient) => {
      await tx.order.create({ data: { ...order('a'), invoice: { create: { cents: 100 } } } })
      expect(await tx.order.findUnique({ where: { id: 'a' } }).invoice()).toEqual({ orderId: 'a', cents: 100 })
      const pid = (on: Prisma.TransactionClient) => on.$queryRaw`select pg_backend_pid() as pid`
      expect(await tx.$transaction(pid)).toEqual(await pid(tx))
      expect(await ids()).toEqual([])
    })
    expect(await ids()).toEqual(['a'])
  })

  test('what it gets looks as Prisma’s own does', async () => {
    const look = async (tx: Prisma.TransactionClient) => {
      const found = tx.order.findMany()
      await found
      return {
        names: Object.keys(tx),
        isThere: ['order' in tx, '$queryRaw' in tx, '$connect' in tx, 'nothing' in tx, 'create' in tx.order],
        isListed: Object.getOwnPropertyDescriptor(tx, 'order')?.enumerable,
        classes: [Object.getPrototypeOf(tx), Object.getPrototypeOf(tx.order)] as unknown[],
        model: Object.keys(tx.order),
        promise: Object.prototype.toString.call(found),
      }
    }
    expect(await handled(look)).toEqual(await prisma.$transaction(look, { timeout: 5_000 }))
  })

  test('Prisma’s own timeouts end nothing', async () => {
    await handled(async (tx: Prisma.TransactionClient) => {
      // Longer than the client's timeout; nobody waits for a condition here.
      await sleep(60)
      await tx.order.create({ data: order('slow') })
    })
    expect(await ids()).toEqual(['slow'])
  })

  test.for<[string, (tx: Prisma.TransactionClient) => unknown]>([
    ['a model', (tx) => tx.order.create({ data: order('forgotten') })],
    ['a raw statement', (tx) => tx.$executeRaw`insert into orders values ('forgotten', 'ada', 1)`],
    ['a relation', (tx) => tx.order.findUnique({ where: { id: 'a' } }).invoice()],
    ['a model in a transaction within', (tx) => tx.$transaction(async (inner) => void inner.order.create({ data: order('forgotten') }))], // prettier-ignore
  ])('%s that nobody awaited is found, though Prisma never sent it', async ([, forget]) => {
    const failing = handled(async (tx: Prisma.TransactionClient) => {
      await tx.order.create({ data: order('a') })
      forget(tx)
    })
    await expect(failing).rejects.toMatchObject(code('UNAWAITED_QUERY'))
    expect(await ids()).toEqual([])
  })

  test('a promise that was made before it returned, and is awaited after, is refused', async () => {
    let kept: PromiseLike<unknown> | undefined
    let model: Prisma.TransactionClient['order'] | undefined
    const failing = handled(async (tx: Prisma.TransactionClient) => {
      model = tx.order
      kept = tx.order.create({ data: order('late') })
    })
    await expect(failing).rejects.toMatchObject(code('UNAWAITED_QUERY'))
    await expect(kept).rejects.toMatchObject(code('TRANSACTION_CLOSED'))
    await expect(model!.create({ data: order('later') })).rejects.toMatchObject(code('TRANSACTION_CLOSED'))
    expect(await ids()).toEqual([])
  })

  test('an inner transaction that is kept writes into no later handler', async () => {
    let inner: Prisma.TransactionClient | undefined
    let late: Promise<unknown> | undefined
    const go = withResolvers()
    await driver.transaction(async (tx) => {
      const first = driver.lend!(tx)
      await first.run!(async () => {
        await first.tx.$transaction(async (nested) => void (inner = nested))
        late = go.promise.then(() => inner!.order.create({ data: order('late') }))
        late?.catch(() => {})
      })
      await first.giveBack()
      const second = driver.lend!(tx)
      await second.run!(async () => {
        go.resolve(undefined)
        const refused = await errorOf(late!)
        expect(refused.code).toBe('TRANSACTION_CLOSED')
        await second.tx.order.create({ data: order('second') })
      })
      await second.giveBack()
    })
    expect(await ids()).toEqual(['second'])
  })

  test('a list of statements, which Prisma would commit on its own, is refused, also within', async () => {
    const list = async (tx: Prisma.TransactionClient): Promise<void> => {
      const client = tx as unknown as PrismaClient
      await client.$transaction([client.order.create({ data: order('apart') })])
    }
    const deeper = (tx: Prisma.TransactionClient) => tx.$transaction((inner) => inner.$transaction(list))
    for (const act of [list, (tx: Prisma.TransactionClient) => tx.$transaction(list), deeper]) {
      await expect(handled(act)).rejects.toMatchObject(code('TRANSACTION_REQUIRED'))
      expect(await ids()).toEqual([])
    }
  })

  test.for<[string, (tx: Prisma.TransactionClient) => unknown]>([
    ['under way', (tx) => tx.$transaction((inner) => inner.order.create({ data: order('within') }))],
    ['in another function', (tx) => (async () => void (await tx.$transaction((inner) => inner.order.create({ data: order('within') }))))()], // prettier-ignore
    ['that has failed', (tx) => tx.$transaction(() => Promise.reject(new Error('of the transaction within')))],
  ])('a transaction within that nobody awaited fails the message, and not the process: %s', async ([, forget]) => {
    const failing = handled(async (tx: Prisma.TransactionClient) => {
      void forget(tx)
      await tx.order.create({ data: order('a') })
    })
    // vitest fails for a rejection that nobody handled.
    await expect(failing).rejects.toMatchObject(code('UNAWAITED_QUERY'))
    expect(await ids()).toEqual([])
  })

  test('a transaction of the client itself is another one, and commits on its own', async () => {
    const failing = handled(async (tx: Prisma.TransactionClient) => {
      await tx.order.create({ data: order('mine') })
      await prisma.$transaction((other) => other.order.create({ data: order('other') }))
      throw new Error('of the handler')
    })
    await expect(failing).rejects.toThrow('of the handler')
    expect(await ids()).toEqual(['other'])
  })

  test('extensions act on the handler’s statements, and not on those of oncebox', async () => {
    const seen: string[] = []
    const extended = prisma.$extends({
      model: { order: { place: (id: string) => prisma.order.count({ where: { id } }) } },
      query: {
        $allOperations({ operation, args, query }) {
          seen.push(operation)
          return query(args)
        },
      },
    })
    const db = fromPrisma(extended, pool)
    await db.transaction(async (tx) => {
      await db.query('select $1::text as x', ['x'], tx)
      const loan = db.lend!(tx)
      await loan.run!(async () => {
        await loan.tx.order.create({ data: order('extended') })
        expect(await loan.tx.order.place('extended')).toBe(0)
      })
      await loan.giveBack()
    })
    expect(seen).toEqual(['create'])
    expect(await ids()).toEqual(['extended'])
  })

  test('a method of an extension that nobody awaited is found while it takes its time', async () => {
    const extended = prisma.$extends({
      model: {
        order: {
          async place(id: string) {
            await sleep(30)
            return Prisma.getExtensionContext(this).create({ data: order(id) })
          },
        },
      },
      client: { fail: () => Promise.reject(new Error('of the extension')) },
    })
    const db = fromPrisma(extended, pool)
    type Extended = Parameters<Parameters<typeof db.transaction>[0]>[0]
    const handling = (handler: (tx: Extended) => unknown): Promise<unknown> =>
      db.transaction(async (tx) => {
        const loan = db.lend!(tx)
        await loan.run!(async () => void (await handler(loan.tx)))
        await loan.giveBack()
      })
    // vitest fails for a rejection that nobody handled.
    for (const forget of [(tx: Extended) => tx.order.place('a'), (tx: Extended) => (tx as typeof extended).fail()])
      await expect(handling((tx) => void forget(tx))).rejects.toMatchObject(code('UNAWAITED_QUERY'))
    expect(await ids()).toEqual([])
    await handling((tx) => tx.order.place('b'))
    expect(await ids()).toEqual(['b'])
  })
})

describe('errors', () => {
  test('tell what the server said as their cause, whatever code Prisma has for it', async () => {
    const failing = handled(async (tx: Prisma.TransactionClient) => {
      await tx.order.create({ data: order('a') })
      await tx.order.create({ data: order('a') }).catch((error: unknown) => {
        throw new Error('placing the order', { cause: error })
      })
    })
    const codes = [...causes(await errorOf(failing))].map((error) => (error as { code?: unknown }).code)
    expect(codes).toEqual([undefined, 'P2002', '23505'])
  })

  test.for<[string, (tx: Prisma.TransactionClient) => Promise<unknown>]>([
    ['refused arguments', (tx) => tx.order.create({ data: { ...order('secret'), cents: 'secret' as never } })],
    ['a row that breaks a rule', (tx) => tx.order.create({ data: order('secret', -1) })],
    ['a value that does not fit', (tx) => tx.order.create({ data: order('a', 4_711_474_711) })],
    ['a value of a raw statement', (tx) => tx.$queryRawUnsafe('select $1::text::int', 'secret')],
  ])('%s: no value is in the record, and none in what hooks get', async ([, act]) => {
    const error = await errorOf(handled(async (tx: Prisma.TransactionClient) => void (await act(tx))))
    expect(error.name).toMatch(/^PrismaClient/)
    const failure = toFailure(error)
    expect(failure.message).toMatch(/Invalid `/)
    const { cause: _, ...record } = failure
    expect(JSON.stringify([record])).not.toMatch(/secret|4711474711/)
    const told = withoutValues(error)
    expect(JSON.stringify({ ...told, message: told.message, stack: told.stack })).not.toMatch(/secret|4711474711/)
  })
})

describe('fromPrisma refuses', () => {
  test.for<[string, () => unknown, RegExp]>([
    ['a connection string', () => fromPrisma('postgres://' as never, pool), /connection string/],
    ['a pool in place of the client', () => fromPrisma(pool as never, pool), /a pool of pg/],
    ['both in another order', () => fromPrisma(pool as never, prisma as never), /in another order/],
    ['no pool', () => fromPrisma(prisma, undefined as never), /new PrismaPg\(pool\)/],
    ['the client in place of the pool', () => fromPrisma(prisma, prisma as never), /fromPrisma/],
  ])('%s', ([, call, words]) => {
    expect(call).toThrow(expect.objectContaining({ ...code('OPTION_INVALID'), message: expect.stringMatching(words) }))
  })

  test('a transaction', async () => {
    await prisma.$transaction(async (tx) => {
      expect(() => fromPrisma(tx as never, pool)).toThrow(
        expect.objectContaining({ ...code('OPTION_INVALID'), message: expect.stringContaining('got a transaction') }),
      )
    })
  })

  test('a client that uses another pool, before it calls anybody', async () => {
    const other = new pg.Pool({ connectionString: database.url, max: 1 })
    try {
      let called = false
      const error = await errorOf(
        fromPrisma(prisma, other).transaction(async () => {
          called = true
        }),
      )
      expect(error).toMatchObject(code('OPTION_INVALID'))
      expect(called).toBe(false)
    } finally {
      await other.end()
    }
  })

  test('what is not Prisma’s names it: fromPg', () => {
    expect(() => fromPg(prisma as never)).toThrow(/fromPrisma of oncebox\/prisma/)
  })
})

function withResolvers(): { promise: Promise<unknown>; resolve(value: unknown): void } {
  let resolve!: (value: unknown) => void
  const promise = new Promise((done) => (resolve = done))
  return { promise, resolve }
}
