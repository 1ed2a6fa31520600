/** Which database, with which client, and why there is no connection. No password is ever printed. */
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { passwordFor } from '../../src/cli/connect/passfile.js'
import {
  freePort,
  scratchDatabase,
  type ScratchDatabase,
  startPostgres,
  type PostgresServer,
} from '../support/postgres.js'
import { statement } from '../../tools/postgres/server.mjs'
import { cli, ROOT, type Ran } from './fixture.js'

const SECRET = 'canary-p4ss:w@rd'

let database: ScratchDatabase
let directory: string
/** It wants passwords: those of the shared server do not. */
let strict: PostgresServer
beforeAll(async () => {
  database = await scratchDatabase('cli_connect')
  directory = await mkdtemp(path.join(tmpdir(), 'oncebox-cli-'))
  strict = await startPostgres({ synchronousCommit: 'off' })
  await statement(strict.url, `create role app login password '${SECRET}'`)
  await statement(strict.url, `grant create on database postgres to app`)
  await writeFile(
    path.join(strict.dataDir, 'pg_hba.conf'),
    'host all app 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n',
  )
  await statement(strict.url, 'select pg_reload_conf()')
  expect((await cli(['migrate', 'up'], { env: { DATABASE_URL: database.url } })).code).toBe(0)
  expect((await cli(['migrate', 'up'], { env: { DATABASE_URL: asApp(SECRET) } })).code).toBe(0)
})
afterAll(async () => {
  await strict.stop()
  await database.close()
  await rm(directory, { recursive: true, force: true })
})

const asApp = (password?: string): string =>
  `postgres://app${password === undefined ? '' : `:${encodeURIComponent(password)}`}@127.0.0.1:${strict.port}/postgres`

function expectNoSecret({ stdout, stderr }: Ran): void {
  for (const form of [SECRET, encodeURIComponent(SECRET), 'canary']) expect(stdout + stderr).not.toContain(form)
}

/** A directory whose node_modules has these clients. */
async function project(name: string, files: Record<string, string> = {}, ...clients: string[]): Promise<string> {
  const cwd = path.join(directory, name)
  await mkdir(path.join(cwd, 'node_modules'), { recursive: true })
  for (const client of clients)
    await symlink(path.join(ROOT, 'node_modules', client), path.join(cwd, 'node_modules', client))
  for (const [file, text] of Object.entries(files)) await writeFile(path.join(cwd, file), text)
  return cwd
}

describe('without a connection the exit code is 4, with the reason', () => {
  test.for<[what: string, url: () => string | Promise<string>, says: RegExp]>([
    [
      'nobody listens',
      async () => `postgres://app:${SECRET.replace(/[:@]/g, '.')}@127.0.0.1:${await freePort()}/x`,
      /nobody listens there \(ECONNREFUSED\)/,
    ],
    ['no such host', () => 'postgres://app:canary@no-such-host.invalid/x', /no host of this name|cannot be looked up/],
    ['wrong password', () => asApp('canary-wrong'), /wrong password/],
    ['no password', () => asApp(), /wrong password, or none/],
    ['no such database', () => asApp(SECRET).replace(/postgres$/, 'nothing'), /there is no such database/],
    ['no TLS', () => `${asApp(SECRET)}?sslmode=require`, /TLS/],
  ])('%s', async ([, url, says]) => {
    for (const client of ['pg', 'postgres']) {
      const cwd = await project(`refused-${client}`, {}, client).catch(() => path.join(directory, `refused-${client}`))
      const ran = await cli(['status'], { env: { DATABASE_URL: await url() }, cwd })
      expect(ran, client).toMatchObject({ code: 4, stdout: '' })
      expect(ran.stderr).toMatch(says)
      expect(ran.stderr).toMatch(/cannot connect to \S+:\d+, database \w+/)
      expectNoSecret(ran)
    }
  })

  test('a certificate that is not there is named', async () => {
    const DATABASE_URL = `${asApp(SECRET)}?sslmode=verify-full&sslrootcert=/nowhere/root.pem`
    const ran = await cli(['status'], { env: { DATABASE_URL } })
    expect(ran).toMatchObject({ code: 4, stderr: expect.stringContaining('/nowhere/root.pem cannot be read (ENOENT)') })
    expect(ran.stderr).not.toContain('socket')
    expectNoSecret(ran)
  })

  test('a server that does not answer is given up', async () => {
    const mute = createServer(() => undefined).listen(0, '127.0.0.1')
    await new Promise((resolve) => mute.once('listening', resolve))
    const { port } = mute.address() as AddressInfo
    const argv = ['status', '--url', `postgres://app@127.0.0.1:${port}/x`, '--connect-timeout', '300ms']
    expect(await cli(argv)).toMatchObject({ code: 4, stderr: expect.stringContaining('no answer in time') })
    mute.close()
  })
})

describe('a password', () => {
  test.for([
    `postgres://app:${SECRET}@localhost/x`,
    `postgres://app:canary@localhost/x`,
    `postgres://app@localhost/x?password=canary`,
    `app:canary@localhost`,
    'host=localhost password=canary',
    'postgres://app:12/canary@localhost/x',
    'postgres://app:12#canary@localhost/x',
    'postgres:/app:canary@localhost/x',
    'postgres:app:canary@localhost/x',
    'postgres://app@localhost/x?pass%77ord=canary',
    'postgres:///x?host=localhost&Password=canary',
  ])('in an argument is refused, in %s', async (url) => {
    const ran = await cli(['status', '--url', url])
    expect(ran).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(/PGPASSFILE[^]*--url-file -/) })
    expectNoSecret(ran)
  })

  test.for(
    [
      ['status', '--url-file'],
      ['status', '--config'],
      ['status', '--schema'],
      ['status', '--interval'],
      ['status', '--connect-timeout'],
      ['status', '--urll'],
      ['dead', 'ls', '--before'],
      ['dead', 'ls', '--limit'],
      ['completion'],
      ['dead'],
      ['status'],
      [],
    ].map((argv) => ({ argv, name: ['oncebox', ...argv].join(' ') })),
  )('is not printed where a URL was given to $name', async ({ argv }) => {
    const env = { DATABASE_URL: database.url }
    for (const url of [
      `postgres://app:${SECRET}@localhost/x`,
      'postgres://app:12/canary@localhost/x',
      'postgresql://app:with blanks and @ canary@localhost/x',
      'postgres:/app:canary@localhost/x',
      'app:canary@localhost',
      'postgres://app@localhost/x?pass%77ord=canary',
    ]) {
      const ran = await cli([...argv, url], { env, cwd: directory })
      expect(ran.code, url).toBeGreaterThan(0)
      expect(ran.stderr).toMatch(/^oncebox: /)
      expectNoSecret(ran)
    }
  })

  test.for([`--url postgres://app:canary@localhost/x`, `--url postgres://app:canary=2@localhost/x`, `--x:canary@h`])(
    'is not printed where an option and its URL are one word: %s',
    async (word) => {
      const ran = await cli(['status', word])
      expect(ran).toMatchObject({ code: 2, stderr: expect.stringContaining('has no option --') })
      expectNoSecret(ran)
    },
  )

  test.for([
    '//app:12/canary',
    '//app:12#canary',
    '//app:12?canary',
    '//app:12/34/canary',
    '/app:canary',
    'app:canary',
  ])('that a parser takes for something else is not printed: %s', async (login) => {
    const DATABASE_URL = `postgres:${login}@127.0.0.1:1/x`
    const ran = await cli(['status', '--connect-timeout', '300ms'], { env: { DATABASE_URL } })
    expect(ran).toMatchObject({ code: 4, stderr: expect.stringMatching(/DATABASE_URL[^]*%2F/) })
    expect(ran.stderr).not.toMatch(/app:|12|34/)
    expectNoSecret(ran)
  })

  test('is taken from the URL of a file, or of stdin', async () => {
    const file = path.join(directory, 'url')
    await writeFile(file, `${asApp(SECRET)}\n`, { mode: 0o600 })
    expect(await cli(['migrate', 'status', '--url-file', file])).toMatchObject({ code: 0 })
    expect(await cli(['migrate', 'status', '--url-file', '-'], { stdin: asApp(SECRET) })).toMatchObject({ code: 0 })
    const missing = await cli(['status', '--url-file', 'no-such-file'])
    expect(missing).toMatchObject({ code: 1, stderr: expect.stringContaining('ENOENT') })
  })

  test('is found in a file of passwords as libpq finds it, unless others may read the file', async () => {
    const file = path.join(directory, 'passfile')
    const lines = ['# host:port:database:user:password', 'other:5432:*:app:wrong', `127.0.0.1:*:postgres:app:a\\:b`]
    await writeFile(file, lines.join('\n'), { mode: 0o600 })
    const env = { PGPASSFILE: file }
    expect(await passwordFor('postgres://app@127.0.0.1:5433/postgres', env)).toBe('a:b')
    expect(await passwordFor('postgres://app@127.0.0.1:5433/else', env)).toBeUndefined()
    expect(await passwordFor(undefined, { ...env, PGHOST: '127.0.0.1', PGUSER: 'app', PGDATABASE: 'postgres' })).toBe(
      'a:b',
    )
    expect(await passwordFor('postgres://app:own@127.0.0.1/postgres', env)).toBeUndefined()
    const open = path.join(directory, 'open')
    await writeFile(open, lines.join('\n'), { mode: 0o644 })
    expect(await passwordFor('postgres://app@127.0.0.1/postgres', { PGPASSFILE: open })).toBeUndefined()
  })
})

describe('the database is that of', () => {
  const wrong = 'postgres://nobody@127.0.0.1:1/wrong'

  test('the argument, before the environment, before the config', async () => {
    const config = {
      'oncebox.config.mjs': `export default { box() {}, url: ${JSON.stringify(wrong)}, schema: 'of_config' }`,
    }
    const cwd = await project('order', config, 'pg')
    const byConfig = await cli(['status'], { cwd })
    expect(byConfig).toMatchObject({ code: 4, stderr: expect.stringContaining('(from the config)') })
    const byEnvironment = await cli(['status'], { cwd, env: { DATABASE_URL: database.url } })
    expect(byEnvironment).toMatchObject({ code: 1, stderr: expect.stringContaining('schema of_config does not exist') })
    const argv = ['status', '--url', database.url, '--schema', 'oncebox']
    expect(await cli(argv, { cwd, env: { DATABASE_URL: wrong } })).toMatchObject({ code: 0 })
  })

  test.for(['PGPASSWORD', 'PGPASSFILE'])('the config, where %s has the password alone', async (variable) => {
    const file = path.join(directory, 'password-alone')
    await writeFile(file, `*:*:*:app:${SECRET.replace(/[:\\]/g, '\\$&')}`, { mode: 0o600 })
    const value = variable === 'PGPASSWORD' ? SECRET : file
    const config = { 'oncebox.config.mjs': `export default { box() {}, url: ${JSON.stringify(asApp())} }` }
    // The clients read the environment of their process.
    vi.stubEnv(variable, value)
    onTestFinished(() => void vi.unstubAllEnvs())
    for (const client of ['pg', 'postgres']) {
      const cwd = await project(`alone-${variable}-${client}`, config, client)
      const ran = await cli(['migrate', 'status'], { cwd, env: { [variable]: value } })
      expect(ran, client).toMatchObject({ code: 0 })
    }
  })

  test('none, where PGSERVICE alone says which: no client reads it', async () => {
    const config = { 'oncebox.config.mjs': `export default { box() {}, url: ${JSON.stringify(database.url)} }` }
    const cwd = await project('service', config, 'pg')
    const refused = await cli(['status'], { cwd, env: { PGSERVICE: 'orders' } })
    expect(refused).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(/PGSERVICE[^]*DATABASE_URL/) })
    const env = { PGSERVICE: 'orders', DATABASE_URL: database.url }
    expect(await cli(['status'], { cwd, env })).toMatchObject({ code: 0 })
    expect(await cli(['status', '--url', database.url], { cwd, env: { PGSERVICE: 'orders' } })).toMatchObject({
      code: 0,
    })
  })

  test('the box of the config, where the config has no other', async () => {
    const text = `
      import pg from 'pg'
      import { createBox } from ${JSON.stringify(path.join(ROOT, 'dist/index.js'))}
      import { fromPg } from ${JSON.stringify(path.join(ROOT, 'dist/postgres/drivers/pg.js'))}
      export default { box: () => createBox({ db: fromPg(new pg.Pool({ connectionString: ${JSON.stringify(database.url)}, allowExitOnIdle: true })) }) }`
    const cwd = await project('box', { 'own.config.mjs': text }, 'pg')
    expect(await cli(['status', '--config', 'own.config.mjs', '--json'], { cwd })).toMatchObject({
      code: 0,
      stderr: '',
    })
    const other = await cli(['status', '--config', 'own.config.mjs', '--schema', 'other'], { cwd })
    expect(other).toMatchObject({ code: 1, stderr: expect.stringContaining('has schema oncebox') })
  })

  test('a config file that is not there is said to be missing', async () => {
    const ran = await cli(['status', '--config', 'nowhere.mjs'], { cwd: directory })
    expect(ran).toMatchObject({ code: 2, stderr: expect.stringContaining('nowhere.mjs') })
  })
})

test('postgres is used where pg is not installed, for reading and changing', async () => {
  const cwd = await project('only-postgres', {}, 'postgres')
  const { openClient } = await import('../../src/cli/connect/client.js')
  const client = await openClient({ cwd, url: database.url, env: {}, connectTimeoutMs: 10_000, beside: false })
  expect(client.name).toBe('postgres')
  expect(await client.driver.query('select 1::text one', [])).toEqual([{ one: '1' }])
  await client.close()
})

test('where there is no client, the command says what to install', async () => {
  const cwd = await project('no-client')
  const { openClient } = await import('../../src/cli/connect/client.js')
  const opened = openClient({ cwd, url: database.url, env: {}, connectTimeoutMs: 10_000, beside: false })
  await expect(opened).rejects.toMatchObject({ code: 1, advice: expect.stringContaining('npm install pg') })
})
