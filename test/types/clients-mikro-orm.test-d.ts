/** MikroORM: the handler's transaction is its EntityManager, and no other client's is taken for one. */
import type { EntityManager, MikroORM } from '@mikro-orm/postgresql'
import type pg from 'pg'
import { expectTypeOf, test } from 'vitest'
import { createBox, defineMessages, unchecked } from 'oncebox'
import { fromMikroOrm } from 'oncebox/mikro-orm'
import type { Prisma } from '../../examples/prisma/client/client.js'

declare const orm: MikroORM
const messages = defineMessages({ placed: unchecked<{ id: string }>() })

class Invoice {
  orderId!: string
  cents!: number
}

test('a handler gets an EntityManager, which knows the entities', () => {
  const box = createBox({ db: fromMikroOrm(orm), messages })
  box.consumer('c', {
    placed: async ({ data }, { tx }) => {
      expectTypeOf(tx).toExtend<EntityManager>()
      tx.persist(tx.create(Invoice, { orderId: data.id, cents: 1 }))
      // @ts-expect-error there is no such column
      await tx.findOne(Invoice, { euros: 1 })
    },
  })
})

test('send takes an EntityManager, and no other handle', () => {
  const box = createBox({ db: fromMikroOrm(orm), messages })
  void (async (client: pg.PoolClient, prisma: Prisma.TransactionClient, pool: pg.Pool) => {
    await orm.em.transactional((em) => box.send(em, 'placed', { id: 'a' }))
    // @ts-expect-error of another client
    await box.send(client, 'placed', { id: 'a' })
    // @ts-expect-error of another client
    await box.send(prisma, 'placed', { id: 'a' })
    // @ts-expect-error the ORM is no EntityManager
    await box.send(orm, 'placed', { id: 'a' })
    // @ts-expect-error a pool is no MikroORM
    fromMikroOrm(pool)
  })
})
