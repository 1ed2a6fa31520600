/** The program as it is installed, on a pseudo-terminal and in a pipe: what only a process of its own can show. */
import { execFile, spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { waitUntil } from '../support/wait.js'
import { libpqEnvironment, scratchDatabase, type ScratchDatabase } from '../support/postgres.js'
import { ROOT, seed } from './fixture.js'
import { openTerminal } from './terminal.js'

const run = promisify(execFile)

let database: ScratchDatabase
let project: string
/** node_modules/.bin/oncebox of a project that installed the packed package. */
let program: string
beforeAll(async () => {
  database = await scratchDatabase('cli_terminal')
  project = await mkdtemp(path.join(tmpdir(), 'oncebox-bin-'))
  await writeFile(path.join(project, 'package.json'), '{ "private": true }')
  const packed = await run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', project], { cwd: ROOT })
  const [{ filename }] = JSON.parse(packed.stdout) as [{ filename: string }]
  await run('npm', ['install', '--offline', '--no-audit', '--no-fund', `./${filename}`], { cwd: project })
  await symlink(path.join(ROOT, 'node_modules/pg'), path.join(project, 'node_modules/pg'))
  program = path.join(project, 'node_modules/.bin/oncebox')
  await seed(database.url, 'oncebox')
}, 180_000)
afterAll(async () => {
  await rm(project, { recursive: true, force: true })
  await database.close()
})

const onTerminal = (argv: readonly string[], env: Record<string, string> = {}) =>
  openTerminal([program, ...argv], { cwd: project, env: { DATABASE_URL: database.url, ...env } })

interface Piped {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

async function inPipe(
  argv: readonly string[],
  env: Record<string, string> = { DATABASE_URL: database.url },
): Promise<Piped> {
  const { DATABASE_URL: _, ...rest } = process.env
  const done = run(program, argv, { cwd: project, env: { ...rest, ...env, NODE_OPTIONS: '' } })
  return done.then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (error: { code: number; stdout: string; stderr: string }) => error,
  )
}

describe('in a pipe', () => {
  test('the installed program begins with its shebang, and prints without colours, bars or questions', async () => {
    expect(await readFile(program, 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/)
    const listed = await inPipe(['dead', 'ls'])
    expect(listed).toMatchObject({ code: 0, stderr: '' })
    expect(listed.stdout).not.toContain('\u001b')
    expect(listed.stdout.split('\n').filter((line) => line.includes('no luck with bad'))).toHaveLength(5)
    expect(await inPipe(['dead', 'retry', 'bad-1'])).toMatchObject({ code: 2, stdout: '' })
    const coloured = await inPipe(['dead', 'ls'], { DATABASE_URL: database.url, FORCE_COLOR: '1' })
    expect(coloured.stdout).toContain('\u001b[31mdead')
  })

  test('libpq’s variables lead to the database, and an unreachable one to exit code 4', async () => {
    expect(await inPipe(['migrate', 'status', '--json'], libpqEnvironment(database.url))).toMatchObject({ code: 0 })
    const away = await inPipe(['status'], { ...libpqEnvironment(database.url), PGPORT: '1', PGPASSWORD: 'canary' })
    expect(away).toMatchObject({ code: 4, stdout: '' })
    expect(away.stderr).not.toContain('canary')
  })

  test('nobody reads on: the program ends quietly', async () => {
    const { stdout, stderr } = await run('bash', ['-c', `"${program}" messages ls --json | head -1`], {
      env: { ...process.env, DATABASE_URL: database.url, NODE_OPTIONS: '' },
      cwd: project,
    })
    expect(stdout.split('\n')).toHaveLength(2)
    expect(stderr).toBe('')
  })

  /** With a shell's own exit code; `script` has the program as `$0`. */
  const inShell = async (script: string): Promise<Piped> => {
    const env = { ...process.env, DATABASE_URL: database.url, NODE_OPTIONS: '' }
    return run('bash', ['-c', script, program], { env, cwd: project }).then(
      ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
      (error: Piped) => error,
    )
  }

  test('nobody reads what a bulk verb says: it finishes its work all the same', async () => {
    await seed(database.url, 'unread')
    const discard = `dead discard --all --schema unread --rps 20 --reason unread --yes`
    const { code, stdout } = await inShell(`"$0" ${discard} 2>&1 | head -1; exit "\${PIPESTATUS[0]}"`)
    expect({ code, stdout }).toEqual({ code: 0, stdout: '5 dead messages to discard\n' })
    expect(await inPipe(['dead', 'ls', '--json', '--schema', 'unread'])).toMatchObject({ stdout: '' })
    const { stdout: audit } = await inPipe(['audit', 'ls', '--json', '--limit', '1', '--schema', 'unread'])
    expect(JSON.parse(audit)).toMatchObject({ action: 'discard', detail: { count: 5 } })
  })

  test('nobody reads what bench says: it drops its schema all the same', async () => {
    const { stdout } = await inShell(`"$0" bench --seconds 1 2>&1 | head -1`)
    const [, schema] = /in the schema (oncebox_bench_\w+)/.exec(stdout)!
    const client = new pg.Client({ connectionString: database.url })
    await client.connect()
    const { rowCount } = await client.query('select 1 from pg_namespace where nspname = $1', [schema])
    await client.end()
    expect(rowCount).toBe(0)
  })

  test.for(['migrate sql', 'dead ls', 'messages ls --json', '--help'])(
    'a full disk is told in a line, and ends %s with 1',
    async (words) => {
      const { code, stderr } = await inShell(`exec "$0" ${words} > /dev/full`)
      expect({ code, stderr }).toEqual({
        ...{ code: 1, stderr: 'oncebox: what was printed could not be written: no space is left (ENOSPC)\n' },
      })
    },
  )

  test('a config that awaits what never comes ends with 1, in words', async () => {
    const config = path.join(project, 'endless.config.mjs')
    await writeFile(config, 'await new Promise(() => undefined)\nexport default {}\n')
    const { code, stderr } = await inPipe(['status', '--config', config], {})
    expect({ code, stderr }).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/never comes\n.*await in the config/),
    })
  })

  test('Ctrl-C ends what goes on for ever with 130, also while it waits for the database', async () => {
    const locker = new pg.Client({ connectionString: database.url })
    const watcher = new pg.Client({ connectionString: database.url })
    await Promise.all([locker.connect(), watcher.connect()])
    try {
      await locker.query('begin; lock table oncebox.consumer in access exclusive mode')
      const child = spawn(program, ['status'], {
        ...{ cwd: project, stdio: 'ignore' },
        env: { ...process.env, DATABASE_URL: database.url, NODE_OPTIONS: '' },
      })
      const exited = new Promise<number | null>((resolve) => child.once('close', resolve))
      const waiting = `select 1 from pg_stat_activity where application_name = 'oncebox' and wait_event_type = 'Lock'`
      // A transaction is shown the same activity all along.
      await waitUntil(async () => (await watcher.query(waiting)).rowCount, { what: 'the statement to wait' })
      child.kill('SIGINT')
      expect(await exited).toBe(130)
    } finally {
      await Promise.all([locker.end(), watcher.end()])
    }
  })
})

async function ageAll(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(`update oncebox.work set due_at = due_at - interval '1 hour' where parked is null`)
  await client.end()
}

describe('on a terminal', () => {
  test('every read has colours and fits; with NO_COLOR it has none', async () => {
    const reads = [
      ...[
        ['status'],
        ['messages', 'ls'],
        ['messages', 'show', 'bad-1'],
        ['dead', 'ls'],
        ['quarantine', 'ls'],
        ['outbox', 'ls'],
      ],
      ...[
        ['consumer', 'ls'],
        ['sink', 'ls'],
        ['audit', 'ls'],
        ['doctor'],
        ['migrate', 'status'],
        ['migrate', 'up'],
        ['migrate', 'sql'],
      ],
      ...[
        ['migrate', 'sql', '--roles'],
        ['completion', 'bash'],
        ['status', '--watch', '--times', '2', '--interval', '10ms'],
      ],
      ...[['--help'], ['dead', 'retry', '--help'], ['dead', 'ls', '--json'], ['--version']],
      ...[
        ['dead', 'retry', '--all', '--dry-run'],
        ['quarantine', 'release', '--all', '--dry-run'],
      ],
      ...[
        ['outbox', 'discard', '--all', '--dry-run', '--reason', 'none'],
        ['consumer', 'pause', 'pay'],
        ['consumer', 'resume', 'pay'],
      ],
      ...[
        ['quarantine', 'discard', '--why', 'no-id', '--reason', 'none', '--yes'],
        ['prune', '--yes'],
      ],
      ...[
        ['dead', 'discard', 'bad-5', '--reason', 'none', '--yes'],
        ['outbox', 'retry', '--all', '--yes'],
      ],
      ['effects', 'answer', 'charge', '--consumer', 'pay', '--id', 'call-1', '--happened'],
    ]
    const fails = [
      ['dead', 'rtry'],
      ['status', '--schema', 'nothing'],
      ['sink', 'rm', 'nothing', '--yes'],
      ['consumer', 'rm', 'pay', '--yes'],
    ]
    const show = async (env: Record<string, string>, columns: number): Promise<string[]> => {
      const child = path.join(ROOT, 'test/cli/pty-child.mjs')
      const given = { DATABASE_URL: database.url, COMMANDS: JSON.stringify([...reads, ...fails]), ...env }
      const terminal = openTerminal([process.execPath, child], { cwd: ROOT, columns, env: given })
      expect(await terminal.exited).toBe(0)
      return terminal.shown
        .replaceAll('\r\n', '\n')
        .split(/@@ true true /)
        .slice(1)
    }
    // What waits has waited for long, however fast the tests before this one were: the doctor finds that nothing runs it.
    await ageAll(database.url)
    const ends = (parts: string[]): number[] => parts.map((part) => Number(/^\d+/.exec(part)![0]))
    const coloured = await show({}, 90)
    const all = coloured.join('\n')
    expect(ends(coloured).slice(0, reads.length), all).toEqual(reads.map(([noun]) => (noun === 'doctor' ? 3 : 0)))
    expect(ends(coloured).slice(reads.length), all).toEqual([2, 1, 1, 1])
    expect(all).toContain('\u001b[31mdead\u001b[39m')
    const plain = (await show({ NO_COLOR: '1' }, 90)).join('').replaceAll(/\u001b\[(\?\d+[hl]|[HKJ]|2K)/g, '') // eslint-disable-line no-control-regex -- the screen
    expect(plain).not.toContain('\u001b')
    const tables = plain.split('\n').filter((line) => /^(RECEIVED|CONSUMER|SINK|AT |\d{4}-)/.test(line))
    expect(tables.length).toBeGreaterThan(20)
    expect(tables.filter((line) => [...line].length > 90)).toEqual([])
  })

  test('a bulk verb asks, draws a bar, stops on Ctrl-C and says how far it got', async () => {
    const no = onTerminal(['dead', 'retry', 'bad-1'])
    await no.waitFor(/retry 1 dead message\? \[y\/N\] /)
    no.type('no\n')
    expect(await no.exited).toBe(1)
    expect(no.shown).toContain('nothing was changed')

    const asked = onTerminal(['dead', 'retry', '--all'])
    await asked.waitFor(/\[y\/N\] /)
    asked.type('\u0003')
    expect(await asked.exited).toBe(130)
    expect(asked.shown).toContain('nothing was changed')

    const slow = onTerminal(['dead', 'retry', '--all', '--rps', '1', '--reason', 'try again'])
    await slow.waitFor(/\[y\/N\] /)
    slow.type('y\n')
    await slow.waitFor(/\[#+\.+\] \d+ % {2}1 of \d, .*\/s, .* left/)
    slow.type('\u0003')
    expect(await slow.exited).toBe(130)
    expect(slow.shown).toMatch(/interrupted: \d of \d dead messages retried; run it again to go on/)
    const { stdout } = await inPipe(['audit', 'ls', '--json', '--limit', '1'])
    expect(JSON.parse(stdout)).toMatchObject({
      action: 'retry',
      detail: { reason: 'try again', count: expect.any(Number) },
    })
  })

  test('status --watch draws until Ctrl-C, and gives the screen back', async () => {
    const watch = onTerminal(['status', '--watch', '--interval', '20ms'])
    await watch.waitFor(/BACKLOG[^]*pay[^]*BACKLOG[^]*pay/)
    watch.type('\u0003')
    expect(await watch.exited).toBe(130)
    expect(watch.shown).toContain('\u001b[?25h\u001b[?1049l')
  })

  test('a server that is away ends with 4, and the password is not shown', async () => {
    const away = onTerminal(['status'], { DATABASE_URL: 'postgres://app:canary@127.0.0.1:1/x' })
    expect(await away.exited).toBe(4)
    expect(away.shown).toContain('cannot connect to 127.0.0.1:1')
    expect(away.shown).not.toContain('canary')
  })
})
