/** What Drizzle Kit does to the tables of a box when it makes a database match a schema of the user's. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { installed } from '../support/installed.js'
import { type ScratchDatabase, scratchDatabase } from '../support/postgres.js'

let database: ScratchDatabase
let pool: pg.Pool
let project: string
beforeAll(async () => {
  const { directory } = await installed('drizzle-kit', ['drizzle-kit@0.31.11', 'drizzle-orm@0.45.4', 'pg@8.23.1'])
  project = await mkdtemp(path.join(tmpdir(), 'oncebox-drizzle-kit-'))
  await symlink(path.join(directory, 'node_modules'), path.join(project, 'node_modules'))
  await writeFile(
    path.join(project, 'schema.mjs'),
    `import { pgTable, text } from 'drizzle-orm/pg-core'
    export const stock = pgTable('stock', { sku: text().primaryKey() })`,
  )
  database = await scratchDatabase('drizzle_kit')
  pool = new pg.Pool({ connectionString: database.url })
})
afterAll(async () => {
  await pool?.end()
  await database?.close()
  await rm(project, { recursive: true, force: true })
})

/** `drizzle-kit push`, in a project with a box, and with these settings. Answers with the tables that are there then. */
async function push(settings: object): Promise<string[]> {
  await createBox({ db: fromPg(pool) }).migrate()
  const config = { dialect: 'postgresql', schema: './schema.mjs', dbCredentials: { url: database.url }, ...settings }
  await writeFile(path.join(project, 'drizzle.config.json'), JSON.stringify(config))
  const args = ['node_modules/drizzle-kit/bin.cjs', 'push', '--force', '--config=drizzle.config.json']
  // It cannot drop a schema that has functions, and says so once it has dropped the tables.
  await promisify(execFile)(process.execPath, args, { cwd: project, timeout: 100_000 }).catch(() => undefined)
  const { rows } = await pool.query<{ name: string }>(
    `select format('%s.%s', schemaname, tablename) name from pg_tables where schemaname in ('public', 'oncebox')`,
  )
  return rows.map(({ name }) => name)
}

test('by default, push leaves the tables of a box alone', async () => {
  expect(await push({})).toEqual(expect.arrayContaining(['public.stock', 'oncebox.message', 'oncebox.work']))
})

test('push drops the tables of a box whose schema it was told to look at, as the page warns', async () => {
  expect(await push({ schemaFilter: ['public', 'oncebox'] })).toEqual(['public.stock'])
})
