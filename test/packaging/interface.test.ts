/** The dashboard's interface as it ships: what is in it, how large it is, and that nothing in it is inline. */
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'

const BUILT = fileURLToPath(new URL('../../dist/dashboard/ui', import.meta.url))
const BUDGET = { '.js': 60_000, '.css': 12_000 }

const files = readdirSync(BUILT, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => path.relative(BUILT, path.join(entry.parentPath, entry.name)))
const read = (file: string): Buffer => readFileSync(path.join(BUILT, file))

test('the interface is a page, an icon, notices, and one script and one style with hashes in their names', () => {
  const plain = files.filter((file) => !file.startsWith('assets/')).sort()
  expect(plain).toEqual(['favicon.svg', 'index.html', 'licences.txt'])
  const assets = files.filter((file) => file.startsWith('assets/')).map((file) => file.replace(/-[\w-]{8}\./, '-#.'))
  expect(assets.sort()).toEqual(['assets/index-#.css', 'assets/index-#.js'])
})

test.each(Object.entries(BUDGET))('all %s together stays below its budget', (extension, most) => {
  const texts = files.filter((file) => file.endsWith(extension)).map(read)
  expect(gzipSync(Buffer.concat(texts)).length).toBeLessThanOrEqual(most)
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
  for (const name of ['preact', '@preact/signals', '@preact/signals-core']) {
    expect(notices).toMatch(new RegExp(`^${name} \\d`, 'm'))
  }
  expect(notices).toContain('Copyright (c) 2015-present Jason Miller')
})
