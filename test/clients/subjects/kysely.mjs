/** Kysely: see ../subject.ts. */
import pg from 'pg'
import { fromKysely } from 'oncebox/kysely'
import { loader } from './load.mjs'

export async function open({ name, ...options }, from) {
  const load = await loader(from)
  const { Kysely, PostgresDialect, sql } = await load('kysely')
  const pool = new pg.Pool({ ...options, application_name: name })
  pool.on('error', () => {})
  const db = new Kysely({ dialect: new PostgresDialect({ pool }) })
  return {
    driver: fromKysely(db, pool),
    root: db,
    native: (tx, text) => sql.raw(text).execute(tx),
    insert: (tx, row) => tx.insertInto('effect').values(row).execute(),
    own: (work) => db.transaction().execute(work),
    async nested(tx, work) {
      const inner = await tx.savepoint('nested').execute()
      try {
        await work(inner)
        await inner.releaseSavepoint('nested').execute()
      } catch (error) {
        await inner.rollbackToSavepoint('nested').execute()
        throw error
      }
    },
    close: () => pool.end(),
  }
}
