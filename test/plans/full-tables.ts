/** A box on full tables, for a file that looks at plans: one connection, and what stands for `ob.` in a statement. */
import pg from 'pg'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { afterAll, beforeAll } from 'vitest'
import { bindTo } from '../../src/postgres/database.js'
import { type ScratchDatabase, scratchDatabase } from '../support/postgres.js'
import { FILL, TABLES } from './fill.js'

const schema = 'box'

export interface FullTables {
  readonly client: pg.Client
  bind(text: string): string
}

export function useFullTables(name: string): FullTables {
  const bind = bindTo(schema)
  let database: ScratchDatabase
  let client: pg.Client
  beforeAll(async () => {
    database = await scratchDatabase(name)
    const pool = new pg.Pool({ connectionString: database.url })
    await createBox({ db: fromPg(pool), schema }).migrate()
    await pool.end()
    client = new pg.Client(database.url)
    await client.connect()
    await client.query(bind(FILL))
    await client.query(TABLES.map((table) => bind(`analyze ob.${table}`)).join(';'))
  })
  afterAll(async () => {
    await client.end()
    await database.close()
  })
  return {
    bind,
    get client() {
      return client
    },
  }
}
