/** The database of an example: the server at DATABASE_URL if it is set, else PGlite, PostgreSQL inside the process. */
import { fromPg } from 'oncebox/pg'
import { fromPglite } from 'oncebox/pglite'

/**
 * What the examples use of a transaction; pg and PGlite both have it.
 * @typedef {{ query(text: string, values?: unknown[]): Promise<{ rows: any[] }> }} Tx
 */

/**
 * @typedef {object} Database
 * @property {import('oncebox').Driver<Tx>} driver for `createBox({ db })`
 * @property {(text: string, values?: unknown[]) => Promise<any[]>} query one statement, outside of any transaction
 * @property {<R>(work: (tx: Tx) => Promise<R>) => Promise<R>} transaction your own transaction, as in your own code
 * @property {() => Promise<void>} close
 */

/**
 * @param {{ directory?: string }} [options] where PGlite keeps its files; in memory by default
 * @returns {Promise<Database>}
 */
export async function openDatabase({ directory } = {}) {
  const connectionString = process.env['DATABASE_URL']
  return connectionString ? openServer(connectionString) : openEmbedded(directory)
}

/** @param {string} connectionString @returns {Promise<Database>} */
async function openServer(connectionString) {
  const { default: pg } = await import('pg')
  const pool = new pg.Pool({ connectionString })
  return {
    driver: /** @type {import('oncebox').Driver<any>} */ (fromPg(pool)),
    query: async (text, values) => (await pool.query(text, values)).rows,
    async transaction(work) {
      const client = await pool.connect()
      try {
        await client.query('begin')
        const result = await work(client)
        await client.query('commit')
        return result
      } catch (error) {
        await client.query('rollback')
        throw error
      } finally {
        client.release()
      }
    },
    close: () => pool.end(),
  }
}

/** @param {string | undefined} directory @returns {Promise<Database>} */
async function openEmbedded(directory) {
  const { PGlite } = await import('@electric-sql/pglite')
  const db = directory ? await PGlite.create(directory) : await PGlite.create()
  return {
    driver: /** @type {import('oncebox').Driver<any>} */ (fromPglite(db)),
    query: async (text, values) => (await db.query(text, values)).rows,
    transaction: (work) => db.transaction(work),
    close: () => db.close(),
  }
}
