/** The config file of a project: `oncebox.config.ts`, `.js` or `.mjs`. */
import { existsSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { failed } from './exit.js'

export interface Config {
  /** A box, or a function that answers one. */
  readonly box?: object | (() => object | Promise<object>)
  readonly url?: string | (() => string | Promise<string>)
  readonly schema?: string
}

const NAMES = ['oncebox.config.js', 'oncebox.config.mjs']

/** What the file exports by default; undefined where there is none and none was asked for. */
export async function loadConfig(cwd: string, file?: string): Promise<Config | undefined> {
  const found = file ?? NAMES.find((name) => existsSync(path.join(cwd, name)))
  if (found === undefined) return undefined
  const full = path.resolve(cwd, found)
  if (!existsSync(full)) throw failed(`there is no config file ${found}`, 'check the path of --config')
  const module = (await import(pathToFileURL(full).href)) as { default?: Config }
  if (typeof module.default !== 'object')
    throw failed(`${found} has no default export`, 'export default defineConfig({ … })')
  return module.default
}
