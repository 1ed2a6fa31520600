/**
 * Versions of clients beside the one in package.json, and a newer Node.js for those that need one: installed by npm when a
 * test asks for them, and kept under node_modules/.cache.
 */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const CACHE = fileURLToPath(new URL('../../node_modules/.cache/oncebox-clients', import.meta.url))

/** Packages are imported from the directory that they are in. */
const LOADER = 'export const load = (name) => import(name)\n'

/** A directory in which these packages, such as `typeorm@0.3.31`, are installed. */
export async function installed(...packages: readonly [string, ...string[]]): Promise<string> {
  const directory = path.join(CACHE, packages.join('+').replaceAll('/', '-'))
  if (existsSync(directory)) return directory
  await mkdir(CACHE, { recursive: true })
  // Test files run side by side: whoever is first puts it in place.
  const draft = await mkdtemp(path.join(CACHE, '.draft-'))
  try {
    await writeFile(path.join(draft, 'package.json'), JSON.stringify({ private: true, type: 'module' }))
    await writeFile(path.join(draft, 'load.mjs'), LOADER)
    await npmInstall(draft, packages)
    await rename(draft, directory).catch((error: unknown) => {
      if (!existsSync(directory)) throw error
    })
  } finally {
    await rm(draft, { recursive: true, force: true })
  }
  return directory
}

async function npmInstall(directory: string, packages: readonly string[]): Promise<void> {
  // Some download what no test needs; Node.js itself comes by its script.
  const scripts = packages.some((name) => name.startsWith('node@')) ? [] : ['--ignore-scripts']
  const args = ['install', ...scripts, '--no-audit', '--no-fund', '--prefix', directory, ...packages]
  await promisify(execFile)('npm', args, { cwd: directory, timeout: 300_000 }).catch((error: { stderr?: string }) => {
    throw new Error(`could not install ${packages.join(' ')}; try: npm ${args.join(' ')}\n${error.stderr ?? ''}`)
  })
}

/** The program of a Node.js that has all that clients ask for. */
export async function newerNode(): Promise<string> {
  return path.join(await installed('node@24'), 'node_modules/node/bin/node')
}
