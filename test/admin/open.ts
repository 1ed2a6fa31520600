/** A box on a fresh database, for one test file of the admin. */
import pg from 'pg'
import { createBox, type Box, type BoxOptions, type MessageMap } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { scratchDatabase, scratchSchemaName } from '../support/postgres.js'

type PgBox<M extends MessageMap> = Box<M, pg.PoolClient, unknown>
type Options<M extends MessageMap> = Omit<BoxOptions<M, pg.PoolClient, unknown>, 'db'>

export interface Opened {
  readonly pool: pg.Pool
  /** A box on a schema of its own, not migrated yet. */
  box<const M extends MessageMap = MessageMap>(options?: Options<M>): PgBox<M> & { readonly schema: string }
  /** Runs SQL; `ob.` stands for the schema. */
  sql(schema: string, text: string, values?: unknown[]): Promise<Record<string, unknown>[]>
  /** Moves the schema's clock to so many ms from the real time. */
  setClock(schema: string, ms: number): Promise<void>
  close(): Promise<void>
}

export const silent = { debug() {}, info() {}, warn() {}, error() {} }

export async function open(name: string): Promise<Opened> {
  const database = await scratchDatabase(name)
  const pool = new pg.Pool({ connectionString: database.url, max: 10 })
  pool.on('error', () => {})
  const sql: Opened['sql'] = async (schema, text, values = []) =>
    (await pool.query(text.replaceAll('ob.', `"${schema}".`), values)).rows
  return {
    pool,
    box(options = {}) {
      const schema = options.schema ?? scratchSchemaName(name)
      const box = createBox({ logger: silent, ...options, schema, db: fromPg(pool) }) as never
      return Object.assign(box, { schema })
    },
    sql,
    async setClock(schema, ms) {
      const body = `select statement_timestamp() + ${Math.round(ms)} * interval '1 ms'`
      await sql(
        schema,
        `create or replace function ob.now() returns timestamptz language sql stable as '${body.replaceAll("'", "''")}'`,
      )
    },
    async close() {
      await pool.end()
      await database.close()
    },
  }
}

export const range = (count: number, from = 0): number[] => Array.from({ length: count }, (_, at) => at + from)
