/** The page of the benchmarks is what the committed results say: nobody writes figures by hand. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { readPage, ROOT } from './markdown.js'

const run = promisify(execFile)

test('the page of the benchmarks and its charts are made from the committed results', async () => {
  const { stderr } = await run(process.execPath, ['bench/page.mjs', '--check'], { cwd: ROOT })
  expect(stderr).toBe('')
})

test('every chart of the page says its figures in a text too', () => {
  const charts = [...readPage('docs/benchmarks.md').matchAll(/!\[([^\]]+)\]\(charts\/([a-z]+\.svg)\)/g)]
  expect(charts.length).toBeGreaterThan(5)
  for (const [, words = '', file = ''] of charts) {
    expect(words).toMatch(/^Bars: /)
    const svg = readPage(`docs/charts/${file}`)
    expect(svg).toMatch(/role="img" aria-label="[^"]+"/)
    expect(svg).toContain('prefers-color-scheme: dark')
  }
})
