/** A scratch database with the tables of a box. */
import pg from 'pg'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { scratchDatabase, type ScratchDatabase } from '../support/postgres.js'

export const SCHEMA = 'oncebox'

export async function boxDatabase(name: string): Promise<ScratchDatabase> {
  const database = await scratchDatabase(name)
  const pool = new pg.Pool({ connectionString: database.url, max: 1 })
  await createBox({ db: fromPg(pool), schema: SCHEMA }).migrate()
  await pool.end()
  return database
}
