/** Kysely: whose transaction handlers get, and what does not compile. */
import type { NodePgDatabase } from 'drizzle-orm/node-postgres'
import type { ControlledTransaction, Kysely } from 'kysely'
import type pg from 'pg'
import { expectTypeOf, test } from 'vitest'
import { createBox, defineMessages, unchecked } from 'oncebox'
import { fromKysely } from 'oncebox/kysely'

interface Database {
  stock: { sku: string; quantity: number }
}
declare const db: Kysely<Database>
declare const pool: pg.Pool
declare const drizzle: Parameters<Parameters<NodePgDatabase['transaction']>[0]>[0]
declare const client: pg.PoolClient

const messages = defineMessages({ 'order.placed': unchecked<{ sku: string }>() })

test('the handler’s tx is a ControlledTransaction, with the tables of the user', () => {
  const box = createBox({ db: fromKysely(db, pool), messages })
  box.consumer('c', {
    'order.placed': async ({ data }, { tx }) => {
      expectTypeOf(tx).toEqualTypeOf<ControlledTransaction<Database, []>>()
      await tx.insertInto('stock').values({ sku: data.sku, quantity: 1 }).execute()
      // @ts-expect-error no such column
      await tx.insertInto('stock').values({ sku: data.sku, nope: 1 }).execute()
      // @ts-expect-error no such table
      await tx.selectFrom('nope').selectAll().execute()
    },
  })
})

test('send and once take its transactions, and nothing else', () => {
  const box = createBox({ db: fromKysely(db, pool), messages })
  void db.transaction().execute(async (tx) => {
    await box.send(tx, 'order.placed', { sku: 'a' })
    await box.send(await db.startTransaction().execute(), 'order.placed', { sku: 'a' })
    // @ts-expect-error a root handle
    await box.send(db, 'order.placed', { sku: 'a' })
    // @ts-expect-error another ORM's transaction
    await box.send(drizzle, 'order.placed', { sku: 'a' })
    // @ts-expect-error the client underneath
    await box.send(client, 'order.placed', { sku: 'a' })
  })
  // @ts-expect-error the pool is missing
  fromKysely(db)
})
