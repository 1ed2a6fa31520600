/** What the subjects of Drizzle have in common, on whichever client: see ../subject.ts. */
import { fromDrizzle } from 'oncebox/drizzle'
import { loader } from './load.mjs'

/** `driver` is one of Drizzle's subpaths, such as `node-postgres`. */
export async function openDrizzle(client, driver, from) {
  const load = await loader(from)
  const { drizzle } = await load(`drizzle-orm/${driver}`)
  const { sql } = await load('drizzle-orm')
  const { integer, pgTable, text } = await load('drizzle-orm/pg-core')
  const columns = { consumer: text(), key: text(), id: text(), seq: integer(), attempt: integer(), pid: integer() }
  const effect = pgTable('effect', columns)
  const db = drizzle({ client })
  return {
    driver: fromDrizzle(db),
    root: db,
    native: async (tx, statement) => await tx.execute(sql.raw(statement)),
    insert: async (tx, row) => await tx.insert(effect).values(row),
    own: (work) => db.transaction(work),
    nested: (tx, work) => tx.transaction(work),
  }
}
