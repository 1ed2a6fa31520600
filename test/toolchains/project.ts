/**
 * A project as a user has it, in a temporary directory: the packed package unpacked into its node_modules, the clients that
 * this repository has, and a toolchain, which is installed when it is first asked for.
 */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { installed } from '../support/installed.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const INSTALL_MS = 600_000
const RUN_MS = 240_000
const run = promisify(execFile)

/** What users of the package have besides, from this repository. */
const CLIENTS = ['@electric-sql', '@types', 'pg', 'postgres', 'undici-types', 'vitest']

export interface Project {
  readonly directory: string
  /** Runs Node.js, or another program, in the project, and answers what was printed. */
  run(args: readonly string[], options?: RunOptions): Promise<Ran>
  write(files: Record<string, string>): Promise<void>
  close(): Promise<void>
}

export interface RunOptions {
  readonly program?: string
  readonly env?: Record<string, string>
}

export interface Ran {
  readonly code: number
  readonly output: string
}

export type Packages = Readonly<Record<string, string>>

/** Packs what `npm run build` has built. Answers with the path of the tarball. */
export async function pack(): Promise<string> {
  if (!existsSync(path.join(ROOT, 'dist/cjs/index.js')))
    throw new Error('there is no dist to pack: run `npm run build`')
  const directory = await mkdtemp(path.join(tmpdir(), 'oncebox-packed-'))
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', directory]
  const { stdout } = await run('npm', args, { cwd: ROOT, timeout: INSTALL_MS, maxBuffer: 64 << 20 })
  const [{ filename }] = JSON.parse(stdout) as [{ filename: string }]
  return path.join(directory, filename)
}

export async function openProject(tarball: string, packages: Packages): Promise<Project> {
  const directory = await mkdtemp(path.join(tmpdir(), 'oncebox-toolchain-'))
  const modules = path.join(directory, 'node_modules')
  await mkdir(path.join(modules, 'oncebox'), { recursive: true })
  await run('tar', ['-xzf', tarball, '-C', path.join(modules, 'oncebox'), '--strip-components=1'])
  for (const name of CLIENTS) await symlink(path.join(ROOT, 'node_modules', name), path.join(modules, name))
  if (Object.keys(packages).length > 0) await linkAll(await modulesOf(packages), modules)
  return {
    directory,
    async run(args, { program = process.execPath, env = {} } = {}) {
      const options = { cwd: directory, timeout: RUN_MS, maxBuffer: 64 << 20, env: { ...process.env, ...env } }
      return run(program, [...args], options).then(
        ({ stdout, stderr }) => ({ code: 0, output: stdout + stderr }),
        (error: { code?: number; stdout?: string; stderr?: string; message: string }) => ({
          code: error.code ?? 1,
          output: `${error.stdout ?? ''}${error.stderr ?? ''}` || error.message,
        }),
      )
    },
    async write(files) {
      for (const [name, text] of Object.entries(files)) await writeFile(path.join(directory, name), text)
    },
    close: () => rm(directory, { recursive: true, force: true }),
  }
}

/** The node_modules of these packages. */
async function modulesOf(packages: Packages): Promise<string> {
  const names = Object.entries(packages).map(([name, version]) => `${name}@${version}`)
  // Only the package `node` needs its script: it fetches the binary.
  const options = { scripts: 'node' in packages, timeoutMs: INSTALL_MS }
  const { directory } = await installed(`toolchain-${names[0]!.replaceAll(/[^\w.@-]+/g, '_')}`, names, options)
  return path.join(directory, 'node_modules')
}

async function linkAll(from: string, to: string): Promise<void> {
  for (const name of await readdir(from)) {
    if (name.startsWith('.') || existsSync(path.join(to, name))) continue
    await symlink(path.join(from, name), path.join(to, name))
  }
}
