/**
 * Keeps the user's box running: a process of its own, which is replaced when a file changes. One that crashes is not
 * started again before that: it would crash again.
 */
import { fork, type ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { ChildOptions, FromChild, ToChild } from './protocol.js'

const CHILD = fileURLToPath(new URL('./child.js', import.meta.url))
/** What it takes to stop a box, and some. */
const STOP_MS = 10_000

export interface Runner {
  start(): void
  restart(): Promise<void>
  example(): void
  stop(): Promise<void>
}

export interface RunnerOptions {
  readonly cwd: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** Asked anew for each process. */
  options(): ChildOptions
  said(what: FromChild): void
  /** It ended by itself. */
  crashed(how: string): void
}

export function createRunner(given: RunnerOptions): Runner {
  let child: ChildProcess | undefined
  /** One after the other: changes may come faster than processes end. */
  let turn = Promise.resolve()

  const start = (): void => {
    // `execArgv` of this process may have a debugger's port.
    const { cwd, env } = given
    const own = fork(CHILD, [JSON.stringify(given.options())], {
      ...{ cwd, env, execArgv: [] },
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    child = own
    own.on('message', (what: FromChild) => {
      if (child === own) given.said(what)
    })
    own.on('error', () => undefined)
    own.on('exit', (code, signal) => {
      if (child !== own) return
      child = undefined
      given.crashed(signal ?? `exit code ${code}`)
    })
  }
  const end = async (): Promise<void> => {
    const own = child
    child = undefined
    if (!own || own.exitCode !== null || own.signalCode !== null) return
    const exited = new Promise<void>((resolve) => own.once('exit', () => resolve()))
    say(own, { kind: 'stop' })
    const impatience = setTimeout(() => own.kill('SIGKILL'), STOP_MS)
    await exited
    clearTimeout(impatience)
  }
  process.once('exit', () => child?.kill('SIGKILL'))
  return {
    start,
    restart() {
      turn = turn.then(end).then(start)
      return turn
    },
    example() {
      if (child) say(child, { kind: 'example' })
    },
    stop() {
      turn = turn.then(end)
      return turn
    },
  }
}

function say(child: ChildProcess, what: ToChild): void {
  // One that is about to end needs not be told.
  if (child.connected) child.send(what, () => undefined)
}
