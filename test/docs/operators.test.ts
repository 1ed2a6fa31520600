/** What the pages for operators tell people to run does run: their SQL on a box, and the script that moves one. */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { type ScratchDatabase, scratchDatabase } from '../support/postgres.js'
import { blocksOf, readPage, ROOT } from './markdown.js'

const PAGES = ['docs/runbook.md', 'docs/production.md', 'docs/troubleshooting.md', 'docs/upgrading.md', 'docs/scale.md']

/**
 * Blocks in lists are indented, which says nothing. Settings of a whole server are not tried on the one that others use, and
 * what belongs to Citus is in bench/citus.mjs.
 */
const ELSEWHERE = /^alter system|pg_dist_|create_distributed_table/m
const statements = PAGES.flatMap((page) =>
  blocksOf(readPage(page).replaceAll(/^ {2,3}/gm, ''))
    .filter(({ language, text }) => language === 'sql' && !ELSEWHERE.test(text))
    .map(({ line, text }) => ({ page, line, text })),
)

let database: ScratchDatabase
let pool: pg.Pool
beforeAll(async () => {
  database = await scratchDatabase('operators')
  pool = new pg.Pool({ connectionString: database.url, max: 4 })
  await createBox({ db: fromPg(pool) }).migrate()
})
afterAll(async () => {
  await pool?.end()
  await database?.close()
})

test('the pages have statements', () => {
  expect(statements.length).toBeGreaterThan(6)
})

test.each(statements)('$page, line $line', async ({ text }) => {
  await expect(pool.query(text)).resolves.toBeDefined()
})

test('the page about several servers shows the script that is tested', () => {
  const shown = blocksOf(readPage('docs/scale.md')).find(({ title }) => title === 'move.sh')
  expect(shown?.text).toBe(readFileSync(path.join(ROOT, 'examples/scale/move.sh'), 'utf8'))
})
