/**
 * Every TypeScript example of the README and the docs compiles, strictly, against the sources.
 *
 * Each block is a module, which other blocks of its page can import by its title. The block titled box.ts in
 * docs/README.md declares what all use without declaring it (`pool`, `messages`, `box`); what one block alone needs stands
 * before it in a comment, `<!-- given … -->`. Files that people copy whole have to declare all that they use.
 */
import { execFile } from 'node:child_process'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, expect, test } from 'vitest'
import { blocksOf, pages, readPage, ROOT } from './markdown.js'

const run = promisify(execFile)
const DIRECTORY = path.join(ROOT, 'node_modules/.cache/oncebox-docs')
const SHARED = ['pool', 'messages', 'box']
const COMPILE_TIMEOUT_MS = 240_000

interface Example {
  readonly file: string
  readonly page: string
  readonly line: number
  readonly text: string
  readonly given: string
}

/** CONTRIBUTING.md shows how code should look, and means no code in particular. */
const checked = pages().filter((page) => page !== 'CONTRIBUTING.md')

const examples: Example[] = checked.flatMap((page) =>
  blocksOf(readPage(page))
    .filter(({ language, title }) => language === 'ts' && title !== 'box.ts')
    .map(({ line, title = `line-${line}.ts`, text, given = '' }) => {
      const directory = page.replace(/\.md$/, '').replaceAll(/[^\w]+/g, '-')
      return { file: `${directory}/${title}`, page, line, text, given }
    }),
)

const isWhole = ({ file, given }: Example): boolean =>
  given === '' && /(^|[/])(hello|service|oncebox\.config)\.ts$/.test(file)

let problems: string[]

beforeAll(async () => {
  await rm(DIRECTORY, { recursive: true, force: true })
  await mkdir(DIRECTORY, { recursive: true })
  const shared = blocksOf(readPage('docs/README.md')).find(({ title }) => title === 'box.ts')
  if (!shared) throw new Error('docs/README.md has no block titled box.ts')
  const globals = SHARED.map((name) => `  const ${name}: typeof shared.${name}\n`).join('')
  await write('package.json', '{ "type": "module" }')
  await write('box.ts', shared.text)
  await write('globals.d.ts', `import type * as shared from './box.js'\ndeclare global {\n${globals}}\n`)
  for (const { file, text, given } of examples) await write(file, `${given}${text}\nexport {}\n`)
  const whole = examples.filter(isWhole).map(({ file }) => file)
  const rest = examples.filter((one) => !isWhole(one)).map(({ file }) => file)
  const found = [await compile('whole', whole), await compile('rest', ['globals.d.ts', 'box.ts', ...rest])]
  problems = found.flat()
  // `npm run check` reports those of the sources; anything else, such as a config that is not understood, is ours.
  problems = problems.filter((problem) => !problem.startsWith('../'))
}, COMPILE_TIMEOUT_MS)

test('the pages have examples', () => {
  expect(examples.length).toBeGreaterThan(30)
})

test('the config file and whole programs are compiled without what other blocks declare', () => {
  expect(examples.filter(isWhole).map(({ page }) => page)).toEqual(
    expect.arrayContaining(['README.md', 'docs/config.md']),
  )
})

test.each(examples)('$page, line $line', ({ file, line, given }) => {
  const own = problems.filter((problem) => problem.startsWith(`${file}(`))
  expect(own.map((problem) => atPage(problem, line, given))).toEqual([])
})

test('nothing else is wrong with them', () => {
  const isExamples = (problem: string): boolean => examples.some(({ file }) => problem.startsWith(`${file}(`))
  expect(problems.filter((problem) => !problem.startsWith(' ') && !isExamples(problem))).toEqual([])
})

/** What tsc says against these files. */
async function compile(name: string, files: readonly string[]): Promise<string[]> {
  const config = {
    extends: '../../../tsconfig.json',
    compilerOptions: {
      noEmit: true,
      exactOptionalPropertyTypes: true,
      noUnusedLocals: false,
      noUnusedParameters: false,
    },
    include: [],
    files,
  }
  await write(`tsconfig.${name}.json`, JSON.stringify(config))
  const tsc = path.join(ROOT, 'node_modules/typescript/bin/tsc')
  const project = path.join(DIRECTORY, `tsconfig.${name}.json`)
  return run(process.execPath, [tsc, '-p', project, '--pretty', 'false'], {
    cwd: DIRECTORY,
    timeout: COMPILE_TIMEOUT_MS,
  }).then(
    () => [],
    (error: { stdout: string; message: string }) => (error.stdout || error.message).split('\n').filter(Boolean),
  )
}

/** An error with the line of the page in place of the module's. */
function atPage(problem: string, firstLine: number, given: string): string {
  const before = given.split('\n').length - 1
  return problem.replace(/^[^(]*\((\d+),\d+\)/, (_, line: string) => `line ${firstLine + Number(line) - 1 - before}`)
}

async function write(file: string, text: string): Promise<void> {
  const target = path.join(DIRECTORY, file)
  await mkdir(path.dirname(target), { recursive: true })
  await writeFile(target, text)
}
