/**
 * `oncebox init`: what it writes compiles and its test passes, it overwrites nothing, and run twice it changes nothing.
 *
 * `ONCEBOX_INIT_CLIENTS=all npx vitest run test/cli/init.test.ts` also runs the box that it writes for every client, with
 * `oncebox dev`; else that is done for pg in TypeScript alone, and for pg in JavaScript by new-user.test.ts.
 */
import { execFile } from 'node:child_process'
import { cp, mkdir, readdir, rm, symlink } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { MIKRO_ORM } from '../clients/mikro-orm.js'
import { installed } from '../support/installed.js'
import { openProject, ROOT, type Project } from './project.js'

const run = promisify(execFile)
const STRICT = {
  ...{ target: 'es2022', module: 'nodenext', moduleResolution: 'nodenext', strict: true, noEmit: true },
  ...{ exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, noPropertyAccessFromIndexSignature: true },
  ...{ noImplicitOverride: true, noUnusedLocals: true, noUnusedParameters: true, verbatimModuleSyntax: true },
  ...{ skipLibCheck: true, types: ['node'] },
}
const TESTED = ['@electric-sql/pglite', '@types/node', '@types/pg', 'typescript', 'undici-types']

/** What each client's project has: its dependencies, and what of this repository it takes. */
const CLIENTS: Readonly<Record<string, readonly string[]>> = {
  pg: ['pg'],
  postgres: ['postgres'],
  pglite: ['@electric-sql/pglite'],
  drizzle: ['drizzle-orm', 'pg'],
  kysely: ['kysely', 'pg'],
  knex: ['knex', 'pg'],
  typeorm: ['typeorm', 'pg'],
  prisma: ['@prisma/client', '@prisma/adapter-pg', 'pg'],
  'mikro-orm': ['@mikro-orm/postgresql', '@mikro-orm/core'],
  sequelize: ['sequelize', 'pg'],
}

/** It runs on MikroORM 7, which says that it needs a later Node.js than this repository's lowest, and is compiled with an earlier one. */
async function takeMikroOrm({ directory }: Project): Promise<void> {
  const modules = path.join(directory, 'node_modules/@mikro-orm')
  await rm(modules, { recursive: true })
  await symlink(path.join(await MIKRO_ORM(), 'node_modules/@mikro-orm'), modules)
}

async function projectOf(client: string): Promise<Project> {
  const dependencies = Object.fromEntries(['oncebox', ...CLIENTS[client]!].map((name) => [name, '*']))
  const devDependencies = Object.fromEntries([...TESTED, 'tsx'].map((name) => [name, '*']))
  const project = await openProject(
    {
      'package.json': JSON.stringify({ type: 'module', dependencies, devDependencies }, null, 4),
      'tsconfig.json': JSON.stringify({ compilerOptions: STRICT }),
      ...(client === 'prisma' && { 'prisma/schema.prisma': 'generator client {\n  output = "../generated"\n}' }),
    },
    { packages: [...new Set([...CLIENTS[client]!, ...TESTED])] },
  )
  if (client === 'prisma') await cp(path.join(ROOT, 'examples/prisma/client'), path.join(project.directory, 'generated'), { recursive: true }) // prettier-ignore
  await takeTsx(project)
  return project
}

async function takeTsx({ directory }: Project): Promise<void> {
  const { directory: modules } = await installed('tsx', ['tsx@4.23.15'])
  await symlink(path.join(modules, 'node_modules/tsx'), path.join(directory, 'node_modules/tsx'))
}

async function initialised(client: string): Promise<Project> {
  const project = await projectOf(client)
  const init = project.oncebox(['init', '--yes', '--no-install'])
  expect(await init.exited, init.stderr).toBe(0)
  return project
}

async function allFiles(project: Project): Promise<Record<string, string>> {
  const names = await readdir(project.directory, { recursive: true, withFileTypes: true })
  const files = names.filter((entry) => entry.isFile()).map((entry) => path.relative(project.directory, path.join(entry.parentPath, entry.name))) // prettier-ignore
  const own = files.filter((name) => !name.startsWith('node_modules'))
  return Object.fromEntries(await Promise.all(own.map(async (name) => [name, await project.read(name)] as const)))
}

test('what it writes for TypeScript has a test that passes, a box that runs, and is not written twice', async () => {
  await using project = await initialised('pg')
  const before = await allFiles(project)
  expect(Object.keys(before).sort()).toEqual(['.git/HEAD', 'inbox/box.ts', 'inbox/greet.test.ts', 'inbox/greet.ts', 'inbox/messages.ts', 'oncebox.config.ts', 'package.json', 'tsconfig.json']) // prettier-ignore
  const { scripts } = JSON.parse(before['package.json']!) as { scripts: Record<string, string> }
  expect(scripts).toMatchObject({ dev: 'oncebox dev', work: 'oncebox work', migrate: 'oncebox migrate up' })
  expect(before['package.json']).toContain('\n    "scripts"')

  const again = project.oncebox(['init', '--yes', '--no-install'])
  expect(await again.exited).toBe(0)
  expect(again.stderr).toContain('there is nothing to do')
  expect(await allFiles(project)).toEqual(before)

  const test = project.program(['npm', 'test'])
  expect(await test.exited, test.stdout + test.stderr).toBe(0)
  expect(test.stdout).toContain('a greeting that is asked for three times is sent once')
  const dev = project.oncebox(['dev'])
  await dev.saw(/handled {6}greeting\.asked/)
  expect(dev.stdout).toContain('Hello, Ada!')
  // Its event has no sink yet, and nothing is behind with it.
  const status = project.oncebox(['status', '--max-lag', '1ms', '--json'])
  expect(await status.exited, status.stdout + status.stderr).toBe(0)
  expect(status.stdout).toContain('greeting.sent')
  dev.kill('SIGINT')
  expect(await dev.exited).toBe(0)
})

test('what it writes compiles strictly, for every client', async () => {
  const projects = await Promise.all(Object.keys(CLIENTS).map(initialised))
  try {
    // One program of all of them, beside the packages of this repository: they are compiled once.
    await using all = await openProject({}, { packages: [] })
    const modules = path.join(all.directory, 'node_modules')
    await run('rm', ['-rf', modules])
    await mkdir(modules)
    for (const name of await readdir(path.join(ROOT, 'node_modules'))) {
      if (!name.startsWith('.')) await symlink(path.join(ROOT, 'node_modules', name), path.join(modules, name))
    }
    await symlink(ROOT, path.join(modules, 'oncebox'))
    await Promise.all(
      projects.map((project, at) =>
        cp(project.directory, path.join(all.directory, Object.keys(CLIENTS)[at]!), {
          recursive: true,
          filter: (file) => !file.includes('node_modules'),
        }),
      ),
    )
    await all.write({ 'tsconfig.json': JSON.stringify({ compilerOptions: { ...STRICT, noPropertyAccessFromIndexSignature: true }, exclude: ['*/generated'] }) }) // prettier-ignore
    const tsc = run(process.execPath, [path.join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', '.', '--pretty', 'false'], { cwd: all.directory }) // prettier-ignore
    const problems = await tsc.then(() => '', (error: { stdout: string }) => error.stdout) // prettier-ignore
    expect(problems).toBe('')
  } finally {
    for (const project of projects) await project[Symbol.asyncDispose]()
  }
})

test('in a CommonJS project of TypeScript, as npm init and tsc --init make one, it compiles, its test passes and its config is read', async () => {
  const dependencies = { oncebox: '*', pg: '*' }
  const devDependencies = Object.fromEntries([...TESTED, 'tsx'].map((name) => [name, '*']))
  await using project = await openProject(
    { 'package.json': JSON.stringify({ type: 'commonjs', dependencies, devDependencies }) },
    { packages: ['pg', ...TESTED] },
  )
  await takeTsx(project)
  const tsc = [process.execPath, path.join(ROOT, 'node_modules/typescript/bin/tsc')]
  expect(await project.program([...tsc, '--init']).exited).toBe(0)
  await project.write({ 'base.json': await project.read('tsconfig.json') })
  // Said by what it extends, and not by what is commented out.
  await project.write({
    'tsconfig.json': '{ "extends": "./base", // "verbatimModuleSyntax": false\n "include": ["**/*"] }',
  })
  const init = project.oncebox(['init', '--yes', '--no-install'])
  expect(await init.exited, init.stderr).toBe(0)
  expect(project.has('oncebox.config.mts')).toBe(true)
  const compiled = project.program([...tsc, '--noEmit', '--pretty', 'false'])
  expect(await compiled.exited, compiled.stdout).toBe(0)
  const test = project.program(['npm', 'test'])
  expect(await test.exited, test.stdout + test.stderr).toBe(0)
  expect(test.stdout).toContain('a greeting that is asked for three times is sent once')
  // Its config is read, and its box asks for the database.
  const work = project.oncebox(['work'], { DATABASE_URL: 'postgres://127.0.0.1:1/none' })
  expect(await work.exited, work.stderr).toBe(4)
  const again = project.oncebox(['init', '--yes', '--no-install'])
  expect(await again.exited).toBe(0)
  expect(again.stderr).toContain('there is nothing to do')
})

test('the box that it writes for MikroORM is one that MikroORM leaves alone', async () => {
  await using project = await initialised('mikro-orm')
  expect(await project.read('inbox/box.ts')).toContain(`schemaGenerator: { ignoreSchema: ['oncebox'] },`)
})

test.skipIf(process.env['ONCEBOX_INIT_CLIENTS'] !== 'all').each(Object.keys(CLIENTS))(
  'the box that it writes for %s handles its example',
  async (client) => {
    await using project = await initialised(client)
    if (client === 'mikro-orm') await takeMikroOrm(project)
    const dev = project.oncebox(['dev', '--once'])
    await dev.saw(client === 'pglite' ? 'ready;' : /handled {6}greeting\.asked/)
    if (client === 'pglite') {
      dev.stdin.write('m')
      await dev.saw(/handled {6}greeting\.asked/)
    }
    dev.kill('SIGINT')
    expect(await dev.exited).toBe(0)
  },
)

test('a file that is there is left as it is, a script that is taken gets another name, and --dry-run does nothing', async () => {
  const manifest = JSON.stringify({ type: 'module', dependencies: { pg: '*', oncebox: '*' }, scripts: { dev: 'vite' } })
  await using project = await openProject({ 'package.json': manifest, 'inbox/messages.js': '// mine', 'yarn.lock': '' })
  const before = await allFiles(project)
  const dry = project.oncebox(['init', '--dry-run'])
  expect(await dry.exited).toBe(0)
  expect(await allFiles(project)).toEqual(before)
  expect(dry.stderr).toContain('yarn add --dev @electric-sql/pglite')

  const piped = project.oncebox(['init'])
  expect(await piped.exited).toBe(2)
  expect(piped.stderr).toContain('--yes')
  expect(await allFiles(project)).toEqual(before)

  const init = project.oncebox(['init', '--yes', '--no-install'])
  expect(await init.exited).toBe(0)
  expect(init.stderr).toContain('inbox/messages.js is there already')
  expect(await project.read('inbox/messages.js')).toBe('// mine')
  expect(project.has('oncebox.config.js')).toBe(true)
  expect(JSON.parse(await project.read('package.json'))).toMatchObject({ scripts: { dev: 'vite', 'oncebox:dev': 'oncebox dev', work: 'oncebox work' } }) // prettier-ignore
})
