/** Sequelize: the handler's tx is a Transaction, and nothing else passes for one. */
import type { Knex } from 'knex'
import type { PoolClient } from 'pg'
import type { Model, ModelStatic, Sequelize, Transaction } from 'sequelize'
import { expectTypeOf, test } from 'vitest'
import { createBox, defineMessages, unchecked, type Driver } from 'oncebox'
import { fromSequelize } from 'oncebox/sequelize'

interface Columns {
  id: string
  cents: number
}

declare const sequelize: Sequelize
declare const Account: ModelStatic<Model<Columns, Columns>>
declare const knex: Knex.Transaction
declare const client: PoolClient

const messages = defineMessages({ opened: unchecked<{ id: string }>() })

test('handlers get a transaction, which models take', () => {
  expectTypeOf(fromSequelize(sequelize)).toEqualTypeOf<Driver<Transaction>>()
  const box = createBox({ db: fromSequelize(sequelize), messages })
  box.consumer('c', {
    opened: async ({ data }, { tx }) => {
      expectTypeOf(tx).toEqualTypeOf<Transaction>()
      await Account.create({ id: data.id, cents: 0 }, { transaction: tx })
      // @ts-expect-error there is no such column
      await Account.create({ id: data.id, dollars: 0 }, { transaction: tx })
    },
  })
})

test('send takes a transaction: no instance, and no other client’s transaction', () => {
  const box = createBox({ db: fromSequelize(sequelize), messages })
  void sequelize.transaction(async (tx) => {
    await box.send(tx, 'opened', { id: 'ada' })
    // @ts-expect-error the instance is no transaction
    await box.send(sequelize, 'opened', { id: 'ada' })
    // @ts-expect-error a transaction of Knex
    await box.send(knex, 'opened', { id: 'ada' })
    // @ts-expect-error a client of pg
    await box.send(client, 'opened', { id: 'ada' })
  })
})

test('fromSequelize takes an instance', () => {
  // @ts-expect-error another client
  void (() => fromSequelize(knex))
  // @ts-expect-error a connection string
  void (() => fromSequelize('postgres://localhost'))
})
