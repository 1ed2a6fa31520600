/** A user's project in a directory of its own, and `oncebox` run in it as a process. */
import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll } from 'vitest'
import { waitUntil } from '../support/wait.js'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const MAIN = path.join(ROOT, 'dist/cli/main.js')

const running = new Set<ChildProcess>()
const endAll = (): void => {
  for (const child of running) child.kill('SIGKILL')
}
afterAll(endAll)
process.once('exit', endAll)

export interface Project extends AsyncDisposable {
  readonly directory: string
  write(files: Readonly<Record<string, string>>): Promise<void>
  read(file: string): Promise<string>
  has(file: string): boolean
  /** Starts `oncebox …args` there. */
  oncebox(args: readonly string[], env?: Readonly<Record<string, string>>): Command
  /** Starts any other program there. */
  program(words: readonly string[], env?: Readonly<Record<string, string>>): Command
}

export interface Command {
  readonly pid: number
  readonly stdout: string
  readonly stderr: string
  readonly exited: Promise<number | NodeJS.Signals | null>
  readonly stdin: NodeJS.WritableStream
  /** Waits until it has written this, and fails with what it wrote when it ends without. */
  saw(text: string | RegExp): Promise<void>
  kill(signal: NodeJS.Signals): void
}

/** `packages` are those of this repository that the project has installed; `oncebox` is always there. */
export async function openProject(
  files: Readonly<Record<string, string>>,
  { packages = ['pg'] }: { readonly packages?: readonly string[] } = {},
): Promise<Project> {
  const directory = await realpath(await mkdtemp(path.join(tmpdir(), 'oncebox-project-')))
  // PostgreSQL runs as another user where the tests are run by root, and must get there.
  await chmod(directory, 0o755)
  const modules = path.join(directory, 'node_modules')
  await mkdir(modules)
  await symlink(ROOT, path.join(modules, 'oncebox'))
  for (const name of packages) {
    await mkdir(path.dirname(path.join(modules, name)), { recursive: true })
    await symlink(path.join(ROOT, 'node_modules', name), path.join(modules, name))
  }
  const project: Project = {
    directory,
    async write(given) {
      for (const [name, text] of Object.entries(given)) {
        await mkdir(path.dirname(path.join(directory, name)), { recursive: true })
        await writeFile(path.join(directory, name), text)
      }
    },
    read: (file) => readFile(path.join(directory, file), 'utf8'),
    has: (file) => existsSync(path.join(directory, file)),
    oncebox: (args, env) => start([process.execPath, MAIN, ...args], directory, env),
    program: (words, env) => start(words, directory, env),
    async [Symbol.asyncDispose]() {
      await rm(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
    },
  }
  await project.write({ '.git/HEAD': '', 'package.json': '{ "type": "module" }', ...files })
  return project
}

/** What this process has of a database and of a terminal is not handed on. */
const OWN = ['DATABASE_URL', 'CI', 'NODE_OPTIONS', 'FORCE_COLOR', 'NODE_ENV', 'VITEST']

export function start(words: readonly string[], cwd: string, env: Readonly<Record<string, string>> = {}): Command {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !OWN.includes(name) && !/^(PG|VITEST|npm_)/.test(name),
  )
  const withParent = existsSync('/usr/bin/setpriv') ? ['/usr/bin/setpriv', '--pdeathsig', 'SIGKILL'] : []
  const [program = '', ...args] = [...withParent, ...words]
  const child = spawn(program, args, {
    cwd,
    env: { ...Object.fromEntries(inherited), NO_COLOR: '1', ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  running.add(child)
  let [stdout, stderr, ended] = ['', '', false]
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  child.stdin.on('error', () => undefined)
  const exited = new Promise<number | NodeJS.Signals | null>((resolve) => {
    child.once('error', () => resolve(null))
    child.once('close', (code, signal) => {
      ended = true
      running.delete(child)
      resolve(code ?? signal)
    })
  })
  return {
    pid: child.pid ?? -1,
    get stdout() {
      return stdout
    },
    get stderr() {
      return stderr
    },
    exited,
    stdin: child.stdin,
    async saw(wanted) {
      const has = (): boolean => [stdout, stderr].some((text) => (typeof wanted === 'string' ? text.includes(wanted) : wanted.test(text))) // prettier-ignore
      await waitUntil(() => has() || ended, { timeoutMs: 90_000, what: `${words.join(' ')} to write ${wanted}\n${stdout}\n${stderr}` }).catch(() => undefined) // prettier-ignore
      if (!has()) throw new Error(`${words.join(' ')} did not write ${wanted}:\n${stdout}\n${stderr}`)
    },
    kill: (signal) => void child.kill(signal),
  }
}
