/** The database: its tables, and its end, which comes after every box has stopped. */
import { Inject, Module, type OnApplicationShutdown } from '@nestjs/common'
import { openDatabase, type Database } from '../../database.mjs'

export const DATABASE = Symbol('database')
export const SHOP = 'oncebox_example_nest_shop'
export const WAREHOUSE = 'oncebox_example_nest_warehouse'

async function open(): Promise<Database> {
  const database = await openDatabase()
  for (const schema of [SHOP, WAREHOUSE, 'oncebox_example_nest']) {
    await database.query(`drop schema if exists ${schema} cascade`)
  }
  await database.query('create schema oncebox_example_nest')
  await database.query('create table oncebox_example_nest.orders (id text primary key, sku text, quantity int)')
  await database.query('create table oncebox_example_nest.stock (sku text primary key, pieces int check (pieces >= 0))')
  await database.query(`insert into oncebox_example_nest.stock values ('tea', 10), ('cup', 2)`)
  return database
}

@Module({ providers: [{ provide: DATABASE, useFactory: open }], exports: [DATABASE] })
export class DatabaseModule implements OnApplicationShutdown {
  constructor(@Inject(DATABASE) private readonly database: Database) {}

  async onApplicationShutdown() {
    await this.database.close()
  }
}
