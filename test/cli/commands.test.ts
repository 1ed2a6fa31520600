/** Every command over a real database: what it prints in a pipe, as JSON, and how it ends. */
import { execFileSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { createBox, defineMessages } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { FAMILIES } from '../../src/admin/doctor/index.js'
import { parse } from '../../src/cli/parse.js'
import { COMMANDS } from '../../src/cli/registry.js'
import { tableLines } from '../../src/cli/output/table.js'
import { fixOf, REMEDIES } from '../../src/cli/shared/remedies.js'
import { type ScratchDatabase, scratchDatabase } from '../support/postgres.js'
import { waitUntil } from '../support/wait.js'
import { CANARY, cli, seed, type CliOptions, type Ran } from './fixture.js'
import { problems } from './schema.js'

let database: ScratchDatabase
let pool: pg.Pool
beforeAll(async () => {
  database = await scratchDatabase('cli')
  pool = new pg.Pool({ connectionString: database.url, max: 4 })
  await seed(database.url, 'oncebox')
})
afterAll(async () => {
  await pool.end()
  await database.close()
})

/** Commands whose JSON was held against their shape. */
const checked = new Set<string>()

const oncebox = (argv: readonly string[], options: CliOptions = {}): Promise<Ran> =>
  cli(argv, { ...options, env: { DATABASE_URL: database.url, ...options.env } })

/** With `--json`: each line has the declared shape, and no other. */
async function asJson(argv: readonly string[], options: CliOptions = {}): Promise<Ran> {
  const ran = await oncebox([...argv, '--json'], options)
  const name = [argv.slice(0, 2).join(' '), argv[0]!].find((words) => words in COMMANDS)!
  const { output } = await COMMANDS[name]!()
  expect(ran.documents.length, ran.stderr).toBeGreaterThan(0)
  expect(ran.documents.flatMap((document) => problems(document, output!))).toEqual([])
  checked.add(name)
  return ran
}

const visible = (text: string): string => text.replaceAll('\u001b', 'ESC')

/** The lines of a table, without its head. */
const rows = ({ stdout }: Ran): string[] => stdout.split('\n').slice(1).filter(Boolean)

describe('lists', () => {
  test('messages ls has one line for each message and consumer, and takes criteria', async () => {
    const all = await oncebox(['messages', 'ls'])
    expect(all.code).toBe(0)
    expect(rows(all)).toHaveLength(12)
    const ofState = await oncebox(['messages', 'ls', '--state', 'handled', '--consumer', 'pay'])
    expect(rows(ofState)).toHaveLength(3)
    expect(rows(await oncebox(['messages', 'ls', 'ok-1', 'bad-2']))).toHaveLength(2)
    expect(rows(await oncebox(['messages', 'ls', '--type', 'ok', '--type', 'call']))).toHaveLength(7)
    expect(rows(await oncebox(['messages', 'ls', '--error', 'no luck with bad']))).toHaveLength(5)
    expect(rows(await oncebox(['messages', 'ls', '--before', '1d']))).toHaveLength(0)
    expect(rows(await oncebox(['messages', 'ls', '--after', '1d', '--data', `{"secret":"${CANARY}"}`]))).toHaveLength(
      10,
    )
  })

  test('a list is as long as was asked for, and goes on where it ended', async () => {
    const first = await asJson(['messages', 'ls', '--limit', '5'])
    expect(first.documents).toHaveLength(5)
    const [, cursor] = /--cursor (\S+)/.exec(first.stderr)!
    const rest = await asJson(['messages', 'ls', '--cursor', cursor!])
    expect(rest.documents).toHaveLength(7)
    expect(rest.stderr).toBe('')
  })

  test('dead, quarantine, outbox, consumer, sink and audit have lists, as tables and as JSON', async () => {
    for (const [argv, count, column] of [
      [['dead', 'ls'], 5, 'no luck with bad'],
      [['dead', 'ls', '--consumer', 'nobody'], 0, ''],
      [['quarantine', 'ls'], 3, 'no-id'],
      [['quarantine', 'ls', '--why', 'effect-unknown'], 1, 'effect-unknown'],
      [['outbox', 'ls', '--state', 'dead'], 2, 'refuses'],
      [['consumer', 'ls'], 1, 'pay'],
      [['sink', 'ls'], 1, 'events'],
    ] as const) {
      const table = await oncebox(argv)
      expect(table.code).toBe(0)
      expect(rows(table), argv.join(' ')).toHaveLength(count)
      expect(table.stdout).toContain(column)
      if (count > 0) expect((await asJson(argv)).documents).toHaveLength(count)
    }
    expect((await oncebox(['dead', 'ls', '--consumer', 'nobody'])).stderr).toBe('no dead messages\n')
  })

  test('messages show tells everything but data and headers, which it tells when it is asked to', async () => {
    const shown = await oncebox(['messages', 'show', 'bad-1'])
    expect(shown.code).toBe(0)
    expect(shown.stdout).toMatch(/state +dead/)
    expect(shown.stdout).toMatch(/attempt 1 .*Error: no luck with bad/)
    expect(shown.stdout).not.toMatch(/ at .*fixture/)
    expect((await oncebox(['messages', 'show', 'bad-1', '--stack'])).stdout).toMatch(/ at .*fixture/)
    expect((await oncebox(['messages', 'show', 'bad-1', '--data'])).stdout).toContain(`"secret": "${CANARY}"`)
    const [document] = (await asJson(['messages', 'show', 'bad-1', '--data'])).documents
    expect(document).toMatchObject({ data: { secret: CANARY }, headers: { token: CANARY }, state: 'dead' })
    expect((await asJson(['messages', 'show', 'ok-1', '--data'])).documents[0]).toMatchObject({
      result: { paid: true },
    })
    const none = await oncebox(['messages', 'show', 'nothing'])
    expect(none).toMatchObject({ code: 1, stdout: '' })
  })

  test('quarantine ls shows all of what has no id by which it could be shown, when it is asked to', async () => {
    const argv = ['quarantine', 'ls', '--why', 'no-id', '--whole']
    const { documents } = await asJson(argv)
    const found = { reason: 'no-id', headers: { token: CANARY }, detail: 'id is missing' }
    expect(documents).toMatchObject([2, 1].map((n) => ({ ...found, data: { n } })))
    const { stdout } = await oncebox(argv)
    expect(stdout).toMatch(/detail +id is missing/)
    expect(stdout).toContain('"n": 2')
  })

  test('nothing prints a payload that was not asked for', async () => {
    for (const argv of [
      ['messages', 'ls'],
      ['messages', 'show', 'bad-1'],
      ['dead', 'ls'],
      ['quarantine', 'ls'],
      ['outbox', 'ls'],
    ]) {
      for (const mode of [[], ['--json']]) {
        const { stdout, stderr } = await oncebox([...argv, ...mode])
        expect(stdout + stderr).not.toContain(CANARY)
        expect(stdout).not.toBe('')
      }
    }
  })
})

test('what a schema says of a message, and may quote, is shown with --data alone', async () => {
  const box = createBox({
    ...{ db: fromPg(pool), schema: 'detail', logger: { debug() {}, info() {}, warn() {}, error() {} } },
    messages: defineMessages({ paid: { '~standard': { version: 1, vendor: 'test', validate: refuse } } }),
  })
  box.consumer('pay', { paid: () => undefined })
  await box.migrate()
  await box.receive({ id: 'refused', type: 'paid', data: { card: CANARY } } as never)
  for (const argv of [
    ['messages', 'ls'],
    ['quarantine', 'ls'],
    ['messages', 'show', 'refused'],
  ]) {
    // prettier-ignore
    for (const ran of [await oncebox([...argv, '--schema', 'detail']), await asJson([...argv, '--schema', 'detail'])]) {
      expect(ran.stdout).toContain('invalid')
      expect(ran.stdout + ran.stderr).not.toContain(CANARY)
    }
  }
  const show = ['messages', 'show', 'refused', '--schema', 'detail']
  expect((await oncebox(show)).stdout).toMatch(/^detail +shown with --data$/m)
  expect((await oncebox([...show, '--data'])).stdout).toMatch(new RegExp(`^detail .*received ${CANARY}`, 'm'))
  expect((await asJson([...show, '--data'])).documents).toMatchObject([{ detail: expect.stringContaining(CANARY) }])
})

const refuse = (value: unknown) => ({ issues: [{ message: `received ${(value as { card: string }).card}` }] })

describe('status', () => {
  test('counts by consumer and type, and tells unhealthy lag by its exit code', async () => {
    const table = await oncebox(['status'])
    expect(table.code).toBe(0)
    expect(table.stdout).toMatch(/CONSUMER +PENDING +PROCESSING +HANDLED +DEAD/)
    expect(table.stdout).toMatch(/pay +1 +0 +3 +5 +1/)
    expect(table.stdout).toMatch(/sent +0 +\d +2/)
    const { documents } = await asJson(['status'])
    expect(documents[0]).toMatchObject({ consumers: { pay: { pending: 1, dead: 5 } }, outbox: { sent: { dead: 2 } } })
    await waitUntil(async () => ((await asJson(['status'])).documents[0]!['maxLagMs'] as number) > 5)
    expect((await oncebox(['status', '--max-lag', '5ms'])).code).toBe(3)
    expect((await oncebox(['status', '--max-lag', '1d'])).code).toBe(0)
  })

  test('a box of the config that is none is told with its file', async () => {
    const directory = await mkdtemp(path.join(tmpdir(), 'oncebox-no-box-'))
    const file = path.join(directory, 'oncebox.config.mjs')
    await writeFile(file, 'export default { box() {} }\n')
    const { code, stderr } = await cli(['status'], { cwd: directory })
    await rm(directory, { recursive: true })
    expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining(`${file}: the function box`) })
  })

  test('with --watch it goes on, line by line in a pipe, drawn again on a terminal', async () => {
    const piped = await asJson(['status', '--watch', '--times', '3', '--interval', '1ms'])
    expect(piped.documents).toHaveLength(3)
    const drawn = await oncebox(['status', '--watch', '--times', '2', '--interval', '1ms'], { columns: 90 })
    expect(drawn.code).toBe(0)
    expect(drawn.stdout).toContain('▁')
    // Back from the other screen, with a cursor, and a table that stays.
    expect(visible(drawn.stdout)).toMatch(/ESC\[\?25hESC\[\?1049l[^]*pay/)
  })
})

test('status --watch gives the terminal back also where it ends before the database has answered', async () => {
  const client = await pool.connect()
  onTestFinished(() => client.release())
  const stop = new AbortController()
  let written = ''
  const onOutput = (text: string): void => void (written += text)
  const argv = ['status', '--watch', '--interval', '10ms']
  const watching = cli(argv, { env: { DATABASE_URL: database.url }, columns: 100, signal: stop.signal, onOutput })
  await waitUntil(() => written.includes('pay'), { what: 'the first page' })
  await client.query('begin; lock table oncebox.work, oncebox.message in access exclusive mode')
  await waitUntil(
    async () =>
      (
        await client.query(
          `select from pg_stat_activity where wait_event_type = 'Lock' and application_name = 'oncebox'`,
        )
      ).rowCount! > 0,
    { what: 'the look that waits' },
  )
  stop.abort()
  const { code, stdout } = await watching
  await client.query('rollback')
  expect(code).toBe(130)
  expect(stdout.endsWith('\x1b[?25h\x1b[?1049l')).toBe(true)
  expect(stdout.split('\x1b[?1049l')).toHaveLength(2)
})

test('a table whose cells fit the terminal does, with titles that are cut', () => {
  const columns = [{ title: 'CONSUMER', least: 8 }, ...['QUARANTINED', 'DISCARDED'].map((title) => ({ title }))]
  const lines = tableLines(columns, [['billing', '12', '1 000 000']], { colour: false, width: 28 })
  expect(lines).toEqual(['CONSUMER  QUARAN…  DISCARDED', 'billing   12       1 000 000'])
})

test('a table may have more rows than a call has arguments', () => {
  const rows = Array.from({ length: 200_000 }, (_, n) => [String(n)])
  const lines = tableLines([{ title: 'N', right: true }], rows, { colour: false, width: undefined })
  expect(lines).toHaveLength(200_001)
  expect(lines[0]).toBe('     N')
})

test('doctor says what is wrong, and ends with 3 if it is serious', async () => {
  const table = await oncebox(['doctor'])
  const { documents, code } = await asJson(['doctor'])
  const serious = documents.some(({ severity }) => severity === 'serious')
  expect([table.code, code]).toEqual(serious ? [3, 3] : [0, 0])
  for (const { code: finding } of documents) expect(table.stdout).toContain(finding)
})

test('doctor gives the fix as commands of the same database, and every one of them is taken as it is printed', async () => {
  const { documents } = await asJson(['doctor', '--schema', 'oncebox'])
  const fix = documents.find(({ code }) => code === 'dead-letters')!['fix'] as string
  expect(fix).toContain('oncebox dead retry --consumer pay --schema oncebox')
  expect((await oncebox(['doctor'])).stdout).toContain(' oncebox dead retry --consumer pay\n')
  expect(documents.every((one) => !(one['fix'] as string).includes('box.admin'))).toBe(true)

  const codes = FAMILIES.flatMap(({ checks }) => checks.map(({ code }) => code))
  const given = { config: 'a b.ts', schema: "it's", url: 'postgres://app@host/x' }
  for (const code of Object.keys(REMEDIES)) {
    expect(codes).toContain(code)
    for (const state of ['dead', 'quarantined']) {
      const producers = '["shop","two words"]'
      const figures = { consumer: 'two words', sink: 'events', reason: 'invalid', source: 'webhook', producers, state }
      const found = {
        code,
        severity: 'note',
        what: '',
        why: '',
        figures,
        fix: 'migrationSql( grant "a" to "b";',
      } as const
      for (const line of fixOf(found, given).split('\n')) {
        const shell = execFileSync('sh', ['-c', `set -- ${line.replace(/<\w+>/g, 'x')}\nprintf '%s\\0' "$@"`], { encoding: 'utf8' }) // prettier-ignore
        const [program, ...words] = shell.split('\0').slice(0, -1)
        expect(program).toBe('oncebox')
        const name = [words.slice(0, 2).join(' '), words[0]!].find((one) => one in COMMANDS)!
        const { options } = parse(await COMMANDS[name]!(), words.slice(name.split(' ').length))
        expect(options).toMatchObject({ config: 'a b.ts', ...(name !== 'work' && { schema: "it's" }) })
      }
    }
  }
})

test('a name that cannot be copied from a terminal leaves the doctor its own words', () => {
  const found = {
    code: 'consumer-paused',
    severity: 'warning',
    what: '',
    why: '',
    fix: 'await box.admin.resume(…)',
  } as const
  expect(fixOf({ ...found, figures: { consumer: 'a\u001b[31m' } }, {})).toBe(found.fix)
  expect(fixOf({ ...found, figures: { consumer: '--yes' } }, {})).toBe(found.fix)
  expect(fixOf({ ...found, code: 'quarantine-full', figures: { producers: '["shop",""]' } }, {})).toBe(found.fix)
})

describe('migrate', () => {
  test('up says what it did, and does nothing twice; status tells what there is', async () => {
    const made = ['--schema', 'made']
    expect((await asJson(['migrate', 'status', ...made])).documents[0]).toMatchObject({ state: 'missing', version: 0 })
    expect((await oncebox(['migrate', 'status', ...made])).code).toBe(3)
    expect((await asJson(['migrate', 'up', ...made])).documents[0]).toMatchObject({ from: 0 })
    expect((await oncebox(['migrate', 'up', ...made])).stdout).toMatch(/^schema made is at version \d+ already\n$/)
    expect(await oncebox(['migrate', 'status', ...made])).toMatchObject({ code: 0, stderr: '' })
    await pool.query('update made.schema_version set version = 3')
    expect((await oncebox(['migrate', 'status', ...made])).stdout).toContain('behind')
    expect(await oncebox(['status', ...made])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('oncebox migrate up'),
    })
    await pool.query('update made.schema_version set version = 900, compatible_from = 900')
    expect((await oncebox(['migrate', 'status', ...made])).stdout).toContain('newer')
    expect(await oncebox(['status', ...made])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('SCHEMA_NEWER'),
    })
    expect(await oncebox(['status', '--schema', 'none'])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/does not exist[^]*run: oncebox migrate up/),
    })
  })

  test('where the schema is not up to date, the command that mends it names the same database', async () => {
    const argv = ['--url', database.url, '--schema', 'not there']
    const mend = `run: oncebox migrate up --url ${database.url} --schema 'not there'\n`
    for (const words of [['status'], ['migrate', 'status']]) {
      const { stderr } = await cli([...words, ...argv])
      expect(stderr, words.join(' ')).toContain(mend)
    }
    expect((await oncebox(['status', '--schema', 'none'])).stderr).toContain('run: oncebox migrate up --schema none\n')
  })

  test('sql makes the same schema as up does', async () => {
    await oncebox(['migrate', 'up', '--schema', 'by_program'])
    const { stdout, code } = await cli(['migrate', 'sql', '--schema', 'by_hand'])
    expect(code).toBe(0)
    await pool.query(stdout)
    expect(await catalogOf('by_hand')).toEqual(await catalogOf('by_program'))
    expect((await catalogOf('by_hand')).length).toBeGreaterThan(150)
    expect((await oncebox(['migrate', 'status', '--schema', 'by_hand'])).code).toBe(0)
  })

  test('sql --roles prints each role with its grants', async () => {
    const { stdout } = await cli(['migrate', 'sql', '--roles', '--schema', 'billing'])
    for (const role of ['owner', 'producer', 'worker', 'janitor', 'viewer']) expect(stdout).toContain(`billing_${role}`)
    expect(stdout).toMatch(/grant .* to "billing_worker";/)
  })
})

describe('bulk verbs', () => {
  test('count, and change nothing, with --dry-run; want a yes where nobody can be asked', async () => {
    const dry = await asJson(['dead', 'retry', '--consumer', 'pay', '--dry-run'])
    expect(dry.documents).toEqual([{ count: 5, dryRun: true, interrupted: false }])
    const refused = await oncebox(['dead', 'retry', '--consumer', 'pay'])
    expect(refused).toMatchObject({ code: 2, stdout: '' })
    expect(refused.stderr).toMatch(/^5 dead messages to retry\n[^]*--yes/)
    expect(rows(await oncebox(['dead', 'ls']))).toHaveLength(5)
  })

  test('ask on a terminal, and take only a yes for a yes; never in CI', async () => {
    const no = await oncebox(['dead', 'retry', 'bad-1'], { columns: 80, stdin: 'n\n' })
    expect(no).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/retry 1 dead message\? \[y\/N\] [^]*nothing was changed/),
    })
    const inCi = await oncebox(['dead', 'retry', 'bad-1'], { columns: 80, stdin: 'y\n', env: { CI: 'true' } })
    expect(inCi).toMatchObject({ code: 2, stderr: expect.stringContaining('--yes') })
    const yes = await oncebox(['dead', 'retry', 'bad-1', '--reason', 'why not', '--by', 'alice'], {
      columns: 80,
      stdin: 'y\n',
    })
    expect(yes).toMatchObject({ code: 0, stdout: '1 dead message retried\n' })
    const [record] = (await asJson(['audit', 'ls', '--limit', '1'])).documents
    expect(record).toMatchObject({ action: 'retry', by: 'alice', detail: { count: 1, reason: 'why not' } })
    const table = await oncebox(['audit', 'ls'])
    expect(table.stdout).toMatch(/retry +alice +\S+ +1 +why not/)
  })

  test('take the end of stdin, as Ctrl-D makes it, for a no', async () => {
    const ended = await oncebox(['dead', 'retry', '--all'], { columns: 80, stdin: '' })
    expect(ended).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('nothing was changed') })
  })

  test('want to know which, and why', async () => {
    expect(await oncebox(['dead', 'retry', '--yes'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--all'),
    })
    expect((await oncebox(['dead', 'retry', 'bad-2', '--all', '--yes'])).code).toBe(2)
    expect(await oncebox(['dead', 'discard', 'bad-2', '--yes'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--reason'),
    })
  })

  test('take no empty text for a criterion or an id: that is a variable of the shell that is not set', async () => {
    const discard = ['dead', 'discard', '--reason', 'cleanup', '--dry-run']
    for (const name of ['--error', '--key', '--type', '--source', '--consumer']) {
      expect(await oncebox([...discard, name, '']), name).toMatchObject({
        ...{ code: 2, stdout: '', stderr: expect.stringContaining(`${name} is empty`) },
      })
    }
    for (const argv of [
      [...discard, ''],
      ['messages', 'show', ''],
      ['dead', 'ls', '--error='],
      ['consumer', 'rm', ''],
    ]) {
      expect(await oncebox(argv)).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('is empty') })
    }
  })

  test('say who did it where nobody does: the user and the host', async () => {
    const ran = await asJson(['dead', 'discard', 'bad-2', '--reason', 'a test', '--yes'])
    expect(ran.documents).toEqual([{ count: 1, dryRun: false, interrupted: false }])
    const [record] = (await asJson(['audit', 'ls', '--limit', '1'])).documents
    expect(record).toMatchObject({
      action: 'discard',
      by: expect.stringMatching(/^.+@.+$/),
      detail: { reason: 'a test' },
    })
  })

  test('tell every tenth in a pipe, and draw a bar on a terminal', async () => {
    const piped = await oncebox(['dead', 'retry', 'bad-3', 'bad-4', '--rps', '10', '--yes'])
    expect(piped.stderr).toMatch(/^retry 50 % {2}1 of 2, .*\/s.* left\nretry 100 % {2}2 of 2, .*\/s$/m)
    expect(piped.stderr).not.toContain('\r')
    const drawn = await oncebox(['dead', 'retry', '--all', '--yes'], { columns: 80 })
    expect(visible(drawn.stderr)).toMatch(/\rESC\[2Kretry \[#+\] 100 % {2}1 of 1, .*\rESC\[2K/)
    expect(drawn.stdout).toBe('1 dead message retried\n')
  })

  test('replay what was handled, and only that', async () => {
    const ran = await asJson(['messages', 'replay', 'ok-1', 'bad-1', '--consumer', 'pay', '--reason', 'again', '--yes'])
    expect(ran.documents).toEqual([{ count: 1, dryRun: false, interrupted: false }])
    expect((await asJson(['messages', 'ls', 'ok-1', '--consumer', 'pay'])).documents).toMatchObject([
      { state: 'pending' },
    ])
    expect((await oncebox(['messages', 'replay', '--yes'])).stderr).toContain('which handled messages?')
  })

  test('release and discard what is in quarantine, and what is to be published', async () => {
    expect(await oncebox(['quarantine', 'release', '--why', 'no-id', '--yes'])).toMatchObject({
      code: 0,
      stdout: '0 quarantined messages released\n',
      stderr: expect.stringContaining('2 stayed as they are'),
    })
    const discarded = await asJson(['quarantine', 'discard', '--why', 'no-id', '--reason', 'no use', '--yes'])
    expect(discarded.documents).toEqual([{ count: 2, dryRun: false, interrupted: false }])
    await asJson(['quarantine', 'release', '--why', 'invalid', '--dry-run'])
    const again = await asJson(['outbox', 'retry', '--sink', 'events', '--yes', '--limit', '1'])
    expect(again.documents).toEqual([{ count: 1, dryRun: false, interrupted: false }])
    const given = await asJson(['outbox', 'discard', '--all', '--reason', 'nobody reads it', '--yes'])
    expect(given.documents).toEqual([{ count: 1, dryRun: false, interrupted: false }])
  })
})

describe('the rest', () => {
  test('pauses and resumes a consumer, with who and why', async () => {
    const paused = await asJson(['consumer', 'pause', 'pay', '--yes', '--reason', 'provider down', '--by', 'bob'])
    expect(paused.documents).toEqual([{ consumer: 'pay', paused: true }])
    expect((await oncebox(['consumer', 'ls'])).stdout).toMatch(/pay .*paused/)
    expect((await oncebox(['status'])).stdout).toMatch(/pay .*paused/)
    await asJson(['consumer', 'resume', 'pay'])
    expect((await oncebox(['consumer', 'ls'])).stdout).not.toContain('paused')
    const unknown = await oncebox(['consumer', 'pause', 'pya'])
    expect(unknown).toMatchObject({ code: 1, stderr: expect.stringContaining('CONSUMER_UNKNOWN') })
  })

  test('answers for an effect', async () => {
    const at = ['effects', 'answer', 'charge', '--consumer', 'pay', '--id', 'call-1']
    expect((await oncebox(at)).code).toBe(2)
    expect((await oncebox([...at, '--happened', '--did-not-happen'])).code).toBe(2)
    expect((await oncebox([...at, '--happened', '--result', '{no'])).code).toBe(2)
    const answered = await asJson([...at, '--happened', '--result', '{"charge":"ch_1"}'])
    expect(answered.documents).toEqual([{ consumer: 'pay', id: 'call-1', effect: 'charge', happened: true }])
    expect(await oncebox([...at, '--happened'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('NOT_FOUND'),
    })
  })

  test('removes a sink and a consumer that nobody has, and says what goes with them', async () => {
    expect(await oncebox(['sink', 'rm', 'events'])).toMatchObject({ code: 2, stderr: expect.stringContaining('--yes') })
    await pool.query(`update oncebox.sink_declaration set seen_at = now() - interval '1 day'`)
    const sink = await asJson(['sink', 'rm', 'events', '--yes', '--reason', 'moved'])
    expect(sink.documents).toEqual([{ sink: 'events', removed: expect.any(Number) }])
    const full = await oncebox(['consumer', 'rm', 'pay', '--yes'])
    expect(full).toMatchObject({ code: 1, stderr: expect.stringContaining('CONSUMER_HAS_MESSAGES') })
    expect(full.stderr).toMatch(/messages not handled, \d+ messages handled/)
    const removed = await asJson(['consumer', 'rm', 'pay', '--discard', '--forget', '--yes', '--reason', 'gone'])
    expect(removed.documents).toEqual([{ consumer: 'pay', removed: expect.any(Number) }])
    expect((await oncebox(['consumer', 'ls'])).stderr).toContain('no consumer')
  })

  test('prunes when it is told to', async () => {
    expect((await oncebox(['prune'])).code).toBe(2)
    expect((await asJson(['prune', '--yes', '--reason', 'full disk'])).documents).toEqual([
      { count: expect.any(Number), interrupted: false, held: [] },
    ])
  })

  test('prune says of which consumer something is left, because somebody holds its watermark', async () => {
    await seed(database.url, 'watched')
    const client = await pool.connect()
    onTestFinished(() => client.release())
    await pool.query(`update watched.message set received_at = received_at - interval '1 year'`)
    await pool.query(`update watched.handled set at = at - interval '1 year'`)
    await client.query('begin')
    await client.query(`select 1 from watched.forgotten where consumer = 'pay' for share`)
    const argv = ['prune', '--yes', '--schema', 'watched']
    const { code, stdout, stderr } = await oncebox(argv)
    await client.query('rollback')
    expect({ code, stdout }).toEqual({ code: 0, stdout: '0 messages deleted\n' })
    expect(stderr).toContain('something is left of consumer pay')
    expect(await oncebox(argv)).toMatchObject({ stdout: '3 messages deleted\n', stderr: '' })
  })

  test('every command with --json had its output held against its shape', async () => {
    const wanted = await Promise.all(
      Object.entries(COMMANDS).map(async ([name, load]) => ((await load()).output ? [name] : [])),
    )
    // What other parts add is tested with them.
    const ours = wanted.flat().filter((name) => OURS.has(name.split(' ')[0]!))
    expect(ours.filter((name) => !checked.has(name))).toEqual([])
  })
})

const OURS = new Set([
  ...[
    'migrate',
    'status',
    'messages',
    'dead',
    'quarantine',
    'outbox',
    'consumer',
    'sink',
    'effects',
    'audit',
    'prune',
    'doctor',
  ],
])

/** What a schema is made of, without its name. */
async function catalogOf(schema: string): Promise<string[]> {
  const { rows: found } = await pool.query<{ line: string }>(
    `with own as (select oid, relname, relkind, reloptions from pg_class where relnamespace = $1::text::regnamespace)
     select concat('relation ', relname, ' ', relkind, ' ', reloptions) line from own
     union all select concat('column ', o.relname, '.', a.attname, ' ', a.attnum, ' ', format_type(a.atttypid, a.atttypmod), ' ',
       a.attnotnull, ' ', a.attcollation, ' ', pg_get_expr(d.adbin, d.adrelid))
       from own o join pg_attribute a on a.attrelid = o.oid and a.attnum > 0 and not a.attisdropped
       left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
     union all select pg_get_indexdef(i.indexrelid) from pg_index i join own o on o.oid = i.indexrelid
     union all select concat(conrelid::regclass, ' ', conname, ' ', pg_get_constraintdef(oid)) from pg_constraint
       where connamespace = $1::text::regnamespace
     union all select pg_get_functiondef(oid) from pg_proc where pronamespace = $1::text::regnamespace
     union all select concat(proname, ' ', proacl) from pg_proc where pronamespace = $1::text::regnamespace
     union all select pg_get_triggerdef(t.oid) from pg_trigger t join own o on o.oid = t.tgrelid where not t.tgisinternal
     union all select concat('view ', relname, ' ', pg_get_viewdef(oid)) from own where relkind = 'v'
     order by 1`,
    [schema],
  )
  return found.map(({ line }) => line.replaceAll(schema, 'ob'))
}
