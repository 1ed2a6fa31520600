/** TypeORM: the handler's tx is an EntityManager, and nothing else passes for one. */
import type { Knex } from 'knex'
import type { PoolClient } from 'pg'
import type { DataSource, EntityManager, EntitySchema } from 'typeorm'
import { expectTypeOf, test } from 'vitest'
import { createBox, defineMessages, unchecked, type Box, type BoxOf, type Driver } from 'oncebox'
import { fromTypeOrm } from 'oncebox/typeorm'

declare const dataSource: DataSource
declare const Account: EntitySchema<{ id: string; cents: number }>
declare const knex: Knex.Transaction
declare const client: PoolClient

const messages = defineMessages({ opened: unchecked<{ id: string }>() })

test('handlers get an EntityManager, whose entities are typed', () => {
  expectTypeOf(fromTypeOrm(dataSource)).toEqualTypeOf<Driver<EntityManager>>()
  const box = createBox({ db: fromTypeOrm(dataSource), messages })
  box.consumer('c', {
    opened: async ({ data }, { tx }) => {
      expectTypeOf(tx).toEqualTypeOf<EntityManager>()
      await tx.insert(Account, { id: data.id, cents: 0 })
      // @ts-expect-error there is no such column
      await tx.insert(Account, { id: data.id, dollars: 0 })
    },
  })
})

test('send takes an EntityManager: no data source, and no other client’s transaction', () => {
  const box = createBox({ db: fromTypeOrm(dataSource), messages })
  void dataSource.transaction(async (manager) => {
    await box.send(manager, 'opened', { id: 'ada' })
    // @ts-expect-error a data source is no transaction
    await box.send(dataSource, 'opened', { id: 'ada' })
    // @ts-expect-error a transaction of Knex
    await box.send(knex, 'opened', { id: 'ada' })
    // @ts-expect-error a client of pg
    await box.send(client, 'opened', { id: 'ada' })
  })
})

test('a service names its box by the EntityManager, or by the driver', () => {
  type Own = Box<typeof messages, EntityManager>
  expectTypeOf<BoxOf<typeof messages, EntityManager>>().toEqualTypeOf<Own>()
  expectTypeOf<BoxOf<typeof messages, Driver<EntityManager>>>().toEqualTypeOf<Own>()
})

test('fromTypeOrm takes a data source', () => {
  // @ts-expect-error another client
  void (() => fromTypeOrm(knex))
  // @ts-expect-error a connection string
  void (() => fromTypeOrm('postgres://localhost'))
})
