/**
 * A server that speaks German: nothing of oncebox goes by the words of the server.
 *
 * The locale is made by `localedef` of Debian's package `locales`, into a directory of its own; the translations come with Debian's
 * PostgreSQL, and npm's binaries have none.
 */
import { execFile } from 'node:child_process'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { inspect, promisify } from 'node:util'
import pg from 'pg'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { statement } from '../../tools/postgres/server.mjs'
import { findOrInstall } from '../../tools/services/packages.mjs'
import { cli } from '../cli/fixture.js'
import { startPostgres, type PostgresServer } from '../support/postgres.js'
import { waitUntil } from '../support/wait.js'
import { note, recorder } from './fixture.js'

const CANARY = 'canary-7f3a'
const LOCALES = '/usr/share/i18n/locales/de_DE'
/** The binaries of npm were asked for, which have no translations. */
const untranslated = process.env['ONCEBOX_TEST_POSTGRES']?.startsWith('embedded') ?? false

let directory: string
let server: PostgresServer
let pool: pg.Pool

beforeAll(async () => {
  if (untranslated) return
  directory = await mkdtemp(path.join(tmpdir(), 'oncebox-german-'))
  await findOrInstall({ package: 'locales', find: async () => (existsSync(LOCALES) ? LOCALES : undefined) })
  // It warns of what the C library lacks, and makes the locale.
  await promisify(execFile)('localedef', ['-i', 'de_DE', '-f', 'UTF-8', path.join(directory, 'de_DE.UTF-8')])
  await chmod(directory, 0o755)
  process.env['LOCPATH'] = directory
  server = await startPostgres({ synchronousCommit: 'off', settings: { lc_messages: 'de_DE.UTF-8' } })
  pool = new pg.Pool({ connectionString: server.url, max: 10 })
  pool.on('error', () => undefined)
})
afterAll(async () => {
  await pool?.end()
  await server?.stop()
  if (directory) await rm(directory, { recursive: true, force: true })
})

test.skipIf(untranslated)('messages are handled once, failures are judged, and no value is told', async () => {
  const spoken = await pool.query('select 1/0').catch(({ message }: Error) => message)
  expect(spoken, 'this needs the translations of Debian: apt-get install postgresql').toBe('Division durch Null')

  const log = recorder()
  const told: unknown[] = []
  const open = () => createBox({ db: fromPg(pool), logger: log, hooks: { error: (error) => void told.push(error), dead: (entry) => void told.push(entry) } }) // prettier-ignore
  await Promise.all([open().migrate(), open().migrate(), open().migrate()])
  await pool.query('create table done (id text primary key); create table numbers (n int)')
  const box = open()
  let cut = true
  box.consumer(
    'a',
    {
      async note({ id }, { tx }) {
        if (id === 'twice') await tx.query('insert into done values ($1), ($1)', [CANARY])
        if (id === 'number') await tx.query('insert into numbers values ($1)', [CANARY])
        if (id === 'swallowed') await tx.query('select 1/0').catch(() => undefined)
        if (id === 'commits') await tx.query('commit')
        if (id === 'cut' && cut) {
          cut = false
          await tx.query('select pg_terminate_backend(pg_backend_pid())')
        }
        await tx.query('insert into done values ($1)', [id])
      },
    },
    { retry: { attempts: 2, baseMs: 1, maxMs: 1 } },
  )
  await box.start()
  try {
    const ids = ['fine', 'twice', 'number', 'swallowed', 'commits', 'cut']
    await box.receive(ids.map((id) => note(id)))
    expect((await box.receive(note('fine'))).status).toMatch(/duplicate|stored/)
    await waitUntil(
      async () => {
        const { handled, dead } = (await box.admin.status()).consumers['a']!
        return handled + dead === ids.length
      },
      { what: 'all of them', timeoutMs: 60_000 },
    )
    const { rows } = await pool.query<{ id: string }>('select id from done order by id')
    expect(rows.map(({ id }) => id)).toEqual(['cut', 'fine'])
    const { entries } = await box.admin.messages({ state: 'dead' })
    const errors = Object.fromEntries(entries.map(({ message, error }) => [message.id, error?.code]))
    expect(errors).toEqual({
      twice: '23505',
      number: '22P02',
      swallowed: 'TRANSACTION_ABORTED',
      commits: 'HANDLER_COMMITTED',
    })
    expect(inspect([entries, told, log.lines], { depth: 20, showHidden: true })).not.toContain(CANARY)
    expect((await box.health()).ok).toBe(true)
  } finally {
    await box.stop()
  }
})

test.skipIf(untranslated)('the command line says why there is no connection', async () => {
  await statement(server.url, `create role app login password 'right'; create role out login`)
  const rules = ['host all app 127.0.0.1/32 scram-sha-256', 'hostssl all out 127.0.0.1/32 trust', 'host all postgres 127.0.0.1/32 trust'] // prettier-ignore
  await writeFile(path.join(server.dataDir, 'pg_hba.conf'), `${rules.join('\n')}\n`)
  await statement(server.url, 'select pg_reload_conf()')
  const said = async (user: string, database = 'postgres'): Promise<string> => {
    const env = { DATABASE_URL: `postgres://${user}@127.0.0.1:${server.port}/${database}` }
    const ran = await cli(['status'], { env })
    expect(ran.code).toBe(4)
    return ran.stderr
  }
  expect(await said('app:wrong')).toContain('wrong password')
  expect(await said('out')).toMatch(/does not let this user in[^]*sslmode=require/)
  expect(await said('postgres', 'nothing')).toContain('there is no such database')
})
