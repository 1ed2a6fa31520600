/**
 * Makes this process read TypeScript: with the project's own `tsx`, which knows all of the language, else with what
 * Node.js has, which takes the types away and nothing else.
 */
import * as nodeModule from 'node:module'
import { existsSync } from 'node:fs'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { failed } from './exit.js'

interface Tsx {
  register(): unknown
}

/** Of the program: there is one copy of it in a process. */
const program: { ready?: Promise<void> } = {}

/** Once for the process. Throws what to do if there is no way. */
export function readTypeScript(file: string): Promise<void> {
  return (program.ready ??= begin(file))
}

async function begin(file: string): Promise<void> {
  const { resolve } = nodeModule.createRequire(file)
  const found = (name: string): string | undefined => {
    try {
      return resolve(name)
    } catch {
      return undefined
    }
  }
  const [forRequire, forImport] = [found('tsx/cjs/api'), found('tsx/esm/api')]
  if (forImport !== undefined && forRequire !== undefined) {
    for (const api of [forRequire, forImport]) ((await import(pathToFileURL(asImported(api)).href)) as Tsx).register()
    return
  }
  if (!stripsTypes()) {
    throw failed(
      `Node.js ${process.version} cannot read ${file}`,
      'do one of: npm install --save-dev tsx; run it with Node.js 22.18 or later; name it oncebox.config.mjs and write JavaScript',
    )
  }
  resolveAsCompilersDo()
}

/** The file was found as `require` would, and its other format is beside it. */
function asImported(file: string): string {
  const other = file.replace(/\.cjs$/, '.mjs')
  return existsSync(other) ? other : file
}

export function stripsTypes(): boolean {
  return Boolean((process.features as { readonly typescript?: unknown }).typescript)
}

interface Resolved {
  readonly url: string
}
type Resolve = (specifier: string, context: { readonly parentURL?: string }, next: Next) => Resolved
type Next = (specifier: string, context: object) => Resolved

/** Compilers have `./messages.js` mean `messages.ts`, and Node.js does not. */
function resolveAsCompilersDo(): void {
  const { registerHooks } = nodeModule as { registerHooks?: (hooks: { resolve: Resolve }) => unknown }
  registerHooks?.({
    resolve(specifier, context, next) {
      const source = /^\.{1,2}\/.*\.[cm]?js$/.test(specifier) ? specifier.replace(/js$/, 'ts') : undefined
      if (source === undefined || context.parentURL === undefined || !context.parentURL.startsWith('file:')) {
        return next(specifier, context)
      }
      const isThere = (name: string): boolean => existsSync(fileURLToPath(new URL(name, context.parentURL)))
      return next(!isThere(specifier) && isThere(source) ? source : specifier, context)
    },
  })
}
