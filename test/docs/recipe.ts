/** Runs a block of a page as it stands, with its port exchanged for a free one. */
import ts from 'typescript'
import * as http from 'oncebox/http'
import * as webhooks from 'oncebox/webhook'
import { freePort } from '../support/postgres.js'
import { blocksOf, readPage } from './markdown.js'

const OURS: Readonly<Record<string, unknown>> = { 'oncebox/http': http, 'oncebox/webhook': webhooks }

export interface Running {
  readonly url: string
  /** What the block declares. */
  readonly values: Readonly<Record<string, unknown>>
  [Symbol.asyncDispose](): Promise<void>
}

export interface Given {
  /** What the block uses without declaring it. */
  readonly values?: Readonly<Record<string, unknown>>
  /** Packages that are not where the tests are. */
  readonly modules?: Readonly<Record<string, unknown>>
  /** Changes the block before it runs. */
  readonly edit?: (text: string) => string
}

/** The blocks of a page that have a title. */
export function recipesOf(page: string): ReadonlyMap<string, string> {
  return new Map(blocksOf(readPage(page)).flatMap(({ title, text }) => (title ? [[title, text]] : [])))
}

export async function runRecipe(block: string, { values = {}, modules = {}, edit = String }: Given): Promise<Running> {
  const port = await freePort()
  const text = edit(block)
    .replace('3000', String(port))
    .replace('export default', 'const byDefault =')
    .replaceAll(/^export /gm, '')
  const { outputText } = ts.transpileModule(text, {
    compilerOptions: {
      module: ts.ModuleKind.CommonJS,
      target: ts.ScriptTarget.ES2022,
      esModuleInterop: true,
      experimentalDecorators: true,
    },
  })
  const names = [...text.matchAll(/^const (\w+) =/gm)].map(([, name]) => name!)
  const loaded = new Map<string, unknown>()
  for (const [, name = ''] of text.matchAll(/^import (?:.* from )?'([^']+)'/gm)) {
    const found = (modules[name] ?? OURS[name] ?? (await import(name))) as object
    // Of a package in CommonJS the default is all of it.
    const whole = typeof found === 'function' ? { default: found } : found
    loaded.set(name, { __esModule: true, ...('default' in whole ? {} : { default: whole }), ...whole })
  }
  const all = { ...values, exports: {}, require: (name: string) => loaded.get(name) }
  const AsyncFunction = (async () => undefined).constructor as FunctionConstructor
  const body = `${outputText}\nreturn { ${names.join(', ')} }`
  const run = AsyncFunction(...Object.keys(all), body) as (...values: unknown[]) => Promise<Record<string, unknown>>
  const declared = await run(...Object.values(all))
  return {
    url: `http://localhost:${port}/hook`,
    values: declared,
    [Symbol.asyncDispose]: () => close(declared['server']),
  }
}

/** Of Node.js, Fastify and Nest: the first takes a callback, the others answer with a promise. */
async function close(server: unknown): Promise<void> {
  if (server === undefined) return
  const { closeAllConnections } = server as { closeAllConnections?(): void }
  closeAllConnections?.call(server)
  await new Promise<void>((resolve, reject) => {
    const closing: unknown = (server as { close(done: () => void): unknown }).close(() => resolve())
    if (closing instanceof Promise) closing.then(() => resolve(), reject)
  })
}
