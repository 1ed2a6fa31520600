/**
 * Services as processes: in a temporary directory, ended by their id, gone when we are. Types are in process.d.mts.
 */
import { spawn } from 'node:child_process'
import { closeSync, existsSync, openSync, rmSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { removeAbandonedDirectories, tail } from '../directories.mjs'
import { dropTo } from '../users.mjs'

const DIRECTORY_PREFIX = 'oncebox-service-'
const START_TIMEOUT_MS = 120_000
const STOP_TIMEOUT_MS = 20_000

/** Somebody else's: named by the environment, and not ours to end. */
export function givenService({ name, variable, version, url }) {
  const refuse = async () => {
    throw new Error(`${name} is the one that ${variable} names, and not ours to kill; unset ${variable} for this test`)
  }
  return {
    name,
    variable,
    kind: 'given',
    version,
    url,
    stop: async () => {},
    kill: refuse,
    resume: refuse,
    restart: refuse,
  }
}

/**
 * A private service. `launch` starts its process and resolves when it answers; it is called again by `resume`, on the
 * same directory.
 */
export async function startService({ name, variable, kind, version, url, launch, prepare, dispose }) {
  await removeAbandonedDirectories(DIRECTORY_PREFIX)
  const directory = await mkdtemp(path.join(tmpdir(), `${DIRECTORY_PREFIX}${process.pid}-`))
  let daemon

  // A run that ends without its teardown (an exception, process.exit) must leave nothing behind either.
  const removeNow = () => {
    daemon?.killNow()
    rmSync(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 })
  }
  process.once('exit', removeNow)

  const stop = async () => {
    process.off('exit', removeNow)
    await daemon?.end('SIGKILL')
    await dispose?.()
    await rm(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
  }
  const resume = async () => {
    if (daemon?.running) return
    daemon = await launch(directory)
  }
  try {
    await prepare?.(directory)
    await resume()
  } catch (error) {
    await stop()
    throw error
  }
  return {
    name,
    variable,
    kind,
    version,
    url,
    directory,
    get pid() {
      return daemon.pid
    },
    stop,
    kill: () => daemon.end('SIGKILL'),
    resume,
    async restart() {
      await daemon.end('SIGTERM')
      await resume()
    },
    [Symbol.asyncDispose]: stop,
  }
}

/**
 * Starts a process and resolves when `ready` answers true. It leads a group of its own, so a Ctrl-C is ours to handle;
 * on Linux the kernel ends it with us, even when we are killed with -9.
 */
export async function startProcess({ command, args = [], env = {}, user = {}, directory, ready }) {
  const logFile = path.join(directory, 'log')
  const log = openSync(logFile, 'a')
  const hasSetpriv = existsSync('/usr/bin/setpriv')
  // The kernel forgets the wish when the user changes, so both are setpriv's to do, in this order.
  const dieWithParent = hasSetpriv ? ['/usr/bin/setpriv', ...dropTo(user), '--pdeathsig', 'SIGKILL'] : []
  const [program, ...rest] = [...dieWithParent, command, ...args]
  const child = spawn(program, rest, {
    cwd: directory,
    env: { ...process.env, ...env },
    detached: true,
    stdio: ['ignore', log, log],
    ...(hasSetpriv ? {} : user),
  })
  closeSync(log)
  child.unref()
  let failure
  child.on('error', (error) => (failure = error))

  const running = () => child.pid !== undefined && child.exitCode === null && child.signalCode === null
  const daemon = {
    pid: child.pid,
    get running() {
      return running()
    },
    killNow() {
      if (running()) killGroup(child.pid)
    },
    async end(signal) {
      if (!running()) return
      const exited = new Promise((resolve) => child.once('exit', resolve))
      const kill = () => killGroup(child.pid)
      if (signal === 'SIGKILL') kill()
      else child.kill(signal)
      const impatience = setTimeout(kill, STOP_TIMEOUT_MS)
      await exited
      clearTimeout(impatience)
    },
  }
  const deadline = Date.now() + START_TIMEOUT_MS
  while (running() && Date.now() < deadline) {
    if (await ready()) return daemon
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
  const why = failure?.message ?? (running() ? `no answer in ${START_TIMEOUT_MS} ms` : 'it ended')
  await daemon.end('SIGKILL')
  throw new Error(`${command} did not start: ${why}\n${await tail(logFile)}`)
}

/** For `ready`: something accepts connections there. */
export function accepts(port) {
  return new Promise((resolve) => {
    const socket = createConnection(port, '127.0.0.1')
    const settle = (answer) => {
      socket.destroy()
      resolve(answer)
    }
    socket.once('connect', () => settle(true)).once('error', () => settle(false))
  })
}

/** The whole of it: a server may have started processes of its own. */
function killGroup(pid) {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch (error) {
    if (error.code !== 'ESRCH') throw error
  }
}
