/** What a command says where a name is wrong, a right is missing, or the next step is another command. */
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { createBox, rolesSql } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { fixOf } from '../../src/cli/shared/remedies.js'
import { type ScratchDatabase, scratchDatabase } from '../support/postgres.js'
import { waitUntil } from '../support/wait.js'
import { cli, seed, type CliOptions, type Ran } from './fixture.js'

let database: ScratchDatabase
let pool: pg.Pool
/** Roles belong to the server: their names are this test's own. */
const role = (which: string): string => `advice_${process.pid}_${which}`
const LOGINS = ['viewer', 'janitor', 'nobody']
const GROUPS = ['owner', 'producer', 'worker', 'janitor', 'viewer', 'reader']

beforeAll(async () => {
  database = await scratchDatabase('advice')
  pool = new pg.Pool({ connectionString: database.url, max: 2 })
  await seed(database.url, 'oncebox')
  await pool.query(rolesSql({ roles: Object.fromEntries(GROUPS.map((which) => [which, role(which)])) }))
  for (const which of LOGINS) await pool.query(`create role ${role(`${which}_login`)} login`)
  for (const which of ['viewer', 'janitor']) await pool.query(`grant ${role(which)} to ${role(`${which}_login`)}`)
})
afterAll(async () => {
  const all = [...GROUPS.map(role), ...LOGINS.map((which) => role(`${which}_login`))].join(', ')
  await pool.query(`drop schema oncebox cascade; drop owned by ${all}; drop role ${all}`)
  await pool.end()
  await database.close()
})

const oncebox = (argv: readonly string[], options: CliOptions = {}): Promise<Ran> =>
  cli(argv, { ...options, env: { DATABASE_URL: database.url, ...options.env } })

function as(login: string): CliOptions {
  const url = new URL(database.url)
  url.username = role(`${login}_login`)
  return { env: { DATABASE_URL: url.href } }
}

describe('a role without the rights', () => {
  test.for<[login: string, argv: string[], may: string]>([
    ['viewer', ['dead', 'retry', '--all', '--yes'], 'oncebox_worker'],
    ['viewer', ['consumer', 'pause', 'pay'], 'oncebox_worker'],
    ['viewer', ['effects', 'answer', 'charge', '--consumer', 'pay', '--id', 'call-1', '--happened'], 'oncebox_worker'],
    ['viewer', ['prune', '--yes'], 'oncebox_janitor'],
    ['nobody', ['status'], 'oncebox_viewer'],
    ['nobody', ['dead', 'ls'], 'oncebox_viewer'],
    ['nobody', ['doctor'], 'oncebox_viewer'],
    ['nobody', ['migrate', 'status'], 'oncebox_viewer'],
    ['nobody', ['dead', 'retry', '--all', '--yes'], 'oncebox_worker'],
  ])('%s, %j: the answer names the role that may', async ([login, argv, may]) => {
    const { code, stderr } = await oncebox(argv, as(login))
    expect(code).toBe(1)
    expect(stderr).toMatch(/RIGHTS_MISSING/)
    expect(stderr).toContain(
      `oncebox ${argv.slice(0, /^(prune|status|doctor)$/.test(argv[0]!) ? 1 : 2).join(' ')} needs`,
    )
    expect(stderr.match(/oncebox_(worker|viewer|janitor)/)?.[0]).toBe(may)
    expect(stderr).toContain('migrate sql --roles')
  })
})

describe('a name that there is not', () => {
  test.for<[argv: string[], code: number, words: RegExp]>([
    [['outbox', 'retry', '--sink', 'event', '--yes'], 2, /there is no sink "event"\n +did you mean events\?/],
    [['outbox', 'discard', '--sink', 'nope', '--reason', 'x', '--yes'], 2, /no sink "nope"\n.*oncebox sink ls/],
    [['dead', 'retry', 'pay-nix', '--yes'], 1, /there is no message pay-nix\n.*oncebox messages ls/],
    [['dead', 'retry', 'bad-1', 'pay-nix', '--yes'], 1, /there is no message pay-nix\n.*oncebox messages ls/],
    [['dead', 'discard', 'ok-1', 'pay-nix', '--reason', 'x', '--dry-run'], 1, /there is no message pay-nix\n/],
    [['outbox', 'retry', 'e2-refused', 'e-nix', '--yes'], 1, /there is no event e-nix\n.*oncebox outbox ls/],
    [['outbox', 'retry', 'e-nix', '--yes'], 1, /there is no event e-nix\n.*oncebox outbox ls/],
    [['dead', 'retry', '--consumer', 'pya', '--yes'], 2, /no consumer "pya"; did you mean pay\?/],
    [['consumer', 'pause', 'pya'], 1, /no consumer "pya"; did you mean pay\?/],
    [['consumer', 'resume', 'shipping-of-goods'], 1, /no consumer .*there is pay[\s\S]*oncebox consumer ls/],
    [['consumer', 'rm', 'pya'], 1, /no consumer "pya"\n +did you mean pay\?/],
    [['sink', 'rm', 'event'], 1, /there is no sink "event".*did you mean events\?/],
  ])('%j', async ([argv, code, words]) => {
    const ran = await oncebox(argv)
    expect(ran).toMatchObject({ code, stdout: '', stderr: expect.stringMatching(words) as string })
    expect(ran.stderr).not.toMatch(/(status|consumers)\(\)|0 events|--yes/)
  })

  test('a message in another state is no mistake: the answer says which', async () => {
    const { code, stdout, stderr } = await oncebox(['dead', 'retry', 'ok-1', '--yes'])
    expect({ code, stdout }).toEqual({ code: 0, stdout: '0 dead messages retried\n' })
    expect(stderr).toContain('message ok-1 of pay is handled')
  })

  test('a message in another state is named also beside one that can be changed', async () => {
    const { code, stdout, stderr } = await oncebox(['dead', 'retry', 'bad-1', 'ok-1', '--dry-run'])
    expect({ code, stdout }).toEqual({ code: 0, stdout: '1 dead message to retry\n' })
    expect(stderr).toContain('message ok-1 of pay is handled')
    expect(stderr).not.toContain('bad-1')
  })

  test('an effect: the answer lists those that the message waits for', async () => {
    const argv = ['effects', 'answer', 'charge-card', '--consumer', 'pay', '--id', 'call-1', '--happened']
    const { code, stderr } = await oncebox(argv)
    expect(code).toBe(1)
    expect(stderr).toMatch(/NOT_FOUND/)
    expect(stderr).toContain(`it waits for one about effect 'charge'`)
  })

  test('a column of a table', async () => {
    await pool.query('create table processed (message_id text primary key, at timestamptz)')
    const argv = ['import', '--from-table', 'processed', '--id-column', 'id', '--consumer', 'pay', '--yes']
    expect((await oncebox(argv)).stderr).toContain('did you mean message_id?')
  })
})

test('what waits for an answer names the command that gives it', async () => {
  const { stdout } = await oncebox(['messages', 'show', 'call-1'])
  expect(stdout).toContain('oncebox effects answer')
})

test('a release of what waits for an answer says that it needs one, and other releases do not', async () => {
  for (const which of [['--why', 'effect-unknown'], ['call-1'], ['--all']]) {
    const { stderr } = await oncebox(['quarantine', 'release', ...which, '--dry-run'])
    expect(stderr).toMatch(/park again.*\n?.*oncebox effects answer/)
  }
  const { stderr } = await oncebox(['quarantine', 'release', '--why', 'no-id', '--dry-run'])
  expect(stderr).not.toContain('effects answer')
})

test('the doctor suggests no release that cannot work', () => {
  const fix = (reason: string, consumer = 'pay'): string => {
    const figures = { reason, consumer, messages: 1 }
    return fixOf({ code: 'messages-quarantined', severity: 'note', what: '', why: '', figures, fix: '' }, {})
  }
  expect(fix('invalid')).toContain('quarantine release --why invalid')
  for (const cannot of [fix('conflict'), fix('unmapped'), fix('no-id', '')]) expect(cannot).not.toContain('release')
  expect(fix('conflict')).toMatch(/quarantine ls .*--whole[\s\S]*quarantine discard .*under another id/)
})

test('the doctor says of row-level security what turns it off, and names roles only where a grant is missing too', async () => {
  await pool.query('alter table oncebox.work enable row level security')
  onTestFinished(() => pool.query('alter table oncebox.work disable row level security').then(() => undefined))
  const off = 'as the owner of the tables: alter table oncebox.work disable row level security;'
  const fixesOf = async (): Promise<string[]> => {
    const { stdout } = await oncebox(['doctor'], as('viewer'))
    return stdout
      .split('\n')
      .filter((line) => line.includes('disable row level security;'))
      .map((line) => line.trim())
  }
  expect(await fixesOf()).toEqual([
    expect.stringMatching(/^oncebox migrate sql --roles +# prints SQL .* And as the owner/),
  ])
  await pool.query(`grant ${role('worker')} to ${role('viewer_login')}`)
  onTestFinished(() => pool.query(`revoke ${role('worker')} from ${role('viewer_login')}`).then(() => undefined))
  expect(await fixesOf()).toEqual([off])
})

test('the doctor counts one thing as one, and names no consumer that there is not', async () => {
  const { stdout } = await oncebox(['doctor'])
  expect(stdout).toContain('1 message of consumer pay waits for somebody to say')
  expect(stdout).toContain('2 messages that reached no consumer are in quarantine as no-id')
  expect(stdout).not.toMatch(/consumer ,|\b1 (messages|events|keys|processes|dead letters)\b/)
})

test('status --max-lag says what waits, in the units of the table', async () => {
  await pool.query(`update oncebox.message set received_at = now() - interval '573 s' where id = 'waiting'`)
  await waitUntil(async () => (await oncebox(['status'])).stdout.includes('9 m 3'))
  const { code, stderr } = await oncebox(['status', '--max-lag', '5m'])
  expect(code).toBe(3)
  expect(stderr).toMatch(/consumer pay is 9 m 3\d s behind, which is more than --max-lag 5 m/)
})

test('migrate up says that a schema is newer than this oncebox, and changes nothing', async () => {
  const schema = ['--schema', 'newer']
  const box = createBox({ db: fromPg(pool), schema: 'newer' })
  await box.migrate()
  await pool.query('update newer.schema_version set version = 99')
  const { code, stdout } = await oncebox(['migrate', 'up', ...schema])
  expect(code).toBe(0)
  expect(stdout).toMatch(
    /^schema newer is at version 99, which is newer than this oncebox \(\d+\); nothing was changed\n$/,
  )
  await pool.query('drop schema newer cascade')
})
