/** A pseudo-terminal, by `script` of util-linux, which every Linux has. */
import { spawn } from 'node:child_process'
import { afterAll } from 'vitest'
import { waitUntil } from '../support/wait.js'

export interface Terminal {
  /** Everything that was shown so far. */
  readonly shown: string
  readonly exited: Promise<number>
  /** Types it: `\x03` is Ctrl-C. */
  type(text: string): void
  waitFor(what: RegExp): Promise<void>
}

const running = new Set<ReturnType<typeof spawn>>()
afterAll(() => {
  for (const child of running) child.kill('SIGKILL')
})

export interface TerminalOptions {
  readonly env?: Record<string, string>
  readonly cwd?: string
  readonly columns?: number
}

/** Runs a program with these words on a terminal of its own. */
export function openTerminal(words: readonly string[], options: TerminalOptions = {}): Terminal {
  const { env = {}, cwd, columns = 100 } = options
  const line = `stty cols ${columns} rows 30; exec ${words.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ')}`
  const { CI: _, NO_COLOR: __, FORCE_COLOR: ___, DATABASE_URL: ____, ...rest } = process.env
  const child = spawn('script', ['--quiet', '--return', '--command', line, '/dev/null'], {
    env: { ...rest, TERM: 'xterm', NODE_OPTIONS: '', ...env },
    ...{ cwd, stdio: ['pipe', 'pipe', 'pipe'] },
  })
  running.add(child)
  let shown = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (shown += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (shown += text))
  child.stdin.on('error', () => undefined)
  let ended: number | undefined
  const exited = new Promise<number>((resolve, reject) => {
    child.once('error', () => reject(new Error('this test needs `script`: apt-get install bsdutils')))
    child.once('close', (code) => {
      running.delete(child)
      resolve((ended = code ?? -1))
    })
  })
  return {
    get shown() {
      return shown
    },
    exited,
    type: (text) => void child.stdin.write(text),
    async waitFor(what) {
      await waitUntil(() => what.test(shown) || ended !== undefined, { what: `${what} on the terminal` })
      if (!what.test(shown)) throw new Error(`it ended with ${ended} without ${what}: ${shown}`)
    },
  }
}
