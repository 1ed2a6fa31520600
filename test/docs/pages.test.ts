/** The pages hang together: links lead somewhere, lists are complete, and files that are named exist. */
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { anchorsOf, linksOf, pages, readPage, ROOT } from './markdown.js'

describe('every link', () => {
  test.each(pages())('of %s leads to a page, and to a heading if it names one', (page) => {
    const broken = linksOf(readPage(page)).filter(({ target }) => !isReachable(page, target))
    expect(broken).toEqual([])
  })
})

test('every page of docs is in its table of contents', () => {
  const listed = new Set(linksOf(readPage('docs/README.md')).map(({ target }) => target.replace(/#.*/, '')))
  const missing = pages().filter((page) => page.startsWith('docs/') && !listed.has(path.relative('docs', page)))
  expect(missing.filter((page) => page !== 'docs/README.md')).toEqual([])
})

test('every error code has an entry, and every entry is a code', () => {
  const codes = [...readFileSync(path.join(ROOT, 'src/errors.ts'), 'utf8').matchAll(/^ {2}\| '([A-Z_]+)'$/gm)]
  const entries = [...readPage('docs/errors.md').matchAll(/^### ([A-Z_]+)$/gm)]
  expect(codes.length).toBeGreaterThan(20)
  expect(entries.map(([, code]) => code)).toEqual(codes.map(([, code]) => code))
})

test('every file that ARCHITECTURE.md names exists, and runs the statements it is named for', () => {
  const page = readPage('ARCHITECTURE.md')
  const files = [...page.matchAll(/`((?:src|test|bench|scripts)\/[\w./-]+)`/g)].map(([, file = '']) => file)
  expect(files.filter((file) => !existsSync(path.join(ROOT, file)))).toEqual([])
  // A row of the table: | step | `src/…` | `STATEMENT`, `STATEMENT` in `src/…` |
  const rows = [...page.matchAll(/^\|[^|]*\| `([\w./-]+)` *\| (`[A-Z_]+`.*) in `([\w./-]+)` *\|$/gm)]
  expect(rows.length).toBeGreaterThan(10)
  const wrong = rows.flatMap(([, step = '', names = '', file = '']) => {
    const declared = readFileSync(path.join(ROOT, file), 'utf8')
    const used = readFileSync(path.join(ROOT, step), 'utf8').replace(/^import .*$/gm, '')
    const statements = [...names.matchAll(/`([A-Z_]+)`/g)].map(([, name]) => name!)
    return [
      ...statements
        .filter((name) => !declared.includes(`export const ${name} =`))
        .map((name) => `${name} is not in ${file}`),
      ...statements
        .filter((name) => !new RegExp(`\\b${name}\\b`).test(used))
        .map((name) => `${step} does not run ${name}`),
    ]
  })
  expect(wrong).toEqual([])
})

test('the code that CONTRIBUTING.md shows of a file is in that file', () => {
  const shown = [...readPage('CONTRIBUTING.md').matchAll(/From `([\w./-]+)`:\n\n```ts\n([^]*?)\n```/g)]
  expect(shown.length).toBeGreaterThan(0)
  for (const [, file = '', code = ''] of shown) expect(readFileSync(path.join(ROOT, file), 'utf8')).toContain(code)
})

function isReachable(page: string, target: string): boolean {
  if (/^(https?|mailto):/.test(target)) return true
  const [file = '', anchor] = target.split('#')
  const found = file === '' ? page : path.join(path.dirname(page), file)
  if (!existsSync(path.join(ROOT, found))) return false
  return anchor === undefined || (found.endsWith('.md') && anchorsOf(readPage(found)).has(anchor))
}
