/**
 * The packed package in the toolchains that people have: Node.js in both formats, Jest, Vitest, tsx, ts-node, Bun, bundlers,
 * and compilers from the oldest to the newest. What the table in docs/toolchains.md says is what is tried here.
 *
 * `npm test` tries a part of it. All of it, which installs two dozen more packages: ONCEBOX_TOOLCHAINS=all npx vitest run test/toolchains
 * To write the table into the page: ONCEBOX_TOOLCHAINS=write npx vitest run test/toolchains -t page
 */
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { rm } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { readPage, ROOT } from '../docs/markdown.js'
import { type ScratchDatabase, scratchDatabase } from '../support/postgres.js'
import { CELLS, type Cell } from './cells.js'
import { openProject, pack } from './project.js'

const ALL = process.env['ONCEBOX_TOOLCHAINS'] === 'all'
// The first run installs what the later ones find.
vi.setConfig({ testTimeout: 900_000 })

let tarball: string
let database: ScratchDatabase
beforeAll(async () => {
  tarball = await pack()
  database = await scratchDatabase('toolchains')
})
afterAll(async () => {
  await rm(path.dirname(tarball), { recursive: true })
  await database.close()
})

const tried = CELLS.filter((cell) => ALL || !cell.long).map((cell, number) => ({ ...cell, number }))

test.each(tried)('$tool $version, $way: $answer', async (cell) => {
  const project = await openProject(tarball, cell.packages)
  try {
    await project.write(cell.files)
    const env = { DATABASE_URL: database.url, SCHEMA: `box_${cell.number}`, NO_COLOR: '1', NODE_OPTIONS: '' }
    const program = cell.program && path.join(project.directory, 'node_modules', cell.program)
    const options = program === undefined ? { env } : { program, env }
    for (const command of cell.commands.slice(0, -1))
      expect(await project.run(command, options)).toMatchObject({ code: 0, output: '' })
    const { code, output } = await project.run(cell.commands.at(-1)!, options)
    expect(output).toMatch(cell.expected)
    expect(code === 0, output).toBe(!cell.fails)
  } finally {
    await project.close()
  }
})

test('the page says of each what is tried here', () => {
  const page = readPage('docs/toolchains.md')
  const said = page.replace(/\| tool [^]*?\n\n/, `${table(CELLS)}\n\n`)
  if (process.env['ONCEBOX_TOOLCHAINS'] === 'write') writeFileSync(path.join(ROOT, 'docs/toolchains.md'), said)
  else expect(page).toBe(said)
})

/** One line for all versions of a tool that give the same answer. */
function table(cells: readonly Cell[]): string {
  const lines = new Map<string, { cell: Cell; versions: string[] }>()
  for (const cell of cells) {
    const line = `${cell.tool} ${cell.way} ${cell.answer}`
    const { versions } = lines.get(line) ?? { versions: [] }
    lines.set(line, { cell, versions: [...versions, cell.version] })
  }
  const rows = [...lines.values()].map(({ cell, versions }) => [cell.tool, versions.join(', '), cell.way, cell.answer])
  const widths = ['tool', 'version', 'how', 'answer'].map((head, at) =>
    Math.max(head.length, ...rows.map((row) => row[at]!.length)),
  )
  const print = (row: string[]) => `| ${row.map((text, at) => text.padEnd(widths[at]!)).join(' | ')} |`
  const rule = print(widths.map((width) => '-'.repeat(width)))
  return [print(['tool', 'version', 'how', 'answer']), rule, ...rows.map(print)].join('\n')
}
