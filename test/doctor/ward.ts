/**
 * A ward for boxes that are made ill: a database of their own, with settings that harm nobody, and a look at what the doctor
 * says.
 */
import pg from 'pg'
import { createBox, type Box, type BoxOptions, type DoctorOptions, type Finding, type MessageMap } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { scratchDatabase, scratchSchemaName, type ScratchDatabase } from '../support/postgres.js'

export type WardBox = Box<MessageMap, pg.PoolClient, unknown> & { readonly schema: string }

export interface Ward {
  readonly pool: pg.Pool
  readonly database: ScratchDatabase
  /** A box on a schema of its own, migrated. */
  admit(options?: Partial<BoxOptions<MessageMap, pg.PoolClient, unknown>>): Promise<WardBox>
  /** Runs SQL; `ob.` stands for the schema. */
  sql(box: WardBox, text: string): Promise<Record<string, unknown>[]>
  close(): Promise<void>
}

export const silent = { debug() {}, info() {}, warn() {}, error() {} }

export async function openWard(name: string): Promise<Ward> {
  const database = await scratchDatabase(name)
  const root = new pg.Client(database.url)
  await root.connect()
  // The server of the tests commits asynchronously, which the doctor would name.
  await root.query(`alter database "${database.name}" set synchronous_commit = on`)
  await root.end()
  const pool = new pg.Pool({ connectionString: database.url, max: 10 })
  pool.on('error', () => {})
  return {
    pool,
    database,
    async admit(options = {}) {
      const schema = options.schema ?? scratchSchemaName(name)
      const box = createBox({ db: fromPg(pool), logger: silent, ...options, schema })
      await box.migrate()
      return Object.assign(box, { schema })
    },
    async sql(box, text) {
      const result = await pool.query(text.replaceAll('ob.', `"${box.schema}".`))
      return result.rows as Record<string, unknown>[]
    },
    async close() {
      await pool.end()
      await database.close()
    },
  }
}

export async function codes(box: Pick<WardBox, 'admin'>, options?: DoctorOptions): Promise<string[]> {
  return (await box.admin.doctor(options)).map(({ code }) => code)
}

/** The one finding of this code. */
export async function finding(box: Pick<WardBox, 'admin'>, code: string, options?: DoctorOptions): Promise<Finding> {
  const found = await box.admin.doctor(options)
  const [one] = found.filter((each) => each.code === code)
  if (!one) throw new Error(`the doctor does not name ${code}, but ${found.map((each) => `${each.code} (${each.what})`).join(', ') || 'nothing'}`)
  return one
} // prettier-ignore
