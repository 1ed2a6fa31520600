/** Versions of clients beside the one in package.json, and a newer Node.js for those that need one. */
import path from 'node:path'
import { installedClient as installed } from '../../tools/installed.mjs'

export { installed }

/** The program of a Node.js that has all that clients ask for. */
export async function newerNode(): Promise<string> {
  return path.join(await installed('node@24'), 'node_modules/node/bin/node')
}
