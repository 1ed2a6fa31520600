/**
 * Launches a private PostgreSQL: on a random loopback port, in a temporary directory, gone when we are. The tests, the
 * benchmark and the demo share it. Its types are in server.d.mts.
 */
import { execFile, spawn } from 'node:child_process'
import { existsSync, openSync, closeSync, rmSync } from 'node:fs'
import { chown, cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { freePort } from '../services/ports.mjs'
import { removeAbandonedDirectories, tail } from '../directories.mjs'
import { dropTo, serverUser } from '../users.mjs'
import { findOrInstallBinaries } from './binaries.mjs'
import { copyForStandby } from './copy.mjs'

export { freePort }

const run = promisify(execFile)

const DIRECTORY_PREFIX = 'oncebox-postgres-'
const START_TIMEOUT_MS = 60_000
const STOP_TIMEOUT_MS = 20_000

/**
 * @param {import('./server.mjs').PostgresOptions} [options]
 * @returns {Promise<import('./server.mjs').PostgresServer>}
 */
export async function startPostgres(options = {}) {
  await removeAbandonedDirectories(DIRECTORY_PREFIX)
  const binaries = await findOrInstallBinaries(options)
  const user = await serverUser()
  const root = await mkdtemp(path.join(tmpdir(), `${DIRECTORY_PREFIX}${process.pid}-`))
  const dataDir = path.join(root, 'data')
  const logFile = path.join(root, 'log')
  /** @type {import('node:child_process').ChildProcess | undefined} */
  let child
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
      const args = [...serverArguments(options, root), '-D', dataDir, '-p', String(port)]
      child = spawnServer(bin, args, logFile, root, user)
      if (await answers(child, serverUrl(port), deadline)) return
      // The port may be taken by now, and backends of a killed postmaster may hold its memory for a moment.
      await end(child, 'SIGQUIT')
      if (Date.now() > deadline) throw new Error(`PostgreSQL did not start:\n${await tail(logFile)}`)
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }

  let { bin } = binaries
  try {
    if (user.uid !== undefined) await chown(root, user.uid, user.gid)
    if (user.uid !== undefined && binaries.copyRoot) {
      const copy = path.join(root, 'native')
      await cp(binaries.copyRoot, copy, { recursive: true, verbatimSymlinks: true })
      bin = path.join(copy, path.relative(binaries.copyRoot, binaries.bin))
    }
    if (options.standbyOf === undefined) {
      const initdb = ['-D', dataDir, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-locale', '--no-sync']
      await run(path.join(bin, 'initdb'), initdb, { cwd: root, ...user })
    } else {
      await copyForStandby(options.standbyOf, dataDir, user)
    }
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
    socketDirectory: root,
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
    async version() {
      const { stdout } = await run(path.join(bin, 'postgres'), ['--version'], { cwd: root })
      return stdout.match(/\d[\d.]*/)?.[0] ?? stdout.trim()
    },
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

/** Runs one statement on a connection of its own. */
export async function statement(url, text) {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(text)
  } finally {
    await client.end()
  }
}

function serverUrl(port) {
  return `postgres://postgres@127.0.0.1:${port}/postgres`
}

function serverArguments({ synchronousCommit = 'on', settings: further, unixSocket }, root) {
  const settings = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: unixSocket ? root : '',
    max_connections: 200,
    synchronous_commit: synchronousCommit,
    log_line_prefix: '%m [%p] %d ',
    ...further,
  }
  return Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
}

/** The server leads its own process group, and on Linux the kernel ends it with us, even when we are killed with -9. */
function spawnServer(bin, args, logFile, cwd, user) {
  const server = path.join(bin, 'postgres')
  const log = openSync(logFile, 'a')
  const options = { cwd, detached: true, stdio: ['ignore', log, log] }
  const child = existsSync('/usr/bin/setpriv')
    ? spawn('/usr/bin/setpriv', [...dropTo(user), '--pdeathsig', 'SIGQUIT', server, ...args], options)
    : spawn(server, args, { ...options, ...user })
  closeSync(log)
  child.unref()
  // A failed spawn shows as a child without a pid; the log has the reason of any other failure.
  child.on('error', () => {})
  return child
}

function isRunning(child) {
  return child.pid !== undefined && child.exitCode === null && child.signalCode === null
}

async function end(child, signal) {
  if (!isRunning(child)) return
  const exited = new Promise((resolve) => child.once('exit', resolve))
  child.kill(signal)
  // A stopped process takes no signal but SIGKILL until it continues.
  child.kill('SIGCONT')
  const impatience = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS)
  await exited
  clearTimeout(impatience)
}

async function answers(child, url, deadline) {
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
