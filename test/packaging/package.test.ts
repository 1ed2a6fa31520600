/** The package as users get it: packed, installed into an empty project, imported, compiled against, and run. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { linksOf, readPage } from '../docs/markdown.js'
import { libpqEnvironment, scratchDatabase } from '../support/postgres.js'
import { helloWorld } from './readme.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const INSTALL_TIMEOUT_MS = 180_000
const COMPILE_TIMEOUT_MS = 240_000
/** Vite's, not the compiler's: test/packaging/interface.test.ts knows what is in it. */
const INTERFACE = 'dist/dashboard/ui/'
const run = promisify(execFile)

interface Formats {
  import: { types: string; default: string }
  require: { types: string; default: string }
}

interface Manifest {
  name: string
  files: string[]
  exports: Record<string, Formats | string>
  typesVersions: Record<string, Record<string, string[]>>
  devDependencies: Record<string, string>
  [field: string]: unknown
}

vi.setConfig({ testTimeout: 2 * COMPILE_TIMEOUT_MS })

let manifest: Manifest
/** As packed, by path. */
let packed: string[]
/** The installed package's own. */
let shipped: Manifest
let project: string

beforeAll(async () => {
  manifest = await readJson<Manifest>(path.join(ROOT, 'package.json'))
  if (!existsSync(path.join(ROOT, 'dist/index.js'))) throw new Error('there is no dist to pack: run `npm run build`')

  project = await mkdtemp(path.join(tmpdir(), 'oncebox-package-'))
  await writeFile(path.join(project, 'package.json'), JSON.stringify({ private: true, type: 'module' }))
  // `npm test` has just built it; building again would replace files that other tests are running.
  const pack = await npm(ROOT, 'pack', '--json', '--ignore-scripts', '--pack-destination', project)
  const [tarball] = JSON.parse(pack) as [{ filename: string; files: { path: string }[] }]
  packed = tarball.files.map((file) => file.path)

  await install(`./${tarball.filename}`, ...fromDevDependencies('typescript', '@types/node'))
  shipped = await readJson<Manifest>(path.join(project, 'node_modules/oncebox/package.json'))
}, INSTALL_TIMEOUT_MS)

afterAll(async () => {
  if (project) await rm(project, { recursive: true, force: true })
})

describe('the packed files', () => {
  test('are those that package.json lists, and no others', () => {
    const allowed = (file: string) =>
      file === 'package.json' || manifest.files.some((entry) => file === entry || file.startsWith(`${entry}/`))
    expect(packed.filter((file) => !allowed(file))).toEqual([])
    expect(packed).toEqual(expect.arrayContaining(['LICENSE', 'README.md', 'package.json']))
  })

  test('have what the pages among them link to', () => {
    const dead = packed
      .filter((file) => file.endsWith('.md'))
      .flatMap((page) => linksOf(readPage(page)).map(({ target }) => [page, target.replace(/#.*/, '')] as const))
      .filter(([, target]) => target !== '' && !/^(https?|mailto):/.test(target))
      .filter(([page, target]) => !packed.includes(path.posix.join(path.posix.dirname(page), target)))
    expect(dead).toEqual([])
  })

  test('are each compiled from a source that still exists', () => {
    const compiled = packed.filter(
      (file) => file.startsWith('dist/') && file !== 'dist/cjs/package.json' && !file.startsWith(INTERFACE),
    )
    const orphans = compiled.filter((file) => {
      const source = file.replace(/^dist\/(cjs\/)?/, 'src/').replace(/(\.d\.ts|\.js)$/, '.ts')
      return !existsSync(path.join(ROOT, source))
    })
    expect(orphans, 'left over in dist from an earlier build: remove dist and build again').toEqual([])
  })

  test('have every path in both formats, with types for each and for compilers that do not know exports', () => {
    const paths = Object.entries(manifest.exports).filter(([key]) => key !== './package.json') as [string, Formats][]
    const named = paths.flatMap(([key, { import: esm, require: cjs }]) => {
      const old = key === '.' ? manifest['types'] : manifest.typesVersions['*']?.[key.slice(2)]?.[0]
      expect(old, key).toBe(cjs.types)
      return [esm, cjs].flatMap((format) => [format.types, format.default])
    })
    expect([...named, manifest['main'] as string].filter((file) => !packed.includes(file.slice('./'.length)))).toEqual(
      [],
    )
  })

  test('declare nothing global', () => {
    const types = packed.filter((file) => file.endsWith('.d.ts'))
    expect(types.filter((file) => readPage(file).includes('declare global'))).toEqual([])
  })

  test('bring no dependency and no install script', () => {
    expect(shipped).not.toHaveProperty('dependencies')
    expect(shipped).not.toHaveProperty('optionalDependencies')
    expect(shipped).not.toHaveProperty('bundleDependencies')
    const scripts = Object.keys(shipped['scripts'] ?? {})
    expect(scripts.filter((name) => /^(pre|post)?install$|^prepare$/.test(name))).toEqual([])
    const peers = Object.keys(shipped['peerDependencies'] ?? {})
    expect(shipped['peerDependenciesMeta']).toEqual(Object.fromEntries(peers.map((peer) => [peer, { optional: true }])))
  })
})

describe('in a project that has nothing else', () => {
  test('installing it installs it alone', async () => {
    const entries = await readdir(path.join(project, 'node_modules'))
    const expected = ['@types', 'oncebox', 'typescript', 'undici-types']
    expect(entries.filter((name) => !name.startsWith('.')).sort()).toEqual(expected)
  })

  test('every export path can be imported, for none imports a database client or a schema library', async () => {
    const program = `for (const name of ${JSON.stringify(specifiers())}) await import(name)`
    await node('--input-type=module', '--eval', program)
  })

  test('CommonJS can require it', async () => {
    await node('--input-type=commonjs', '--eval', `for (const name of ${JSON.stringify(specifiers())}) require(name)`)
  })

  test('package.json can be read by its export path', async () => {
    const program = `console.log(require('oncebox/package.json').name)`
    expect((await node('--input-type=commonjs', '--eval', program)).trim()).toBe('oncebox')
  })

  test('nothing but the export paths can be imported', async () => {
    const inner = node('--input-type=module', '--eval', `await import('oncebox/dist/index.js')`)
    await expect(inner).rejects.toMatchObject({ stderr: expect.stringContaining('ERR_PACKAGE_PATH_NOT_EXPORTED') })
  })

  test.each(['nodenext', 'bundler'])(
    'types of the main path resolve under moduleResolution %s, and add nothing to those of the language',
    async (resolution) => {
      const uses = `// @ts-expect-error a method that ES2023 does not have\nexport const asked = 'x'.isWellFormed()\n`
      await compile({ 'main.ts': importing(['oncebox']) + uses }, resolution)
    },
  )

  test.each([
    ['an ES module', 'all.mts', 'nodenext'],
    ['a CommonJS module', 'all.cts', 'nodenext'],
    ['what a bundler takes', 'all.ts', 'bundler'],
  ])(
    'types of every path resolve from %s, for they name no package that may be missing',
    async (_, file, resolution) => {
      await compile({ [file]: importing(specifiers()) }, resolution)
    },
  )

  test('an option that is undefined is one that was not given, where types tell the two apart', async () => {
    await compile({ 'undefined.ts': UNDEFINED_OPTIONS }, 'nodenext')
  })
})

/** What modules of a program give each other, without a type written down. */
const EXPORTED = `
import pg from 'pg'
import { z } from 'zod'
import { batch, createBox, defineMessages, unchecked } from 'oncebox'
import { defineConfig } from 'oncebox/config'
import { dashboard } from 'oncebox/dashboard'
import { createClient } from 'oncebox/dashboard/client'
import { toFastify, toKoa, toNodeListener } from 'oncebox/http'
import { idempotent } from 'oncebox/idempotency'
import { monitoring } from 'oncebox/monitoring'
import { fromPg } from 'oncebox/pg'
import { rabbitmq } from 'oncebox/rabbitmq'
import { createTestBox } from 'oncebox/testing'
import { webhook } from 'oncebox/webhook'
export const messages = defineMessages({ a: z.object({ n: z.number() }), b: unchecked<{ x: 1 }>() })
export const db = fromPg(new pg.Pool())
export const box = createBox({ db, messages })
export const { admin, from, to, consumer, handle, receive, send, once, start, stop, health, drain, migrate } = box
export const declared = box.consumer('c', { a: async () => 5, b: batch(async () => undefined) })
export const hook = box.from(webhook({ scheme: 'github', secret: 'x' }), { types: ['a'] })
export const orders = box.from(rabbitmq({ url: '', queue: 'orders' }))
export const mounted = [toNodeListener(hook), toFastify(hook), toKoa(hook)] as const
export const endpoint = idempotent(box, { name: 'x', scope: 'shared' }, () => new Response())
export const served = [dashboard(box, { dev: true }), monitoring(box)] as const
export const handled = () => box.handle({ id: '1', type: 'b', data: { x: 1 } })
export const stored = () => box.receive([{ id: '1', type: 'b', data: { x: 1 } }])
export const status = () => admin.status()
export const counts = async () => (await admin.status()).consumers['c']
export const seen = () => Promise.all([admin.messages({}), admin.consumers(), admin.sinks(), admin.doctor(), box.health()])
export const changed = () => Promise.all([admin.retry({ consumer: 'c' }), admin.prune(), admin.removeConsumer('c')])
export const tested = () => createTestBox({ messages })
export const sent = async () => (await tested()).sent()
export const client = createClient({ url: '' })
export const shown = () => Promise.all([client.session({}), client.overview({ box: 'b' }), client.doctor({ box: 'b' })])
export default defineConfig({ box: () => box })
`

/** What people write who pass on what they may not have. */
const UNDEFINED_OPTIONS = `
import { createBox, type Driver, type Message } from 'oncebox'
import { rabbitmq } from 'oncebox/rabbitmq'
export async function use(db: Driver<unknown>, tx: unknown, { key, subject, headers }: Message, given: undefined): Promise<void> {
  const box = createBox({ db, schema: given, source: given, hooks: given, maxBytes: given })
  box.consumer('a', { x: (_, { send }) => send('y', 1, { key, subject, headers, deliverAt: given }) }, {
    retry: { attempts: given, baseMs: given }, group: { messages: given, together: given }, order: given, retainMs: given,
  })
  await box.receive({ id: '1', type: 'x', data: 1, key, subject, time: given, source: given })
  box.from(rabbitmq({ url: '', queue: '', prefetch: given, assert: given }), { types: ['x'], unrouted: given })
  box.to({ publish: async () => [], close: async () => {} }, { types: given, keepMs: given })
  await box.start({ consumers: given })
  await box.health({ maxLagMs: given })
  await box.admin.retry({ consumer: given, type: given }, { by: given, limit: given })
  await box.stop({ timeoutMs: given })
}
`

describe('in a project with clients and schema libraries', () => {
  beforeAll(async () => {
    await install(...fromDevDependencies('pg', '@types/pg', 'postgres', 'zod', '@electric-sql/pglite'))
  }, INSTALL_TIMEOUT_MS)

  test.each(['nodenext', 'bundler'])('types of every path resolve under moduleResolution %s', async (resolution) => {
    await compile({ 'all.ts': importing(specifiers()) }, resolution)
  })

  test('every export path can be imported', async () => {
    const program = `for (const name of ${JSON.stringify(specifiers())}) await import(name)`
    await node('--input-type=module', '--eval', program)
  })

  test.each(['nodenext', 'bundler'])(
    'what a program exports can be named in its declarations, under %s',
    async (resolution) => {
      const declares = { noEmit: false, declaration: true, emitDeclarationOnly: true, outDir: `declared-${resolution}` }
      await compile({ 'exported.ts': EXPORTED }, resolution, declares)
    },
  )

  test("the README's first program compiles and runs as printed", async () => {
    const { program, sql, output } = helloWorld(await readFile(path.join(ROOT, 'README.md'), 'utf8'))
    await compile({ 'hello.ts': program }, 'nodenext', { noEmit: false, outDir: 'hello' })

    await using database = await scratchDatabase('hello')
    if (sql) {
      const client = new pg.Client({ connectionString: database.url })
      await client.connect()
      await client.query(sql).finally(() => client.end())
    }
    const env = { ...process.env, ...libpqEnvironment(database.url), DATABASE_URL: database.url }
    const hello = await run(process.execPath, ['hello/hello.js'], { cwd: project, env, timeout: 120_000 })
    if (output !== undefined) expect(hello.stdout.trim()).toBe(output.trim())
  })
})

/** `oncebox`, `oncebox/pg`, … */
function specifiers(): string[] {
  // What is made of a framework is imported beside it: test/nest does.
  const paths = Object.keys(manifest.exports).filter((key) => key !== './package.json' && !key.startsWith('./nest'))
  return paths.map((key) => `oncebox${key.slice(1)}`)
}

function importing(names: string[]): string {
  const imports = names.map((name, index) => `import * as m${index} from '${name}'\n`)
  return `${imports.join('')}export const modules = [${names.map((_, index) => `m${index}`).join(', ')}]\n`
}

function fromDevDependencies(...names: string[]): string[] {
  return names.map((name) => `${name}@${manifest.devDependencies[name] ?? 'latest'}`)
}

async function install(...packages: string[]): Promise<void> {
  await npm(project, 'install', '--no-audit', '--no-fund', '--prefer-offline', ...packages)
}

async function npm(cwd: string, ...args: string[]): Promise<string> {
  return (await run('npm', args, { cwd, timeout: INSTALL_TIMEOUT_MS, maxBuffer: 64 << 20 })).stdout
}

async function node(...args: string[]): Promise<string> {
  return (await run(process.execPath, args, { cwd: project, timeout: 120_000 })).stdout
}

/** Strictly, and with the libraries' own declarations checked as well. */
async function compile(files: Record<string, string>, moduleResolution: string, more: object = {}): Promise<void> {
  for (const [name, text] of Object.entries(files)) await writeFile(path.join(project, name), text)
  const compilerOptions = {
    target: 'es2022',
    lib: ['es2023', 'esnext.disposable', 'dom'],
    module: moduleResolution === 'bundler' ? 'esnext' : moduleResolution,
    moduleResolution,
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    skipLibCheck: false,
    types: ['node'],
    noEmit: true,
    ...more,
  }
  const config = `tsconfig.${Object.keys(files)[0]}.${moduleResolution}.json`
  await writeFile(path.join(project, config), JSON.stringify({ compilerOptions, files: Object.keys(files) }))
  const tsc = run(process.execPath, ['node_modules/typescript/bin/tsc', '-p', config, '--pretty', 'false'], {
    cwd: project,
    timeout: COMPILE_TIMEOUT_MS,
  })
  const stdout = await tsc.then(
    () => '',
    (error: { stdout: string; message: string }) => error.stdout || error.message,
  )
  // A client's own declarations may be in error without further packages (PGlite's are), and that is not ours to fail for.
  const ours = stdout.split('\n').filter((line) => line !== '' && !/^node_modules\/(?!oncebox\/)/.test(line))
  expect(ours).toEqual([])
}

async function readJson<T>(file: string): Promise<T> {
  return JSON.parse(await readFile(file, 'utf8')) as T
}
