/** The dashboard's interface as it ships: what is in it, how large it is, and that nothing in it is inline. */
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'

const BUILT = fileURLToPath(new URL('../../dist/dashboard/ui', import.meta.url))
/** In bytes, as they are sent. The charts are loaded after the page is there. */
const BUDGET = { 'index-#.js': 60_000, 'index-#.css': 12_000, 'plot-#.js': 30_000 }

const files = readdirSync(BUILT, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => path.relative(BUILT, path.join(entry.parentPath, entry.name)))
const assets = files
  .filter((file) => file.startsWith('assets/'))
  .map((file) => ({ file, name: path.basename(file).replace(/-[\w-]{8}\./, '-#.') }))
const read = (file: string): Buffer => readFileSync(path.join(BUILT, file))

test('the interface is a page, an icon, notices, and a style and two scripts with hashes in their names', () => {
  const plain = files.filter((file) => !file.startsWith('assets/')).sort()
  expect(plain).toEqual(['favicon.svg', 'index.html', 'licences.txt'])
  expect(assets.map(({ name }) => name).sort()).toEqual(Object.keys(BUDGET).sort())
})

test.each(Object.entries(BUDGET))('%s stays below its budget', (name, most) => {
  const { file } = assets.find((asset) => asset.name === name)!
  expect(gzipSync(read(file)).length).toBeLessThanOrEqual(most)
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
