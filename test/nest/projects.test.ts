/**
 * The page's code as users have it: in projects of their own, on every major of Nest, compiled with the settings of `nest new`,
 * run as an app that is ended by SIGTERM, and tested by its Jest or Vitest. Packages are installed once, under node_modules/.cache.
 *
 * ONCEBOX_NEST_MATRIX=1 runs every version with both formats and both platforms, and all tests of this folder on every version.
 */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { blocksOf, readPage, ROOT } from '../docs/markdown.js'
import { installed } from '../support/installed.js'
import { scratchDatabase } from '../support/postgres.js'

const run = promisify(execFile)
const TIMEOUT_MS = 300_000

type Format = 'commonjs' | 'module'
type Platform = 'express' | 'fastify'

/** The oldest that is promised, and the newest of each major; packages that have no such version have one of their own. */
const VERSIONS = {
  '10.2.0': { all: '10.2.0', 'reflect-metadata': '0.1.14' },
  '10': { all: '10.4.22' },
  '11': { all: '11.2.9', 'platform-fastify': '11.2.8', testing: '11.2.6' },
  '12': { all: '12.4.2', 'platform-fastify': '12.3.2', testing: '12.1.1' },
} as const
type Version = keyof typeof VERSIONS

const WHOLE = process.env['ONCEBOX_NEST_MATRIX'] !== undefined

const CELLS: [Version, Format, Platform][] = WHOLE
  ? (Object.keys(VERSIONS) as Version[]).flatMap((version) =>
      (['commonjs', 'module'] as const).flatMap((format) =>
        (['express', 'fastify'] as const).map((platform): [Version, Format, Platform] => [version, format, platform]),
      ),
    )
  : [
      ['10.2.0', 'commonjs', 'express'],
      ['12', 'module', 'fastify'],
    ]

/** Starts the page's app, has an order handled, and ends as an orchestrator ends it. */
const MAIN = `
import { NestFactory } from '@nestjs/core'
import { getBoxToken } from 'oncebox/nest'
import { AppModule } from './app.module.js'
import { Adapter } from './platform.js'
import type { Box, MessageMap } from 'oncebox'

async function main() {
  const app = await NestFactory.create(AppModule, new Adapter() as never, { logger: ['error', 'warn'] })
  app.enableShutdownHooks()
  await app.listen(0)
  const box = app.get<Box<MessageMap, unknown>>(getBoxToken())
  const order = { id: 'order-1', type: 'order.placed', data: { sku: 'tea', quantity: 3 } }
  for (let n = 0; n < 3; n++) console.log((await box.handle(order)).status)
  console.log((await box.health()).ok)
  process.kill(process.pid, 'SIGTERM')
}
void main()
`

/** Titles of the page's files that are for TypeORM. */
const TYPEORM = 'typeorm/'

let files: Record<string, string>
let onTypeOrm: Record<string, string>

beforeAll(() => {
  if (!existsSync(path.join(ROOT, 'dist/cjs/nest/index.js'))) throw new Error('there is no dist: run `npm run build`')
  const blocks = blocksOf(readPage('docs/nest.md')).filter(({ title }) => title !== undefined && title !== 'orders.ts')
  const all = blocks.map(({ title, text }) => [title!, text] as const)
  files = Object.fromEntries(all.filter(([title]) => !title.startsWith(TYPEORM)))
  const own = all
    .filter(([title]) => title.startsWith(TYPEORM))
    .map(([title, text]) => [title.slice(TYPEORM.length), text])
  const page = files['messages.ts']!.replace(
    "import type { PoolClient } from 'pg'",
    "import type { EntityManager } from 'typeorm'",
  )
  onTypeOrm = { ...Object.fromEntries(own), 'messages.ts': page.replaceAll('PoolClient', 'EntityManager') }
})

test.each(CELLS)(
  'Nest %s, %s, %s: the app handles an order once, and ends with SIGTERM',
  { timeout: TIMEOUT_MS },
  async (...cell) => {
    const [version, format, platform] = cell
    const directory = await project(version, format)
    const name = platform === 'express' ? 'ExpressAdapter' : 'FastifyAdapter'
    await put(directory, format, {
      ...Object.fromEntries(Object.entries(files).filter(([file]) => !file.includes('.spec.'))),
      'main.ts': MAIN,
      'platform.ts': `export { ${name} as Adapter } from '@nestjs/platform-${platform}'\n`,
    })
    await compile(directory)
    await using database = await withStock()
    const ended = await node(directory, ['dist/main.js'], database.url)
    expect(ended).toMatchObject({ stdout: 'handled\nduplicate\nduplicate\ntrue\n', stderr: '', signal: 'SIGTERM' })
    expect(await piecesOf(database.url)).toBe(7)
  },
)

test('on TypeORM the app handles an order once, and ends with SIGTERM', { timeout: TIMEOUT_MS }, async () => {
  const packages = ['@nestjs/typeorm@12.0.2', `typeorm@${versionOf('typeorm')}`]
  const directory = await project('12', 'module', { name: '-typeorm', packages })
  const platform = `export { ExpressAdapter as Adapter } from '@nestjs/platform-express'\n`
  await put(directory, 'module', { ...onTypeOrm, 'main.ts': MAIN, 'platform.ts': platform })
  await compile(directory)
  await using database = await withStock()
  const ended = await node(directory, ['dist/main.js'], database.url)
  expect(ended).toMatchObject({ stdout: 'handled\nduplicate\nduplicate\ntrue\n', stderr: '', signal: 'SIGTERM' })
  expect(await piecesOf(database.url)).toBe(7)
})

test("the page's test passes with the Jest of Nest 11, without a flag", { timeout: TIMEOUT_MS }, async () => {
  const directory = await project('11', 'commonjs', {
    name: '-jest',
    packages: ['jest@30.5.2', 'ts-jest@29.4.15', '@types/jest@30.0.0'],
  })
  await put(directory, 'commonjs', files)
  const config = {
    moduleFileExtensions: ['js', 'json', 'ts'],
    rootDir: 'src',
    testRegex: '.*\\.spec\\.ts$',
    transform: { '^.+\\.(t|j)s$': 'ts-jest' },
    testEnvironment: 'node',
  }
  await writeFile(path.join(directory, 'jest.config.json'), JSON.stringify(config))
  await using database = await scratchDatabase('nest_jest')
  const { stderr, code } = await node(directory, ['node_modules/jest/bin/jest.js', '--ci'], database.url)
  expect(stderr).toContain('Tests:       1 passed, 1 total')
  expect(stderr).not.toContain('did not exit')
  expect(code).toBe(0)
})

test("the page's test passes with the Vitest of Nest 12", { timeout: TIMEOUT_MS }, async () => {
  const directory = await project('12', 'module')
  await put(directory, 'module', files)
  const vitest = path.join(ROOT, 'node_modules/vitest/vitest.mjs')
  await using database = await scratchDatabase('nest_vitest')
  const args = [vitest, 'run', '--globals', '--root', directory, '--reporter=json', '--configLoader=runner']
  const { stdout, stderr, code } = await node(directory, args, database.url)
  expect({ code, stderr }, stdout).toEqual({ code: 0, stderr: '' })
  expect(JSON.parse(stdout.slice(stdout.indexOf('{')))).toMatchObject({ numPassedTests: 1, numFailedTests: 0 })
})

test.runIf(WHOLE).each(Object.keys(VERSIONS) as Version[])(
  'what the tests of this folder promise holds on Nest %s',
  { timeout: 2 * TIMEOUT_MS },
  async (version) => {
    const packages = version.startsWith('10')
      ? ['@nestjs/terminus@11.0.0', '@nestjs/config@3.3.0']
      : ['@nestjs/terminus@12.1.0', '@nestjs/config@12.0.1']
    const directory = await project(version, 'module', { name: '-all', packages })
    const vitest = path.join(ROOT, 'node_modules/vitest/vitest.mjs')
    const args = ['run', '--config', 'test/nest/versions.config.ts', '--typecheck.enabled=false']
    const tests = ['handlers', 'mistakes', 'module'].map((name) => `test/nest/${name}.test.ts`)
    const env = { ...process.env, ONCEBOX_NEST_PACKAGES: directory }
    const options = { cwd: ROOT, env, timeout: 2 * TIMEOUT_MS, maxBuffer: 16 << 20 }
    const file = path.join(directory, 'report.json')
    // It exits with 1 if a test fails, and the report says which.
    await run(process.execPath, [vitest, ...args, ...tests], options).catch(() => undefined)
    const report = JSON.parse(await readFile(file, 'utf8')) as {
      numPassedTests: number
      testResults: { assertionResults: { status: string; fullName: string; failureMessages: string[] }[] }[]
    }
    const failed = report.testResults.flatMap((file) =>
      file.assertionResults.filter(({ status }) => status === 'failed'),
    )
    expect(failed.map(({ fullName, failureMessages }) => [fullName, ...failureMessages].join('\n'))).toEqual([])
    expect(report.numPassedTests).toBeGreaterThan(50)
  },
)

function versionOf(name: string): string {
  return manifest.devDependencies[name as keyof typeof manifest.devDependencies].replace(/^\^/, '')
}

/** A directory with the packages of this version, and the package as it was built. */
async function project(
  version: Version,
  format: Format,
  more = { name: '', packages: [] as string[] },
): Promise<string> {
  const { all, ...of } = VERSIONS[version] as { all: string } & Record<string, string>
  const own = ['pg', '@types/pg', '@types/node', 'reflect-metadata', 'rxjs'].map(
    (name) => `${name}@${of[name] ?? versionOf(name)}`,
  )
  const nest = ['common', 'core', 'testing', 'platform-express', 'platform-fastify'].map(
    (name) => `@nestjs/${name}@${of[name] ?? all}`,
  )
  const { directory: packages } = await installed(`nest-${version}${more.name}`, [...nest, ...own, ...more.packages])
  const copy = path.join(packages, 'node_modules/oncebox')
  await rm(copy, { recursive: true, force: true })
  for (const part of ['package.json', 'dist'])
    await cp(path.join(ROOT, part), path.join(copy, part), { recursive: true })

  // Outside of every node_modules, where Jest and Vitest look for no tests.
  const directory = await mkdtemp(path.join(tmpdir(), 'oncebox-nest-'))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  await symlink(path.join(packages, 'node_modules'), path.join(directory, 'node_modules'))
  await writeFile(path.join(directory, 'package.json'), JSON.stringify({ private: true, type: format }))
  // Those of `nest new`, and strict.
  const compilerOptions = {
    ...{ module: 'nodenext', moduleResolution: 'nodenext', target: 'ES2023', rootDir: 'src', outDir: 'dist' },
    ...{ esModuleInterop: true, isolatedModules: true, declaration: true, strict: true, skipLibCheck: true },
    ...{
      emitDecoratorMetadata: true,
      experimentalDecorators: true,
      types: more.name === '-jest' ? ['jest', 'node'] : ['node'],
    },
  }
  await writeFile(path.join(directory, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['src'] }))
  return directory
}

/** In CommonJS without the extensions, as the page says. */
async function put(directory: string, format: Format, sources: Record<string, string>): Promise<void> {
  await mkdir(path.join(directory, 'src'))
  for (const [name, text] of Object.entries(sources)) {
    const fitting = format === 'module' ? text : text.replaceAll(/(from '\.[^']*)\.js'/g, "$1'")
    await writeFile(path.join(directory, 'src', name), fitting)
  }
}

async function compile(directory: string): Promise<void> {
  const tsc = path.join(ROOT, 'node_modules/typescript/bin/tsc')
  const compiled = run(process.execPath, [tsc, '-p', directory, '--pretty', 'false'], {
    cwd: directory,
    timeout: TIMEOUT_MS,
  })
  const problems = await compiled.then(
    () => '',
    (error: { stdout: string; message: string }) => error.stdout || error.message,
  )
  expect(problems).toBe('')
}

interface Ended {
  readonly stdout: string
  readonly stderr: string
  readonly code: number | null
  readonly signal: string | null
}

async function node(directory: string, args: readonly string[], url: string): Promise<Ended> {
  const { VITEST: _, NODE_OPTIONS: __, ...inherited } = process.env
  const env = { ...inherited, NODE_ENV: 'test', NO_COLOR: '1', DATABASE_URL: url }
  return run(process.execPath, args, { cwd: directory, env, timeout: TIMEOUT_MS, maxBuffer: 16 << 20 }).then(
    (done) => ({ ...done, code: 0, signal: null }),
    (error: Ended) => error,
  )
}

async function withStock() {
  const database = await scratchDatabase('nest_project')
  await sql(database.url, 'create table stock (sku text primary key, pieces int not null)')
  await sql(database.url, `insert into stock values ('tea', 10)`)
  return database
}

async function piecesOf(url: string): Promise<unknown> {
  return (await sql(url, `select pieces from stock where sku = 'tea'`))[0]?.['pieces']
}

async function sql(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  return (await client.query<Record<string, unknown>>(text).finally(() => client.end())).rows
}
