/** The config file: found from the directory upward, loaded whatever it is written in, and told of by file and line. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { installed } from '../support/installed.js'

const run = promisify(execFile)
const LOAD = fileURLToPath(new URL('./load-config.mjs', import.meta.url))
const BOX = `{ start() {}, stop() {}, migrate() {}, receive() {}, note: 'found' }`

let root: string
let count = 0

beforeAll(async () => {
  root = await realpath(await mkdtemp(path.join(tmpdir(), 'oncebox-config-')))
})
afterAll(() => rm(root, { recursive: true, force: true }))

async function project(files: Record<string, string>): Promise<string> {
  const directory = path.join(root, String(++count))
  for (const [name, text] of Object.entries({ '.git/HEAD': '', ...files })) {
    await mkdir(path.dirname(path.join(directory, name)), { recursive: true })
    await writeFile(path.join(directory, name), text)
  }
  return directory
}

interface Loaded {
  readonly file?: string
  readonly schema?: string
  readonly note?: string
  readonly code?: number
  readonly message?: string
  readonly advice?: string
}

async function load(...args: string[]): Promise<Loaded> {
  const { stdout } = await run(process.execPath, [LOAD, ...args])
  return JSON.parse(stdout) as Loaded
}

test('a config is found above the directory that a command runs in, and not above its repository', async () => {
  const directory = await project({
    'oncebox.config.mjs': `export default { box: ${BOX}, schema: 'shop' }`,
    'src/deep/file.txt': '',
    'vendor/other/.git/HEAD': '',
  })
  const file = path.join(directory, 'oncebox.config.mjs')
  expect(await load(path.join(directory, 'src/deep'))).toEqual({ file, schema: 'shop', note: 'found' })
  const none = await load(path.join(directory, 'vendor/other'))
  expect(none).toMatchObject({ code: 2, advice: expect.stringContaining('oncebox init') })
  for (const ending of ['.ts', '.mts', '.js', '.mjs', '.cjs']) expect(none.message).toContain(ending)
})

test.each([
  ['oncebox.config.js', 'module', `export default { box: async () => (${BOX}) }`],
  ['oncebox.config.js', 'commonjs', `module.exports = { box: () => (${BOX}) }`],
  ['oncebox.config.cjs', 'module', `module.exports = { box: ${BOX} }`],
  ['conf/box.mjs', 'commonjs', `export default { box: ${BOX} }`],
])('%s is loaded in a package of type %s', async (name, type, text) => {
  const directory = await project({ 'package.json': JSON.stringify({ type }), [name]: text })
  const asked = name.startsWith('conf') ? [name] : []
  expect(await load(directory, ...asked)).toEqual({ file: path.join(directory, name), note: 'found' })
})

const TYPED = {
  'oncebox.config.ts': `import { name } from './name.js'\nexport default { box: ${BOX} as object, schema: name }`,
  'name.ts': `export const name: string = 'typed'`,
}

test.each(['module', 'commonjs'])('TypeScript is read by the tsx of a project of type %s', async (type) => {
  const { directory: modules } = await installed('tsx', ['tsx@4.23.15'])
  const directory = await project({ 'package.json': JSON.stringify({ type }), ...TYPED })
  await symlink(path.join(modules, 'node_modules'), path.join(directory, 'node_modules'))
  expect(await load(directory)).toMatchObject({ schema: 'typed', note: 'found' })
  await writeFile(path.join(directory, 'name.ts'), `export const name = 'x'\n\nthrow new Error('out of order')`)
  const file = path.join(directory, 'name.ts:3')
  expect(await load(directory)).toMatchObject({ code: 1, message: `${file} cannot be loaded: out of order` })
})

test('without tsx, TypeScript is read where Node.js can, and elsewhere it is said what to do', async () => {
  const directory = await project({ 'package.json': '{ "type": "module" }', ...TYPED })
  const loaded = await load(directory)
  if ((process.features as { typescript?: unknown }).typescript) expect(loaded).toMatchObject({ schema: 'typed' })
  else expect(loaded).toMatchObject({ code: 1, advice: expect.stringMatching(/--save-dev tsx.*22\.18.*\.mjs/) })
})

test.each([
  ['a syntax error', `const a = 1\nexport default { box: }\n`, 2, 'Unexpected token'],
  ['an error that it throws', `\n\nthrow new Error('no such luck')`, 3, 'no such luck'],
  ['a package that is missing', `\nimport x from 'not-installed/at-all'`, 2, `'not-installed'`],
  ['a file that is missing', `import './a.mjs'`, 1, 'a.mjs'],
  ['no default export', `const a = 1`, 1, 'default export'],
  ['no config', `\nexport default 7`, 2, 'no config'],
  ['a box that is none', `export default {\n  schema: 'a',\n  box: 7,\n}`, 3, 'box'],
  ['a url that is none', `export default {\n  box: ${BOX},\n  url: 7,\n}`, 3, 'url'],
  ['a field that there is not', `export default {\n  box: ${BOX},\n  shema: 'a',\n}`, 3, 'shema'],
])('%s is told with the file and the line', async (_, text, line, words) => {
  const directory = await project({ 'oncebox.config.mjs': text })
  const { code, message } = await load(directory)
  expect({ code, message }).toEqual({ code: 1, message: expect.stringContaining(words) })
  expect(message).toContain(path.join(directory, `oncebox.config.mjs:${line}`))
})

test('two configs in one directory, and one that is asked for and not there, are refused', async () => {
  const text = `export default { box: ${BOX} }`
  const directory = await project({ 'oncebox.config.mjs': text, 'oncebox.config.cjs': text })
  expect(await load(directory)).toMatchObject({ code: 2, advice: expect.stringContaining('--config') })
  expect(await load(directory, 'oncebox.config.mjs')).toMatchObject({ note: 'found' })
  expect(await load(directory, 'oncebox.config.js')).toMatchObject({ code: 2 })
})
