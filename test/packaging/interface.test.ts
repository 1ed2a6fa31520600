/** The dashboard's interface as it ships: what is in it, how large it is, and that nothing in it is inline. */
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'

const BUILT = fileURLToPath(new URL('../../dist/dashboard/ui', import.meta.url))
/** In bytes, as they are sent. */
const BUDGET = { script: 60_000, style: 12_000, all: 150_000 }

const files = readdirSync(BUILT, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => path.relative(BUILT, path.join(entry.parentPath, entry.name)))
const assets = files.filter((file) => file.startsWith('assets/'))
const read = (file: string): Buffer => readFileSync(path.join(BUILT, file))

const sizeOf = (names: Iterable<string>): number =>
  [...names].reduce((all, name) => all + gzipSync(read(name)).length, 0)

/** A script, and those that it cannot begin without. */
function withNeeded(file: string, known = new Set<string>()): Set<string> {
  // A text that looks like an import, such as an example to copy, is none.
  if (known.has(file) || !files.includes(file)) return known
  known.add(file)
  const imported = read(file)
    .toString()
    .matchAll(/(?:from|import) ?["'`]\.\/([\w-]+\.js)["'`]/g)
  for (const [, name] of imported) withNeeded(`assets/${name}`, known)
  return known
}

const entry = assets.find((file) => /^assets\/index-[\w-]{8}\.js$/.test(file))!
const later = [
  ...read(entry)
    .toString()
    .matchAll(/import\(["'`]\.\/([\w-]+\.js)["'`]\)/g),
].map(([, name]) => name!)

test('the interface is a page, an icon, notices, one style, and scripts with hashes in their names', () => {
  expect(files.filter((file) => !file.startsWith('assets/')).sort()).toEqual([
    'favicon.svg',
    'index.html',
    'licences.txt',
  ])
  expect(assets.filter((file) => !/-[\w-]{8}\.js$/.test(file))).toEqual([
    expect.stringMatching(/^assets\/index-[\w-]{8}\.css$/),
  ])
  expect(later.map((name) => name.replace(/-[\w-]{8}\.js$/, '')).sort()).toEqual([
    'of-dialogs',
    'of-messages',
    'of-more',
    'of-trouble',
    'plot',
  ])
})

test.each(later)('what a page needs is below its budget: the shell and %s', (name) => {
  expect(sizeOf(new Set([...withNeeded(entry), ...withNeeded(`assets/${name}`)]))).toBeLessThanOrEqual(BUDGET.script)
})

test('styles, and everything together, are below their budgets', () => {
  expect(sizeOf(assets.filter((file) => file.endsWith('.css')))).toBeLessThanOrEqual(BUDGET.style)
  expect(sizeOf(files)).toBeLessThanOrEqual(BUDGET.all)
})

test('the page has nothing inline, and names nothing elsewhere', () => {
  const page = read('index.html').toString()
  expect(page).not.toMatch(/<style|\sstyle=|\son\w+=|https?:/i)
  expect([...page.matchAll(/<script\b([^>]*)>(.*?)<\/script>/gs)].map(([, , inside]) => inside)).toEqual([''])
  expect([...page.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, target]) => target)).toEqual(
    expect.arrayContaining([expect.stringMatching(/^\.\/assets\//), './favicon.svg']),
  )
})

test('the notices of all that is bundled ship beside it', () => {
  const notices = read('licences.txt').toString()
  for (const name of ['preact', '@preact/signals', '@preact/signals-core', 'uplot']) {
    expect(notices).toMatch(new RegExp(`^${name} \\d`, 'm'))
  }
  expect(notices).toContain('Copyright (c) 2015-present Jason Miller')
})
