/**
 * The database of `oncebox dev`: a PostgreSQL of the project's own, on a port of the loopback interface, whose data stays
 * between runs. It ends with the program that started it: by its pid, and on Linux by the kernel if that is killed.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { closeSync, cpSync, existsSync, openSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import path from 'node:path'
import { sleep } from '../../backoff.js'
import { EXIT, Exit, failed } from '../exit.js'
import { findBinaries, programOf, type Binaries } from './binaries.js'
import { dataRoot, isAlive, readState, serverUser, writeState, type ServerUser } from './place.js'

export interface DevServer {
  readonly url: string
  /** Its data was made by this start. */
  readonly fresh: boolean
  readonly version: number
  stop(): Promise<void>
}

export interface ServerOptions {
  readonly project: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** Begins with no data. */
  readonly fresh: boolean
  /** Others can ask the server for it, to know whose it is. */
  readonly token: string
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal
}

const START_MS = 60_000
const STOP_MS = 20_000

/** Undefined if there is no PostgreSQL to start. */
export async function startServer(options: ServerOptions): Promise<DevServer | undefined> {
  const { project, env } = options
  const binaries = findBinaries(project, env)
  if (binaries === undefined) return undefined
  const user = serverUser()
  const root = dataRoot(project, user)
  await endLeftOver(project)
  const data = path.join(root, `data-${binaries.major}`)
  if (options.fresh) rmSync(data, { recursive: true, force: true })
  const bin = reachable(binaries, root, user)
  const fresh = !existsSync(path.join(data, 'PG_VERSION'))
  if (fresh) await initialise({ bin, data, user, root, options })
  const { child, port } = await launch({ bin, data, user, root, options })
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  writeState(project, { pid: process.pid, server: child.pid!, port, url, root })
  // A process that ends without its stop must leave nothing behind either.
  const endNow = (): void => void child.kill('SIGQUIT')
  process.once('exit', endNow)
  return {
    ...{ url, fresh, version: binaries.major },
    async stop() {
      await end(child)
      process.off('exit', endNow)
      writeState(project, { port, root })
    },
  }
}

/** The URL of a server that another `oncebox dev` of this project looks after. */
export function runningUrl(project: string): string | undefined {
  const { pid, server, url } = readState(project)
  return isAlive(pid) && isAlive(server) ? url : undefined
}

/** One whose program was killed, where the kernel did not end it too. */
async function endLeftOver(project: string): Promise<void> {
  const { pid, server, root } = readState(project)
  if (server === undefined || root === undefined || isAlive(pid) || !isAlive(server)) return
  // The number may be another process's by now: the data directory knows.
  if (!isPostmaster(root, server)) return
  process.kill(server, 'SIGINT')
  for (let waited = 0; isAlive(server) && waited < STOP_MS; waited += 50) await sleep(50)
}

function isPostmaster(root: string, pid: number): boolean {
  try {
    const directories = [14, 15, 16, 17, 18, 19, 20].map((major) => path.join(root, `data-${major}`, 'postmaster.pid'))
    return directories.some((file) => existsSync(file) && readFileSync(file, 'utf8').startsWith(`${pid}\n`))
  } catch {
    return false
  }
}

function reachable({ bin, major, copyRoot }: Binaries, root: string, user: ServerUser): string {
  if (user.uid === undefined || copyRoot === undefined) return bin
  const copy = path.join(root, `native-${major}`)
  if (!existsSync(copy)) cpSync(copyRoot, copy, { recursive: true, verbatimSymlinks: true })
  return path.join(copy, path.relative(copyRoot, bin))
}

interface Launch {
  readonly bin: string
  readonly data: string
  readonly root: string
  readonly user: ServerUser
  readonly options: ServerOptions
}

async function initialise({ bin, data, user, options: { signal } }: Launch): Promise<void> {
  // Everybody on this machine may connect, as to any database of a developer that has no password.
  const args = ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-locale', '--no-sync']
  // A group of its own, as the server: Ctrl-C is for us, and its own words about it would be taken for a fault.
  const how = { cwd: path.dirname(data), detached: process.platform !== 'win32', ...user }
  const child = spawn(programOf(bin, 'initdb'), args, { ...how, stdio: ['ignore', 'ignore', 'pipe'] })
  let told = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (told += text))
  const stop = (): void => endGroup(child)
  signal.addEventListener('abort', stop)
  process.once('exit', stop)
  const code = await new Promise<number | null>((resolve) => {
    child.once('error', ({ message }) => {
      told ||= message
      resolve(null)
    })
    child.once('close', resolve)
    if (signal.aborted) stop()
  })
  process.off('exit', stop)
  signal.removeEventListener('abort', stop)
  if (code === 0 && !signal.aborted) return
  rmSync(data, { recursive: true, force: true, maxRetries: 5 })
  if (signal.aborted) throw interrupted()
  const last = told.trim().split('\n').at(-1)
  throw failed(`initdb failed: ${last || `exit code ${code}`}`, `try it: ${programOf(bin, 'initdb')} --version`)
}

function interrupted(): Exit {
  return new Exit(EXIT.interrupted, 'interrupted')
}

/** With what it has started itself. */
function endGroup(child: ChildProcess): void {
  if (!isRunning(child)) return
  try {
    if (process.platform === 'win32') child.kill()
    else process.kill(-child.pid!, 'SIGTERM')
  } catch {
    // It has ended in between.
  }
}

async function launch(given: Launch): Promise<{ child: ChildProcess; port: number }> {
  const { root, data, options } = given
  const log = path.join(root, 'log')
  const deadline = performance.now() + START_MS
  // The same port again, so that what somebody has open still works.
  let port = await freePort(readState(options.project).port)
  for (;;) {
    const child = spawnServer(given, port, log)
    if (await isReady({ child, data, deadline, signal: options.signal })) return { child, port }
    await end(child)
    if (options.signal.aborted) throw interrupted()
    if (performance.now() > deadline || !/could not bind|already in use/.test(tail(log))) {
      throw failed('PostgreSQL did not start', `its log, ${log}, ends with: ${tail(log).split('\n').at(-1)}`)
    }
    port = await freePort()
  }
}

function spawnServer({ bin, data, root, user, options }: Launch, port: number, logFile: string): ChildProcess {
  const settings = {
    ...{ listen_addresses: '127.0.0.1', unix_socket_directories: '', max_connections: 100 },
    ...{ 'oncebox.dev': options.token },
  }
  const given = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const words = [programOf(bin, 'postgres'), '-D', data, '-p', String(port), ...given]
  const log = openSync(logFile, 'w')
  // A group of its own: Ctrl-C is for us, and we stop it in turn.
  const how = { cwd: root, detached: true, stdio: ['ignore', log, log] as ['ignore', number, number] }
  const { uid, gid } = user
  const become = uid === undefined ? [] : [`--reuid=${uid}`, `--regid=${gid}`, '--clear-groups']
  const child = existsSync('/usr/bin/setpriv')
    ? spawn('/usr/bin/setpriv', [...become, '--pdeathsig', 'SIGQUIT', ...words], how)
    : spawn(words[0]!, words.slice(1), { ...how, ...user })
  closeSync(log)
  child.unref()
  // A failed spawn shows as a child without a pid.
  child.on('error', () => undefined)
  return child
}

interface Starting {
  readonly child: ChildProcess
  readonly data: string
  readonly deadline: number
  readonly signal: AbortSignal
}

/** The server says so in the last line of its pid file. */
async function isReady({ child, data, deadline, signal }: Starting): Promise<boolean> {
  while (isRunning(child) && performance.now() < deadline && !signal.aborted) {
    try {
      const [pid, , , , , , , status] = readFileSync(path.join(data, 'postmaster.pid'), 'utf8').split('\n')
      if (Number(pid) === child.pid && status?.trim() === 'ready') return true
    } catch {
      // Not there yet.
    }
    await sleep(25)
  }
  return false
}

function isRunning(child: ChildProcess): boolean {
  return child.pid !== undefined && child.exitCode === null && child.signalCode === null
}

/** Its sessions are cut, and what they had committed is safe. */
async function end(child: ChildProcess): Promise<void> {
  if (!isRunning(child)) return
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  child.kill('SIGINT')
  const impatience = setTimeout(() => child.kill('SIGQUIT'), STOP_MS)
  await exited
  clearTimeout(impatience)
}

async function freePort(wanted?: number): Promise<number> {
  const tried = await listenOn(wanted ?? 0)
  return tried ?? (await listenOn(0))!
}

function listenOn(port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(undefined))
    server.listen(port, '127.0.0.1', () => {
      const { port: got } = server.address() as { port: number }
      server.close(() => resolve(got))
    })
  })
}

function tail(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim().slice(-2_000)
  } catch {
    return ''
  }
}
