/** Versions of clients beside the one in package.json, and a newer Node.js for those that need one. */
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { installed as installedAs } from '../support/installed.js'

/** Packages are imported from the directory that they are in. */
const LOADER = 'export const load = (name) => import(name)\n'

/** A directory in which these packages, such as `typeorm@0.3.31`, are installed. */
export async function installed(...packages: readonly [string, ...string[]]): Promise<string> {
  const name = `client-${packages.join('+').replaceAll('/', '-')}`
  // Node.js itself comes by its script; others download by theirs what no test needs.
  const scripts = packages.some((one) => one.startsWith('node@'))
  const { directory } = await installedAs(name, packages, { scripts })
  await writeFile(path.join(directory, 'load.mjs'), LOADER)
  return directory
}

/** The program of a Node.js that has all that clients ask for. */
export async function newerNode(): Promise<string> {
  return path.join(await installed('node@24'), 'node_modules/node/bin/node')
}
