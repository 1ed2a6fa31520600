/** What the drivers infer, and root handles that must not compile where a transaction is needed. */
import type { PGlite, Transaction } from '@electric-sql/pglite'
import type pg from 'pg'
import type postgres from 'postgres'
import { expectTypeOf, test } from 'vitest'
import { fromPg, type PgClient } from 'oncebox/pg'
import { fromPglite } from 'oncebox/pglite'
import { fromPostgres } from 'oncebox/postgres'
import type { Driver } from '../../src/postgres/driver.js'

declare const pool: pg.Pool
declare const sql: postgres.Sql
declare const db: PGlite

test('pg: handlers get a PoolClient, send takes any client, and no pool', () => {
  const driver = fromPg(pool, { prepare: false })
  expectTypeOf(driver).toEqualTypeOf<Driver<pg.PoolClient, PgClient>>()
  void (async (client: pg.Client, lent: pg.PoolClient) => {
    await driver.query('', [], client)
    await driver.query('', [], lent)
    // @ts-expect-error a pool is not a transaction
    await driver.query('', [], pool)
  })
})

test('postgres.js: the sql of sql.begin, not the root', () => {
  const driver = fromPostgres(sql)
  expectTypeOf(driver).toEqualTypeOf<Driver<postgres.TransactionSql>>()
  void sql.begin(async (tx) => {
    await driver.query('', [], tx)
    // @ts-expect-error the root is not a transaction
    await driver.query('', [], sql)
  })
})

test('PGlite: the transaction, not the database', () => {
  const driver = fromPglite(db)
  expectTypeOf(driver).toEqualTypeOf<Driver<Transaction>>()
  void db.transaction(async (tx) => {
    await driver.query('', [], tx)
    // @ts-expect-error the database is not a transaction
    await driver.query('', [], db)
  })
})
