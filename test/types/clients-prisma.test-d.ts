/** Prisma: the handler's transaction has the user's models, and nothing else is taken for one. */
import type { EntityManager } from '@mikro-orm/postgresql'
import type pg from 'pg'
import { expectTypeOf, test } from 'vitest'
import { createBox, defineMessages, unchecked } from 'oncebox'
import { fromPrisma } from 'oncebox/prisma'
import type { Prisma, PrismaClient } from '../../examples/prisma/client/client.js'

declare const pool: pg.Pool
declare const prisma: PrismaClient
const messages = defineMessages({ placed: unchecked<{ id: string }>() })

test('a handler gets Prisma’s transaction, with the models in its type', () => {
  const box = createBox({ db: fromPrisma(prisma, pool), messages })
  box.consumer('c', {
    placed: async ({ data }, { tx }) => {
      expectTypeOf(tx).toEqualTypeOf<Prisma.TransactionClient>()
      const invoice = await tx.invoice.create({ data: { orderId: data.id, cents: 1 } })
      expectTypeOf(invoice.cents).toEqualTypeOf<number>()
      // @ts-expect-error a column has another type
      await tx.invoice.create({ data: { orderId: data.id, cents: 'one' } })
      // @ts-expect-error there is no such model
      void tx.receipt
    },
  })
})

test('send takes a transaction of Prisma, and no other handle', () => {
  const box = createBox({ db: fromPrisma(prisma, pool), messages })
  void (async (client: pg.PoolClient, em: EntityManager) => {
    await prisma.$transaction((tx) => box.send(tx, 'placed', { id: 'a' }))
    await prisma.$transaction((tx) => box.once(tx, 'guard', { id: 'a' }, async () => tx.order.count()))
    // @ts-expect-error the client is no transaction
    await box.send(prisma, 'placed', { id: 'a' })
    // @ts-expect-error of another client
    await box.send(client, 'placed', { id: 'a' })
    // @ts-expect-error of another client
    await box.send(em, 'placed', { id: 'a' })
    // @ts-expect-error a pool is no client of Prisma's
    fromPrisma(pool, pool)
    // @ts-expect-error the pool is needed
    fromPrisma(prisma)
  })
})

test('what extends the client is on its transactions', () => {
  const extended = prisma.$extends({
    model: { order: { place: async (id: string) => id.length } },
    client: { $log: () => 1 },
  })
  const box = createBox({ db: fromPrisma(extended, pool), messages })
  box.consumer('c', {
    placed: async ({ data }, { tx }) => {
      expectTypeOf(await tx.order.place(data.id)).toEqualTypeOf<number>()
      // @ts-expect-error no extension of that name
      await tx.order.cancel(data.id)
    },
  })
  void (async () => {
    await extended.$transaction((tx) => box.send(tx, 'placed', { id: 'a' }))
    // @ts-expect-error the client is no transaction
    await box.send(extended, 'placed', { id: 'a' })
  })
})
