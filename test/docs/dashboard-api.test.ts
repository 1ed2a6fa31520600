/** The page of the dashboard's API says what the table of routes and the problems do. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { STATUS } from '../../src/dashboard/problem.js'
import { QUALIFIERS } from '../../src/dashboard/query.js'
import { ACTIONS } from '../../src/dashboard/access.js'
import { readPage, ROOT } from './markdown.js'

test('the routes are those of the table', async () => {
  await promisify(execFile)(process.execPath, ['scripts/dashboard-api.mjs', '--check'], { cwd: ROOT })
})

test('every problem is in the table of statuses, under its own', () => {
  const rows = [...readPage('docs/dashboard-api.md').matchAll(/^\| (\d{3}) +\| (.*?) +\|$/gm)]
  const told = rows.flatMap(([, status, codes = '']) =>
    [...codes.matchAll(/`([A-Z_]+)`/g)].map(([, code]) => [code, Number(status)]),
  )
  expect(Object.fromEntries(told)).toEqual(STATUS)
})

test('every part of a query is on the page, and every right', () => {
  const page = readPage('docs/dashboard-api.md')
  expect(Object.keys(QUALIFIERS).filter((name) => !page.includes(name === 'data' ? 'data.' : `${name}:`))).toEqual([])
  expect(ACTIONS.filter((action) => !readPage('docs/dashboard.md').includes(`\`${action}\``))).toEqual([])
})
