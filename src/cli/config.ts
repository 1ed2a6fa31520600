/** Finds `oncebox.config.*` and loads it. What is wrong with it is said with its file and its line. */
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { hintAt } from '../nearest.js'
import type { Config, ConfiguredBox } from '../config.js'
import { failed, misused, type Exit } from './exit.js'
import { faultOf, lineOf } from './fault.js'
import { readTypeScript } from './typescript.js'

export type { Config } from '../config.js'

const NAMES = ['ts', 'mts', 'js', 'mjs', 'cjs'].map((extension) => `oncebox.config.${extension}`)
const EXPORT = /export default|module\.exports/
const FIELDS = ['box', 'url', 'schema', 'example']

export interface LoadedConfig {
  readonly file: string
  readonly config: Config
}

/** The file that is asked for, or the one in this directory or the nearest above it; undefined without any. */
export function findConfig(cwd: string, asked?: string): string | undefined {
  if (asked !== undefined) {
    const file = path.resolve(cwd, asked)
    if (!existsSync(file)) throw misused(`there is no ${file}`, 'oncebox init writes a config')
    return file
  }
  for (let directory = path.resolve(cwd); ; directory = path.dirname(directory)) {
    const found = NAMES.map((name) => path.join(directory, name)).filter((file) => existsSync(file))
    if (found.length > 1) {
      const names = found.map((file) => path.basename(file)).join(' and ')
      throw misused(`there are ${names} in ${directory}`, 'remove one, or name one with --config')
    }
    if (found[0] !== undefined) return found[0]
    // Above the root of a repository is another project.
    if (existsSync(path.join(directory, '.git')) || path.dirname(directory) === directory) return undefined
  }
}

/** Undefined if there is none and none was asked for. */
export async function loadConfig(cwd: string, asked?: string): Promise<Config | undefined> {
  const file = findConfig(cwd, asked)
  return file === undefined ? undefined : loadFile(file)
}

/** For commands that cannot do without. */
export async function requireConfig(cwd: string, asked?: string): Promise<LoadedConfig> {
  const file = findConfig(cwd, asked)
  if (file !== undefined) return { file, config: await loadFile(file) }
  const advice = 'oncebox init writes one; --config names one that is elsewhere'
  throw misused('there is no oncebox.config.ts, .mts, .js, .mjs or .cjs here, nor above', advice)
}

/** The box of a config, which its function may have to make first. */
export async function boxOf({ file, config }: LoadedConfig): Promise<ConfiguredBox> {
  const { box: given } = config
  if (given === undefined)
    throw failed(`${file} has no box`, 'export default defineConfig({ box }): what createBox answers')
  if (typeof given !== 'function') return given
  let box: ConfiguredBox
  try {
    box = await given()
  } catch (error) {
    const { cannotConnect, isAway } = await import('./connect/problem.js')
    throw isAway(error) ? cannotConnect(error, 'the database of the config’s box') : broken(file, error)
  }
  if (!isBox(box)) throw failed(`${file}: the function box answers no box`, 'let it answer what createBox does')
  return box
}

async function loadFile(file: string): Promise<Config> {
  if (/\.[cm]?ts$/.test(file)) await readTypeScript(file)
  return checked(file, await importConfig(file))
}

async function importConfig(file: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    return (await import(pathToFileURL(file).href)) as Readonly<Record<string, unknown>>
  } catch (error) {
    throw broken(file, error)
  }
}

/** What the user's code threw, with where it did. */
export function broken(file: string, error: unknown): Exit {
  const { where, what, missing } = faultOf(error, file)
  const advice = missing === undefined ? undefined : `npm install ${missing}, or correct the name`
  return failed(`${where} cannot be loaded: ${what}`, isInstalled(file, missing) ? undefined : advice)
}

function isInstalled(file: string, name: string | undefined): boolean {
  if (name === undefined) return false
  try {
    createRequire(file).resolve(name)
    return true
  } catch {
    return false
  }
}

function checked(file: string, module: Readonly<Record<string, unknown>>): Config {
  const config = unwrapped(module)
  const text = readFileSync(file, 'utf8')
  const at = (...patterns: RegExp[]): string => {
    const lines = [...patterns, EXPORT].map((pattern) => lineOf(text, pattern))
    return `${file}:${lines.find((line) => line !== undefined) ?? 1}`
  }
  const advice = 'export default defineConfig({ box }), with defineConfig of oncebox/config'
  if (config === undefined) throw failed(`${at()} has no default export`, advice)
  if (typeof config !== 'object' || config === null || Array.isArray(config)) {
    throw failed(`${at()}: the default export is no config`, advice)
  }
  for (const name of Object.keys(config)) {
    if (FIELDS.includes(name)) continue
    const hint = hintAt(name, FIELDS, `it takes ${FIELDS.join(', ')}`)
    throw failed(`${at(new RegExp(`\\b${escaped(name)}\\b`))}: a config has no field ${JSON.stringify(name)}`, hint)
  }
  const { box, url, schema, example } = config as Partial<Config>
  const problem =
    box !== undefined && typeof box !== 'function' && !isBox(box)
      ? (['box', 'is no box and no function', 'give it what createBox answers, or a function that does'] as const)
      : url !== undefined && typeof url !== 'string' && typeof url !== 'function'
        ? (['url', 'is no connection string and no function', 'such as process.env.DATABASE_URL'] as const)
        : schema !== undefined && typeof schema !== 'string'
          ? (['schema', 'is no name', 'leave it out for the schema oncebox'] as const)
          : example !== undefined && typeof example !== 'function'
            ? (['example', 'is no function', 'give it one that answers a message'] as const)
            : undefined
  if (problem) {
    const [field, what, hint] = problem
    throw failed(`${at(new RegExp(`\\b${field}\\b\\s*[:,(}]`))}: ${field} ${what}`, hint)
  }
  return config
}

/** A module of CommonJS is the default export itself, and its transpiled `default` is inside of it. */
function unwrapped({ default: found }: Readonly<Record<string, unknown>>): unknown {
  const inner = found as { readonly __esModule?: boolean; readonly default?: unknown } | undefined
  return inner?.__esModule ? inner.default : found
}

export function isBox(value: unknown): value is object {
  const methods = ['start', 'stop', 'migrate', 'receive'] as const
  return methods.every((name) => typeof (value as Record<string, unknown> | null)?.[name] === 'function')
}

function escaped(text: string): string {
  return text.replace(/[^\w]/g, '\\$&')
}
