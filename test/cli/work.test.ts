/** `oncebox work` as a process: what it runs, how it stops, and what its exit codes say. */
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { scratchDatabase, type ScratchDatabase } from '../support/postgres.js'
import { waitUntil } from '../support/wait.js'
import { openProject, type Command, type Project } from './project.js'

/** Handlers that do what their message says, and write down what they finished. */
const CONFIG = `
import pg from 'pg'
import { createBox } from 'oncebox'
import { defineConfig } from 'oncebox/config'
import { fromPg } from 'oncebox/pg'

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL })
const handler = (consumer) => async ({ id, data }, { tx }) => {
  if (data.reject) void Promise.reject(new Error('nobody waits for postgres://app:s3cret@db/x'))
  if (data.fail) throw new Error('no luck with ' + id)
  if (data.ms) await tx.query('select pg_sleep($1)', [data.ms / 1000])
  await tx.query('insert into done values ($1, $2)', [consumer, id])
}
export default defineConfig({
  box() {
    const box = createBox({ db: fromPg(pool), schema: process.env.BOX })
    box.consumer('send-mail', { note: handler('send-mail') })
    box.consumer('billing', { note: handler('billing') })
    return box
  },
})
`

let database: ScratchDatabase
let pool: pg.Pool
let project: Project

beforeAll(async () => {
  database = await scratchDatabase('work')
  pool = new pg.Pool({ connectionString: database.url })
  await pool.query('create table done (consumer text, id text)')
  project = await openProject({ 'oncebox.config.mjs': CONFIG })
})
afterAll(async () => {
  await project[Symbol.asyncDispose]()
  await pool.end()
  await database.close()
})

async function work(schema: string, ...args: string[]): Promise<Command> {
  const command = project.oncebox(['work', ...args], { DATABASE_URL: database.url, BOX: schema })
  await command.saw('started')
  return command
}

/** A box on the same schema, from outside. */
async function boxIn(schema: string) {
  const box = createBox({ db: fromPg(pool), schema })
  box.consumer('send-mail', { note: () => undefined })
  box.consumer('billing', { note: () => undefined })
  await box.migrate()
  return box
}

const done = async (id: string): Promise<string[]> =>
  (await pool.query<{ consumer: string }>('select consumer from done where id = $1 order by 1', [id])).rows.map((row) => row.consumer) // prettier-ignore

test('it says what it runs, handles messages, and SIGTERM lets it finish what runs: exit code 0', async () => {
  const box = await boxIn('graceful')
  const command = await work('graceful')
  expect(command.stderr).toContain('runs consumer send-mail (note), 4 at a time\nruns consumer billing (note), 4 at a time\n') // prettier-ignore
  expect(command.stdout).toBe('')
  await box.receive({ id: 'slow', type: 'note', data: { ms: 1_500 } })
  const isRunning = `select from pg_stat_activity where query like 'select pg_sleep%' and state = 'active'`
  await waitUntil(async () => (await pool.query(isRunning)).rowCount === 2, { what: 'both handlers to run' })
  command.kill('SIGTERM')
  expect(await command.exited).toBe(0)
  expect(command.stderr).toContain('stopped\n')
  expect(await done('slow')).toEqual(['billing', 'send-mail'])
})

test('a second signal ends it at once, and the message is left for another process', async () => {
  const box = await boxIn('twice')
  const command = await work('twice')
  await box.receive({ id: 'stuck', type: 'note', data: { ms: 600_000 } })
  const isRunning = `select pid from pg_stat_activity where query like 'select pg_sleep%' and state = 'active'`
  await waitUntil(async () => (await pool.query(isRunning)).rowCount === 2, { what: 'both handlers to run' })
  command.kill('SIGINT')
  await command.saw('stopping')
  command.kill('SIGINT')
  expect(await command.exited).toBe(130)
  await pool.query(`select pg_terminate_backend(pid) from (${isRunning}) x`)
  expect(await done('stuck')).toEqual([])
  expect((await box.admin.status()).consumers['billing']).toMatchObject({ handled: 0, dead: 0 })
})

test('what runs for longer than the time to stop is aborted, and given back', async () => {
  const box = await boxIn('impatient')
  const command = await work('impatient', '--stop-timeout', '200ms')
  await box.receive({ id: 'long', type: 'note', data: { ms: 600_000 } })
  const isRunning = `select pid from pg_stat_activity where query like 'select pg_sleep%' and state = 'active'`
  await waitUntil(async () => (await pool.query(isRunning)).rowCount === 2, { what: 'both handlers to run' })
  command.kill('SIGTERM')
  expect(await command.exited).toBe(0)
  await pool.query(`select pg_terminate_backend(pid) from (${isRunning}) x`)
  expect((await box.admin.status()).consumers['billing']).toMatchObject({ handled: 0, dead: 0 })
})

test('a box that has nothing to run says so', async () => {
  await boxIn('idle')
  const box = `createBox({ db: fromPg(new pg.Pool({ connectionString: process.env.DATABASE_URL })), schema: 'idle' })`
  const imports = CONFIG.split('\n').filter((line) => line.startsWith('import '))
  await using bare = await openProject({
    'oncebox.config.mjs': [...imports, `export default { box: () => ${box} }`].join('\n'),
  })
  const command = bare.oncebox(['work'], { DATABASE_URL: database.url })
  await command.saw('started')
  expect(command.stderr).toContain('runs nothing: the box of the config has no consumer, source or sink')
  command.kill('SIGTERM')
  expect(await command.exited).toBe(0)
})

test('--consumers runs those alone, and the others keep their messages', async () => {
  const box = await boxIn('some')
  const command = await work('some', '--consumers', 'billing')
  expect(command.stderr).toContain('runs no consumer send-mail: what arrives is stored for it')
  await box.receive({ id: 'some', type: 'note', data: {} })
  await waitUntil(async () => (await done('some')).length === 1)
  command.kill('SIGTERM')
  expect(await command.exited).toBe(0)
  expect(await done('some')).toEqual(['billing'])
  expect((await box.admin.status()).consumers['send-mail']).toMatchObject({ pending: 1 })
})

test('a rejection that nobody handles stops it, tells where it came from, and the exit code is 1', async () => {
  const box = await boxIn('rejecting')
  const command = await work('rejecting', '--consumers', 'billing')
  await box.receive({ id: 'rejecting', type: 'note', data: { reject: true } })
  expect(await command.exited).toBe(1)
  expect(command.stderr).toMatch(
    /unhandled rejection at .*oncebox\.config\.mjs:9: nobody waits for postgres:\/\/app:\*\*\*@db\/x\n/,
  )
  expect(command.stderr).toContain('stopped\n')
})

test('an id of a message that fails is told without what a terminal would obey', async () => {
  const box = await boxIn('hostile')
  const command = await work('hostile', '--consumers', 'billing')
  await box.receive({ id: '\u001b]52;c;ZXZpbA==\u0007\u202e', type: 'note', data: { fail: true } })
  await command.saw('message failed')
  command.kill('SIGTERM')
  expect(await command.exited).toBe(0)
  expect(command.stderr).toContain('id \\x1b]52;c;ZXZpbA==\\x07\\u202e')
  for (const obeyed of ['\u001b', '\u0007', '\u202e']) expect(command.stderr).not.toContain(obeyed)
})

test('an old or missing schema is refused with the command to run', async () => {
  const command = project.oncebox(['work'], { DATABASE_URL: database.url, BOX: 'not_there' })
  expect(await command.exited).toBe(1)
  expect(command.stderr).toContain('SCHEMA_OUTDATED')
  expect(command.stderr).toContain('run: oncebox migrate up --schema not_there\n')
  const named = project.oncebox(['work', '--config', 'oncebox.config.mjs'], { DATABASE_URL: database.url, BOX: 'Two' })
  expect(await named.exited).toBe(1)
  expect(named.stderr).toContain(`run: oncebox migrate up --schema Two --config oncebox.config.mjs\n`)
})

test('where nothing says which database, that is what it says', async () => {
  // What a client takes for want of DATABASE_URL, where nobody listens.
  const text = CONFIG.replace('process.env.DATABASE_URL', `process.env.DATABASE_URL ?? 'postgres://127.0.0.1:1/x'`)
  await using unsaid = await openProject({ 'oncebox.config.mjs': text })
  const command = unsaid.oncebox(['work'])
  expect(await command.exited).toBe(4)
  expect(command.stderr).toMatch(/DATABASE_URL is not set.*oncebox dev/)
  const known = unsaid.oncebox(['work'], { DATABASE_URL: 'postgres://127.0.0.1:1/x' })
  expect(await known.exited).toBe(4)
  expect(known.stderr).not.toContain('is not set')
  // A box that connects while it is made.
  await unsaid.write({
    'oncebox.config.mjs': text.replace('box() {', `async box() {\n    await pool.query('select 1')`),
  })
  const early = unsaid.oncebox(['work'])
  expect(await early.exited).toBe(4)
  expect(early.stderr).toContain('DATABASE_URL is not set')
  const prune = unsaid.oncebox(['prune', '--yes'])
  expect(await prune.exited).toBe(4)
  expect(prune.stderr).toContain('DATABASE_URL is not set')
})

test('a consumer that there is not is refused, with what was meant', async () => {
  const env = { DATABASE_URL: database.url, BOX: 'graceful' }
  const command = project.oncebox(['work', '--consumers', 'billing,send-mial'], env)
  expect(await command.exited).toBe(2)
  expect(command.stderr).toContain('did you mean send-mail?')
})

test('a database that is not there is told without its password: exit code 4', async () => {
  const env = { DATABASE_URL: 'postgres://app:s3cret@127.0.0.1:1/none', BOX: 'graceful' }
  const command = project.oncebox(['work'], env)
  expect(await command.exited).toBe(4)
  expect(command.stdout + command.stderr).not.toContain('s3cret')
})

test('without a config it says how to get one', async () => {
  await using empty = await openProject({})
  const command = empty.oncebox(['work'])
  expect(await command.exited).toBe(2)
  expect(command.stderr).toContain('oncebox init')
})
