/**
 * Child processes for the tests that kill them. A child is a plain `.mjs` file that imports the built `oncebox`; it
 * reports events as JSON lines and takes commands over IPC (child.mjs has both ends). Each child is ended by its pid when
 * the test file ends, when the test process exits, and, on Linux, by the kernel when the test process is killed.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll } from 'vitest'

export { waitUntil, type WaitOptions } from './wait.js'

export interface ChildEvent {
  event: string
  [field: string]: unknown
}

export interface ChildOptions {
  args?: string[]
  /** Added to the environment of the test process. */
  env?: Record<string, string>
  /** Node's own options, such as `--max-old-space-size=200`. */
  execArgv?: string[]
  /** What runs it instead of this Node.js, such as Bun. */
  program?: string
}

export interface ChildExit {
  code: number | null
  signal: NodeJS.Signals | null
}

export interface Child {
  readonly pid: number
  /** Everything it has reported, in order. */
  readonly events: readonly ChildEvent[]
  /** What it wrote to stderr, and what it wrote to stdout that is not an event. */
  readonly output: string
  readonly exited: Promise<ChildExit>
  /** Sends a command; `command(name)` in child.mjs waits for it. */
  send(command: string, fields?: Record<string, unknown>): void
  /** The next event of that name that no earlier call was given. Rejects when the child ends without it. */
  next(event: string, options?: { timeoutMs?: number }): Promise<ChildEvent>
  /** Default SIGKILL. For a signal that ends it, resolves when it has ended; SIGSTOP and SIGCONT are only sent. */
  kill(signal?: NodeJS.Signals): Promise<void>
}

const running = new Set<ChildProcess>()

afterAll(endChildren)
process.once('exit', endChildren)

/** Starts `node file …args`. Give the file as `new URL('./child.mjs', import.meta.url)`. */
export function spawnChild(file: string | URL, options: ChildOptions = {}): Child {
  const script = file instanceof URL ? fileURLToPath(file) : file
  const node = [options.program ?? process.execPath, ...(options.execArgv ?? []), script, ...(options.args ?? [])]
  const [program = '', ...args] = [...dieWithParent(), ...node]
  const process_ = spawn(program, args, {
    env: { ...process.env, NODE_OPTIONS: '', ...options.env },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  running.add(process_)

  const events: ChildEvent[] = []
  const unclaimed: ChildEvent[] = []
  const waiting = new Set<() => void>()
  let output = ''
  let exit: ChildExit | undefined

  const report = (event: ChildEvent) => {
    events.push(event)
    unclaimed.push(event)
    for (const check of [...waiting]) check()
  }
  createInterface({ input: process_.stdout! }).on('line', (line) => {
    const event = parseEvent(line)
    if (event) report(event)
    else output += `${line}\n`
  })
  process_.stderr!.setEncoding('utf8').on('data', (text: string) => (output += text))
  process_.on('message', (message) => {
    if (isEvent(message)) report(message)
  })
  // Sending to a child that has just been killed is what these tests do.
  process_.on('error', () => {})

  // 'close' comes after the last byte of its output, 'exit' may come before it.
  const exited = new Promise<ChildExit>((resolve) => {
    process_.once('close', (code, signal) => {
      running.delete(process_)
      exit = { code, signal }
      resolve(exit)
      for (const check of [...waiting]) check()
    })
  })

  return {
    pid: process_.pid ?? -1,
    events,
    get output() {
      return output
    },
    exited,
    send(command, fields = {}) {
      process_.send({ command, ...fields }, () => {})
    },
    next(name, { timeoutMs = 90_000 } = {}) {
      return new Promise((resolve, reject) => {
        const finish = (settle: () => void) => {
          waiting.delete(check)
          clearTimeout(timer)
          settle()
        }
        const fail = (why: string) =>
          finish(() => reject(new Error(`${script} ${why} before it reported '${name}'\n${output.slice(-4_000)}`)))
        const check = () => {
          const index = unclaimed.findIndex(({ event }) => event === name)
          const [found] = index < 0 ? [] : unclaimed.splice(index, 1)
          if (found) finish(() => resolve(found))
          else if (exit) fail(`ended (${exit.signal ?? exit.code})`)
        }
        const timer = setTimeout(() => fail(`ran for ${timeoutMs} ms`), timeoutMs)
        waiting.add(check)
        check()
      })
    },
    async kill(signal = 'SIGKILL') {
      process_.kill(signal)
      if (signal === 'SIGSTOP' || signal === 'SIGCONT') return
      await exited
    },
  }
}

function endChildren(): void {
  for (const child of running) child.kill('SIGKILL')
}

function dieWithParent(): string[] {
  return existsSync('/usr/bin/setpriv') ? ['/usr/bin/setpriv', '--pdeathsig', 'SIGKILL'] : []
}

function parseEvent(line: string): ChildEvent | undefined {
  if (!line.startsWith('{')) return undefined
  try {
    const value: unknown = JSON.parse(line)
    return isEvent(value) ? value : undefined
  } catch {
    return undefined
  }
}

function isEvent(value: unknown): value is ChildEvent {
  return typeof value === 'object' && value !== null && 'event' in value && typeof value.event === 'string'
}
