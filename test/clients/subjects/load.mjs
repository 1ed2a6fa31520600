/** Imports packages from a directory that versions.ts has filled, or those of package.json. */
import path from 'node:path'
import { pathToFileURL } from 'node:url'

export async function loader(from) {
  if (from === undefined) return (name) => import(name)
  const { load } = await import(pathToFileURL(path.join(from, 'load.mjs')).href)
  return load
}
