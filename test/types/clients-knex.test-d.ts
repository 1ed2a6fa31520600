/** Knex: the handler's tx is a Knex.Transaction, and nothing else passes for one. */
import type { Knex } from 'knex'
import type { PoolClient } from 'pg'
import type { EntityManager } from 'typeorm'
import { expectTypeOf, test } from 'vitest'
import { createBox, defineMessages, unchecked, type Driver } from 'oncebox'
import { fromKnex } from 'oncebox/knex'

declare const knex: Knex
declare const manager: EntityManager
declare const client: PoolClient

interface Account {
  id: string
  cents: number
}

const messages = defineMessages({ opened: unchecked<{ id: string }>() })

test('handlers get a transaction, whose tables are typed', () => {
  expectTypeOf(fromKnex(knex)).toEqualTypeOf<Driver<Knex.Transaction>>()
  const box = createBox({ db: fromKnex(knex), messages })
  box.consumer('c', {
    opened: async ({ data }, { tx }) => {
      expectTypeOf(tx).toEqualTypeOf<Knex.Transaction>()
      await tx<Account>('account').insert({ id: data.id, cents: 0 })
      // @ts-expect-error there is no such column
      await tx<Account>('account').insert({ id: data.id, dollars: 0 })
    },
  })
})

test('send takes a transaction: no instance, and no other client’s transaction', () => {
  const box = createBox({ db: fromKnex(knex), messages })
  void knex.transaction(async (tx) => {
    await box.send(tx, 'opened', { id: 'ada' })
    // @ts-expect-error the instance is no transaction
    await box.send(knex, 'opened', { id: 'ada' })
    // @ts-expect-error an EntityManager of TypeORM
    await box.send(manager, 'opened', { id: 'ada' })
    // @ts-expect-error a client of pg
    await box.send(client, 'opened', { id: 'ada' })
  })
})

test('fromKnex takes an instance', () => {
  // @ts-expect-error another client
  void (() => fromKnex(manager))
  // @ts-expect-error a connection string
  void (() => fromKnex('postgres://localhost'))
})
