/**
 * Packages that are no devDependencies: installed when a test or a benchmark asks for them, once, under node_modules/.cache.
 * Who cannot have them is told the command to run.
 */
import { execFile } from 'node:child_process'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const CACHE = fileURLToPath(new URL('../node_modules/.cache/', import.meta.url))
const run = promisify(execFile)

/** Packages are imported from the directory that they are in. */
const LOADER = 'export const load = (name) => import(name)\n'

export async function installed(name, packages, { scripts = false, timeoutMs = 170_000 } = {}) {
  const directory = path.join(CACHE, `oncebox-${name}`)
  const marker = path.join(directory, 'installed.json')
  const wanted = JSON.stringify(packages)
  const isThere = async () => (await readFile(marker, 'utf8').catch(() => '')) === wanted
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
      throw new Error(`packages are needed that could not be installed; try in an empty folder: ${again}`, {
        cause: error,
      })
    }
  }
  return { directory, require: createRequire(path.join(directory, 'package.json')) }
}

export async function installedClient(...packages) {
  const name = `client-${packages.join('+').replaceAll('/', '-')}`
  // Node.js itself comes by its script; others download by theirs what no test needs.
  const scripts = packages.some((one) => one.startsWith('node@'))
  const { directory } = await installed(name, packages, { scripts })
  await writeFile(path.join(directory, 'load.mjs'), LOADER)
  return directory
}
