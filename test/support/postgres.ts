/**
 * Real PostgreSQL for tests: one shared server per run (see global-setup.ts), a fresh database per test file, and
 * private servers for the tests that kill theirs.
 */
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { randomBytes, randomInt } from 'node:crypto'
import { existsSync, openSync, closeSync, rmSync } from 'node:fs'
import { chown, cp, mkdtemp, readFile, readdir, rm, stat } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { findOrInstallBinaries } from './postgres-binaries.js'

const run = promisify(execFile)

export interface PostgresOptions {
  /** Default `on`. `off` makes commits cheap, and lets a killed server forget the last ones. */
  synchronousCommit?: 'on' | 'off' | 'local' | 'remote_write' | 'remote_apply'
  /** Further server settings, as in postgresql.conf. */
  settings?: Record<string, string | number>
}

export interface PostgresServer {
  readonly url: string
  readonly port: number
  /** The postmaster's, or that of the last one while none runs. */
  readonly pid: number
  readonly dataDir: string
  readonly logFile: string
  /** Sends a signal to the postmaster. For one that ends it, resolves when it has ended. */
  kill(signal: NodeJS.Signals): Promise<void>
  /** Starts the postmaster again on the same port and data; a running one is shut down first. Resolves when it answers. */
  restart(): Promise<void>
  /** Ends the server and removes its directory. */
  stop(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

const DIRECTORY_PREFIX = 'oncebox-postgres-'
const START_TIMEOUT_MS = 60_000
const STOP_TIMEOUT_MS = 20_000

export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  await removeAbandonedDirectories()
  const binaries = await findOrInstallBinaries()
  const user = await serverUser()
  const root = await mkdtemp(path.join(tmpdir(), `${DIRECTORY_PREFIX}${process.pid}-`))
  const dataDir = path.join(root, 'data')
  const logFile = path.join(root, 'log')
  let child: ChildProcess | undefined
  let port = 0

  // A run that ends without its teardown (an exception, process.exit) must leave nothing behind either.
  const removeNow = () => {
    if (child && isRunning(child)) child.kill('SIGQUIT')
    rmSync(root, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 })
  }
  process.once('exit', removeNow)

  const stop = async () => {
    process.off('exit', removeNow)
    if (child) await end(child, 'SIGQUIT')
    await rm(root, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
  }

  const launch = async () => {
    const deadline = Date.now() + START_TIMEOUT_MS
    for (;;) {
      child = spawnServer(bin, [...serverArguments(options), '-D', dataDir, '-p', String(port)], logFile, root, user)
      if (await answers(child, serverUrl(port), deadline)) return
      // The port may be taken by now, and backends of a killed postmaster may hold its memory for a moment.
      await end(child, 'SIGQUIT')
      if (Date.now() > deadline) throw new Error(`PostgreSQL did not start:\n${await tail(logFile)}`)
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }

  let bin = binaries.bin
  try {
    if (user.uid !== undefined && user.gid !== undefined) await chown(root, user.uid, user.gid)
    if (user.uid !== undefined && binaries.copyRoot) {
      const copy = path.join(root, 'native')
      await cp(binaries.copyRoot, copy, { recursive: true, verbatimSymlinks: true })
      bin = path.join(copy, path.relative(binaries.copyRoot, binaries.bin))
    }
    const initdb = ['-D', dataDir, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-locale', '--no-sync']
    await run(path.join(bin, 'initdb'), initdb, { cwd: root, ...user })
    port = await freePort()
    await launch()
  } catch (error) {
    await stop()
    throw error
  }

  return {
    url: serverUrl(port),
    port,
    dataDir,
    logFile,
    get pid() {
      return child?.pid ?? -1
    },
    async kill(signal) {
      if (!child) return
      if (signal === 'SIGSTOP' || signal === 'SIGCONT' || signal === 'SIGHUP') child.kill(signal)
      else await end(child, signal)
    },
    async restart() {
      if (child) await end(child, 'SIGINT')
      await launch()
    },
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

export interface ScratchDatabase {
  readonly url: string
  readonly name: string
  /** Drops the database, with whatever is still connected to it. */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/** A fresh database on the shared server, for one test file. */
export async function scratchDatabase(name = 'scratch'): Promise<ScratchDatabase> {
  const shared = sharedDatabaseUrl()
  const database = `${safeName(name)}_${randomBytes(5).toString('hex')}`
  await statement(shared, `create database "${database}"`)
  const url = new URL(shared)
  url.pathname = `/${database}`
  const close = () => statement(shared, `drop database if exists "${database}" with (force)`)
  return { url: url.href, name: database, close, [Symbol.asyncDispose]: close }
}

/** A schema name that no other test uses. */
export function scratchSchemaName(name = 'oncebox'): string {
  return `${safeName(name)}_${randomBytes(5).toString('hex')}`
}

/** The server that global-setup.ts started, or the one that DATABASE_URL names. */
export function sharedDatabaseUrl(): string {
  const url = process.env['DATABASE_URL']
  if (!url) throw new Error('DATABASE_URL is not set: run the tests through vitest, whose global setup starts a server')
  return url
}

/** What libpq and `new pg.Pool()` read when they are given nothing. */
export function libpqEnvironment(url: string): Record<string, string> {
  const { hostname, port, username, password, pathname } = new URL(url)
  return {
    PGHOST: hostname,
    PGPORT: port || '5432',
    PGUSER: decodeURIComponent(username),
    PGPASSWORD: decodeURIComponent(password),
    PGDATABASE: decodeURIComponent(pathname.slice(1)),
  }
}

async function statement(url: string, text: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(text)
  } finally {
    await client.end()
  }
}

function safeName(name: string): string {
  return name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '_')
    .slice(0, 40)
}

function serverUrl(port: number): string {
  return `postgres://postgres@127.0.0.1:${port}/postgres`
}

function serverArguments(options: PostgresOptions): string[] {
  const settings: Record<string, string | number> = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    max_connections: 200,
    synchronous_commit: options.synchronousCommit ?? 'on',
    log_line_prefix: '%m [%p] %d ',
    ...options.settings,
  }
  return Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
}

interface ServerUser {
  uid?: number
  gid?: number
}

/** PostgreSQL refuses to run as root; anyone else runs it as themselves. */
async function serverUser(): Promise<ServerUser> {
  if (process.getuid?.() !== 0) return {}
  const passwd = await readFile('/etc/passwd', 'utf8')
  for (const name of ['postgres', 'nobody']) {
    const entry = passwd.split('\n').find((line) => line.startsWith(`${name}:`))
    const [, , uid, gid] = entry?.split(':') ?? []
    if (uid && gid) return { uid: Number(uid), gid: Number(gid) }
  }
  throw new Error('PostgreSQL cannot run as root, and there is no user postgres or nobody to run it as')
}

/** The server leads its own process group, and on Linux the kernel ends it with us, even when we are killed with -9. */
function spawnServer(bin: string, args: string[], logFile: string, cwd: string, user: ServerUser): ChildProcess {
  const server = path.join(bin, 'postgres')
  const log = openSync(logFile, 'a')
  const options = { cwd, detached: true, stdio: ['ignore', log, log] as ['ignore', number, number] }
  const child = existsSync('/usr/bin/setpriv')
    ? spawn('/usr/bin/setpriv', [...dropTo(user), '--pdeathsig', 'SIGQUIT', server, ...args], options)
    : spawn(server, args, { ...options, ...user })
  closeSync(log)
  child.unref()
  // A failed spawn shows as a child without a pid; the log has the reason of any other failure.
  child.on('error', () => {})
  return child
}

function dropTo({ uid, gid }: ServerUser): string[] {
  return uid === undefined ? [] : [`--reuid=${uid}`, `--regid=${gid}`, '--clear-groups']
}

function isRunning(child: ChildProcess): boolean {
  return child.pid !== undefined && child.exitCode === null && child.signalCode === null
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (!isRunning(child)) return
  const exited = new Promise((resolve) => child.once('exit', resolve))
  child.kill(signal)
  // A stopped process takes no signal but SIGKILL until it continues.
  child.kill('SIGCONT')
  const impatience = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS)
  await exited
  clearTimeout(impatience)
}

async function answers(child: ChildProcess, url: string, deadline: number): Promise<boolean> {
  while (isRunning(child) && Date.now() < deadline) {
    const up = await statement(url, 'select 1').then(
      () => true,
      () => false,
    )
    if (up) return isRunning(child)
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
  return false
}

/** Below the range that outgoing connections are given, so that nobody takes the port while its server is down. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 32_000)
    const free = await new Promise<boolean>((resolve) => {
      const probe = createServer()
      probe.once('error', () => resolve(false))
      probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
    })
    if (free) return port
  }
}

/** Runs that were killed with -9 leave their directory. An hour is longer than any run. */
async function removeAbandonedDirectories(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    if (!name.startsWith(DIRECTORY_PREFIX)) continue
    const owner = Number(name.slice(DIRECTORY_PREFIX.length).split('-')[0])
    const directory = path.join(tmpdir(), name)
    const age = await stat(directory).then(
      ({ ctimeMs }) => Date.now() - ctimeMs,
      () => 0,
    )
    if (age > 3_600_000 && !exists(owner)) await rm(directory, { recursive: true, force: true }).catch(() => {})
  }
}

function exists(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

async function tail(file: string): Promise<string> {
  const text = await readFile(file, 'utf8').catch(() => '(no log)')
  return text.split('\n').slice(-20).join('\n')
}
