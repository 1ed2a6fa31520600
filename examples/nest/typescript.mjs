/** Compiles the files of src/ when Node loads them. An app of yours has a build step, and needs none of this. */
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

const SOURCE = new URL('./src/', import.meta.url).href

/** @type {import('node:module').ResolveHook} */
export async function resolve(specifier, context, next) {
  const isOurs = specifier.startsWith('./') && context.parentURL?.startsWith(SOURCE)
  return next(isOurs ? specifier.replace(/\.js$/, '.ts') : specifier, context)
}

/** @type {import('node:module').LoadHook} */
export async function load(url, context, next) {
  if (!url.startsWith(SOURCE)) return next(url, context)
  const compilerOptions = {
    module: ts.ModuleKind.ESNext,
    target: ts.ScriptTarget.ES2022,
    experimentalDecorators: true,
    emitDecoratorMetadata: true,
  }
  const { outputText } = ts.transpileModule(await readFile(fileURLToPath(url), 'utf8'), { compilerOptions })
  return { format: 'module', source: outputText, shortCircuit: true }
}
