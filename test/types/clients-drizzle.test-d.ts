/** Drizzle: whose transaction handlers get, and what does not compile. */
import { integer, pgTable, text } from 'drizzle-orm/pg-core'
import type { NodePgDatabase } from 'drizzle-orm/node-postgres'
import type { PgliteDatabase } from 'drizzle-orm/pglite'
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import type { ControlledTransaction } from 'kysely'
import type { PGlite } from '@electric-sql/pglite'
import type pg from 'pg'
import type postgres from 'postgres'
import { expectTypeOf, test } from 'vitest'
import { createBox, defineMessages, unchecked } from 'oncebox'
import { fromDrizzle } from 'oncebox/drizzle'

const stock = pgTable('stock', { sku: text().primaryKey(), quantity: integer().notNull() })
type Schema = { stock: typeof stock }
declare const onPg: NodePgDatabase<Schema> & { $client: pg.Pool }
declare const onPostgres: PostgresJsDatabase<Schema> & { $client: postgres.Sql }
declare const onPglite: PgliteDatabase<Schema> & { $client: PGlite }
declare const kysely: ControlledTransaction<{ stock: { sku: string } }>
declare const client: pg.PoolClient

const messages = defineMessages({ 'order.placed': unchecked<{ sku: string }>() })
type TxOf<Db> = Db extends { transaction(work: (tx: infer Tx) => Promise<never>, ...config: never): unknown }
  ? Tx
  : never

test('the handler’s tx is Drizzle’s own, with the schema of the user', () => {
  const box = createBox({ db: fromDrizzle(onPg), messages })
  box.consumer('c', {
    'order.placed': async ({ data }, { tx }) => {
      expectTypeOf(tx).toEqualTypeOf<TxOf<typeof onPg>>()
      await tx.insert(stock).values({ sku: data.sku, quantity: 1 })
      await tx.query.stock.findFirst({ columns: { sku: true } })
      // @ts-expect-error no such column
      await tx.insert(stock).values({ sku: data.sku, quantity: 1, nope: 1 })
      // @ts-expect-error no such table
      await tx.query.nope.findFirst()
    },
  })
})

test('on postgres.js and PGlite too', () => {
  createBox({ db: fromDrizzle(onPostgres), messages }).consumer('c', {
    'order.placed': async (_, { tx }) => expectTypeOf(tx).toEqualTypeOf<TxOf<typeof onPostgres>>(),
  })
  createBox({ db: fromDrizzle(onPglite), messages }).consumer('c', {
    'order.placed': async (_, { tx }) => expectTypeOf(tx).toEqualTypeOf<TxOf<typeof onPglite>>(),
  })
})

test('send and once take its transactions, and nothing else', () => {
  const box = createBox({ db: fromDrizzle(onPg), messages })
  void onPg.transaction(async (tx) => {
    await box.send(tx, 'order.placed', { sku: 'a' })
    await tx.transaction((inner) => box.send(inner, 'order.placed', { sku: 'a' }))
    // @ts-expect-error a root handle
    await box.send(onPg, 'order.placed', { sku: 'a' })
    // @ts-expect-error another ORM's transaction
    await box.send(kysely, 'order.placed', { sku: 'a' })
    // @ts-expect-error the client underneath
    await box.send(client, 'order.placed', { sku: 'a' })
  })
  // @ts-expect-error no Drizzle database
  fromDrizzle(client)
})
