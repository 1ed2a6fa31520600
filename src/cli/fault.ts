/** What went wrong in a user's file, and in which line: of what a loader, a parser or the file itself has thrown. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

export interface Fault {
  /** `oncebox.config.ts:12`, with its directory. */
  readonly where: string
  readonly what: string
  /** The package that could not be found. */
  readonly missing: string | undefined
}

/** `file` is what was being loaded: the answer if the error names no place of the project. */
export function faultOf(error: unknown, file: string): Fault {
  const { message, stack, code } = described(error)
  const sought = soughtIn(message, code)
  const place =
    sought === undefined ? (placeIn(stack) ?? placeOfSyntax(error, file)) : placeOfImport(message, file, sought)
  return { where: place ?? file, what: firstLine(message), missing: packageOf(sought) }
}

/** The number of the first line that has it. */
export function lineOf(text: string, pattern: RegExp): number | undefined {
  const at = text.split('\n').findIndex((line) => pattern.test(line))
  return at < 0 ? undefined : at + 1
}

interface Described {
  readonly message: string
  readonly stack: string
  readonly code: string | undefined
}

function described(error: unknown): Described {
  if (!(error instanceof Error)) return { message: String(error), stack: '', code: undefined }
  const { message, stack = '' } = error
  // A parser says the place of a syntax error before the stack, which tsx and Node.js keep here.
  return { message, stack, code: (error as NodeJS.ErrnoException).code }
}

/** The first place that is no package's and not Node's: `file:///a/b.ts:3:7`, `/a/b.ts:3`. */
function placeIn(stack: string): string | undefined {
  for (const [, found = '', line] of stack.matchAll(PLACE)) {
    const file = pathOf(found)
    if (!found.includes('node_modules') && !isOurs(file)) return `${file}:${line}`
  }
  return undefined
}

const PLACE = /(?:^|[\s(])((?:file:\/\/)?\/[^\s():]+|[A-Za-z]:\\[^\s():]+):(\d+)/gm

function pathOf(found: string): string {
  const [bare = found] = found.split('?')
  return bare.startsWith('file://') ? fileURLToPath(bare) : bare
}

/** This package's own files, where it is not in a node_modules: a checkout. */
function isOurs(file: string): boolean {
  return /[\\/](dist|src)[\\/]cli[\\/][\w\\/-]+\.[jt]s$/.test(file)
}

/** Node.js prints the line of a syntax error, and does not say it to the program. */
function placeOfSyntax(error: unknown, file: string): string | undefined {
  if (!(error instanceof SyntaxError)) return undefined
  const { stderr } = spawnSync(process.execPath, ['--check', file], { encoding: 'utf8', timeout: 10_000 })
  return placeIn(stderr ?? '')
}

/** What was to be imported and is not there. */
function soughtIn(message: string, code: string | undefined): string | undefined {
  if (code !== 'ERR_MODULE_NOT_FOUND' && code !== 'MODULE_NOT_FOUND') return undefined
  return /Cannot find (?:package|module) '([^']+)'/.exec(message)?.[1]
}

function packageOf(sought: string | undefined): string | undefined {
  if (sought === undefined || sought.startsWith('.') || path.isAbsolute(sought)) return undefined
  const [scope = '', second] = sought.split('/')
  return scope.startsWith('@') ? `${scope}/${second}` : scope
}

/** Loaders name the importing file, and not the line. */
function placeOfImport(message: string, file: string, sought: string): string | undefined {
  const [, from = file] = /imported from (\S+)/.exec(message) ?? []
  const importing = pathOf(from)
  const written = packageOf(sought) ?? path.basename(sought).replace(/\.\w+$/, '')
  try {
    const line = lineOf(readFileSync(importing, 'utf8'), new RegExp(`['"/]${written.replace(/[^\w]/g, '\\$&')}`))
    return line === undefined ? importing : `${importing}:${line}`
  } catch {
    return undefined
  }
}

function firstLine(message: string): string {
  const lines = message.split('\n').map((line) => line.trim())
  // esbuild says "Transform failed with 1 error:", and in the next line which.
  const [first = 'it failed, and did not say why', second] = lines
  return first.startsWith('Transform failed') && second ? second.replace(/^.*?: ERROR: /, '') : first
}
