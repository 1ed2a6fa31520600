/**
 * Packages that are no devDependencies: installed when a test asks for them, once, under node_modules/.cache. A test that
 * cannot have them fails with the command to run.
 */
import { execFile } from 'node:child_process'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const CACHE = fileURLToPath(new URL('../../node_modules/.cache/', import.meta.url))
const run = promisify(execFile)

export interface Installed {
  readonly directory: string
  readonly require: NodeJS.Require
}

/** `packages` are exact: `koa@3.2.1`, or `express4@npm:express@4.22.3`. Their scripts run only if they cannot do without. */
export async function installed(
  name: string,
  packages: readonly string[],
  { scripts = false, timeoutMs = 170_000 }: { readonly scripts?: boolean; readonly timeoutMs?: number } = {},
): Promise<Installed> {
  const directory = path.join(CACHE, `oncebox-${name}`)
  const marker = path.join(directory, 'installed.json')
  const wanted = JSON.stringify(packages)
  const isThere = async (): Promise<boolean> => (await readFile(marker, 'utf8').catch(() => '')) === wanted
  if (!(await isThere())) {
    // Whole or not at all: a test that is killed must not leave a half behind.
    const fresh = `${directory}-${process.pid}`
    await mkdir(fresh, { recursive: true })
    await writeFile(path.join(fresh, 'package.json'), '{ "private": true }')
    const quiet = ['--no-audit', '--no-fund', ...(scripts ? [] : ['--ignore-scripts'])]
    const args = ['install', ...quiet, '--save-exact', ...packages]
    try {
      await run('npm', args, { cwd: fresh, timeout: timeoutMs, maxBuffer: 64 << 20 })
      await writeFile(path.join(fresh, 'installed.json'), wanted)
      // Test files run side by side: what another has put in place meanwhile is in use.
      if (await isThere()) await rm(fresh, { recursive: true, force: true })
      else {
        await rm(directory, { recursive: true, force: true })
        await rename(fresh, directory)
      }
    } catch (error) {
      await rm(fresh, { recursive: true, force: true })
      const again = `npm ${args.join(' ')}`
      throw new Error(`this test needs packages that could not be installed; try in an empty folder: ${again}`, {
        cause: error,
      })
    }
  }
  return { directory, require: createRequire(path.join(directory, 'package.json')) }
}
