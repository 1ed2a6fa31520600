/** The demo, as people run it: it must show what it promises, and leave nothing behind. */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, mkdtemp, readFile, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createClient } from 'oncebox/dashboard/client'
import { type ScratchDatabase, scratchDatabase } from '../support/postgres.js'
import { waitUntil } from '../support/wait.js'

const DEMO = fileURLToPath(new URL('../../demo/run.mjs', import.meta.url))

vi.setConfig({ testTimeout: 240_000 })

/** Where the demo and everything it starts put their files, and what we know its processes by. */
let directory: string
beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'oncebox-demo-test-'))
  // A PostgreSQL that was started as another user has to get in.
  await chmod(directory, 0o755)
})
afterEach(async () => {
  await rm(directory, { recursive: true, force: true })
})

interface Run {
  readonly pid: number
  readonly output: { stdout: string; stderr: string }
  readonly exit: Promise<number | null>
}

function demo(args: string[], env: Record<string, string> = {}): Run {
  const inherited = { ...process.env, DATABASE_URL: '', NODE_OPTIONS: '', TMPDIR: directory }
  const child = spawn(process.execPath, [DEMO, ...args], { env: { ...inherited, ...env } })
  const output = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output.stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output.stderr += text))
  const exit = new Promise<number | null>((resolve) => child.once('close', resolve))
  return { pid: child.pid!, output, exit }
}

/** The processes of this run that are still there, by their environment. Elsewhere than on Linux nobody knows. */
async function survivors(): Promise<string[]> {
  if (!existsSync('/proc/self/environ')) return []
  const alive: string[] = []
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) continue
    const environment = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '')
    if (environment.includes(`TMPDIR=${directory}\0`)) alive.push(pid)
  }
  return alive
}

async function expectNothingLeft(): Promise<void> {
  expect(await readdir(directory)).toEqual([])
  await waitUntil(async () => (await survivors()).length === 0, { what: 'its processes to be gone' })
}

const CLEAN = { doubleReservations: 0, doubleCharges: 0, doublePayments: 0, lostReservations: 0, lostPayments: 0 }

test('every order is reserved once and charged once, while workers are killed and a naive consumer fails', async () => {
  const { output, exit } = demo(['--messages', '300', '--seed', '7', '--json'])
  expect(await exit, output.stderr).toBe(0)
  const report = JSON.parse(output.stdout)
  expect(report).toMatchObject({ ok: true, seed: '7', orders: 300, simulated: false })
  expect(report.kills).toBeGreaterThanOrEqual(3)
  expect(report.processesKilled).toBeGreaterThan(report.kills)
  expect(report.oncebox).toMatchObject({ ...CLEAN, orders: 300, reservations: 300, charges: 300, stockOffBy: 0 })
  expect(report.oncebox.duplicates).toBeGreaterThan(0)
  expect(report.naive.doubleReservations).toBeGreaterThan(0)
  expect(report.naive.doubleCharges).toBeGreaterThan(0)
  expect(report.naive.lostPayments).toBeGreaterThan(0)
  await expectNothingLeft()
})

test('on PGlite it says that its crashes are simulated, and the audit is the same', async () => {
  const { output, exit } = demo(['--messages', '60', '--seed', '7', '--database', 'pglite'], { FORCE_COLOR: '0' })
  expect(await exit, output.stderr).toBe(0)
  expect(output.stderr).toMatch(/kills are simulated/)
  expect(output.stdout).toMatch(/double reservations +[1-9]\d* +0\n/)
  expect(output.stdout).toMatch(/double charges +[1-9]\d* +0\n/)
  await expectNothingLeft()
})

test('with --dashboard its boxes stay to be looked at, and Ctrl-C ends all of it with the result', async () => {
  const { pid, output, exit } = demo(['--messages', '20', '--rate', '200', '--seed', '7', '--dashboard', '--port', '0'])
  await waitUntil(() => output.stderr.includes('what the kills have left behind'), { timeoutMs: 180_000, what: `the end: ${output.stderr}` }) // prettier-ignore
  const client = createClient({ url: /http:\S+\//.exec(output.stderr)![0] })
  expect((await client.session({})).boxes.map(({ name }) => name)).toEqual(['orders', 'inventory', 'payment'])
  const { consumers } = await client.overview({ box: 'payment' })
  expect(consumers.find(({ name }) => name === 'charge-card')).toMatchObject({ handled: 20, quarantined: 1 })
  const { reasons } = await client.quarantine({ box: 'payment' })
  expect(reasons.map(({ reason }) => reason).sort()).toEqual(['conflict', 'undecodable'])
  process.kill(pid, 'SIGINT')
  expect(await exit, output.stderr).toBe(0)
  await expectNothingLeft()
})

describe('on a database of yours', () => {
  let database: ScratchDatabase
  beforeEach(async () => {
    database = await scratchDatabase('demo')
  })
  afterEach(() => database.close())

  test('Ctrl-C ends it with 130, and it leaves no schema, no process and no file', async () => {
    const { pid, output, exit } = demo(['--messages', '5000', '--seed', '7'], { DATABASE_URL: database.url })
    await waitUntil(() => output.stderr.includes('10 %'), { timeoutMs: 120_000, what: 'the first ten percent' })
    process.kill(pid, 'SIGINT')
    expect(await exit, output.stderr).toBe(130)
    expect(output.stdout).toBe('')

    const client = new pg.Client({ connectionString: database.url })
    await client.connect()
    const { rows } = await client.query(`select nspname from pg_namespace where nspname like 'oncebox%'`)
    await client.end()
    expect(rows).toEqual([])
    await expectNothingLeft()
  })
})

describe('the command line', () => {
  test('an unknown option and a wrong number are usage errors', async () => {
    for (const args of [
      ['--mesages', '5'],
      ['--messages', 'many'],
      ['--messages', '0'],
      ['--dashboard', '--json'],
      ['--port', '4680'],
    ]) {
      const { output, exit } = demo(args)
      expect(await exit).toBe(2)
      expect(output.stderr).toMatch(/--help/)
    }
  })

  test('a database that does not answer is told apart', async () => {
    const { output, exit } = demo(['--database', 'postgres://nobody@127.0.0.1:1/none'])
    expect(await exit).toBe(4)
    expect(output.stderr).toMatch(/cannot connect/)
    await expectNothingLeft()
  })

  test('help has an example that can be copied', async () => {
    const { output, exit } = demo(['--help'])
    expect(await exit).toBe(0)
    expect(output.stdout).toMatch(/Example: npm run demo -- --messages/)
  })
})
