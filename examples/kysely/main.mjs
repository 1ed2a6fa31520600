/**
 * An inline guard, with Kysely: work that runs in a transaction of your own, and once for each id.
 *
 * An HTTP endpoint is called again by a client that has not heard its answer. `once` marks the id in the same transaction as
 * the work, so a call that is repeated does nothing and gets the first call's answer.
 */
import { Kysely, PostgresDialect, sql } from 'kysely'
import pg from 'pg'
import { createBox } from 'oncebox'
import { fromKysely } from 'oncebox/kysely'
import { startPostgres } from '../../tools/postgres/server.mjs'

const server = process.env['DATABASE_URL'] ? undefined : await startPostgres()
const pool = new pg.Pool({ connectionString: server?.url ?? process.env['DATABASE_URL'] })

/** @typedef {{ 'oncebox_example_kysely.account': { name: string, cents: number } }} Database */
/** @type {Kysely<Database>} */
const db = new Kysely({ dialect: new PostgresDialect({ pool }) })
await sql`drop schema if exists oncebox_example_kysely cascade`.execute(db)

const box = createBox({ db: fromKysely(db, pool), schema: 'oncebox_example_kysely' })
await box.migrate()
await sql`create table oncebox_example_kysely.account (name text primary key, cents int not null)`.execute(db)
await db.insertInto('oncebox_example_kysely.account').values({ name: 'ada', cents: 1_000 }).execute()

/** @param {string} requestId @param {number} cents */
async function withdraw(requestId, cents) {
  return db.transaction().execute((tx) =>
    box.once(tx, 'withdraw', { id: requestId }, async () => {
      const { cents: left } = await tx
        .updateTable('oncebox_example_kysely.account')
        .set((account) => ({ cents: account('cents', '-', cents) }))
        .where('name', '=', 'ada')
        .returning('cents')
        .executeTakeFirstOrThrow()
      if (left < 0) throw new Error('not enough')
      return { left }
    }),
  )
}

for (const [requestId, cents] of /** @type {const} */ ([
  ['r-1', 300],
  ['r-1', 300],
  ['r-2', 900],
  ['r-3', 700],
])) {
  const answer = await withdraw(requestId, cents).then(
    (outcome) => ('result' in outcome ? `${outcome.status}, ${outcome.result?.left} left` : outcome.status),
    (/** @type {Error} */ error) => `refused: ${error.message}`,
  )
  console.log(`${requestId}: ${answer}`)
}
await box.stop()
await db.destroy()
await server?.stop()
