/** Turns whatever was thrown into a record that can be stored: truncated, free of what PostgreSQL refuses. */
import type { Failure } from './message.js'
import { keptOf, quotesValue, replacements, ROWS, stackOf } from './refused-values.js'

const MAX_MESSAGE = 4_000
const MAX_STACK = 8_000
const MAX_CAUSES = 5
const MAX_SEARCHED = 1_000
/** Of an error that sums up others: so many are told, and so deep. */
const MAX_PARTS = 10
const MAX_SUMS = 2

export function toFailure(error: unknown, depth = 0): Failure {
  try {
    if (!isErrorLike(error)) return { name: 'NonError', message: clip(describe(error), MAX_MESSAGE) }
    const message = plainMessage(error)
    const failure: { -readonly [K in keyof Failure]: Failure[K] } = {
      name: clip(String(error.name || 'Error'), 200),
      message: clip(message, MAX_MESSAGE),
    }
    const stack = plainStack(error, message)
    if (stack !== undefined) failure.stack = clip(stack, MAX_STACK)
    const code = (error as { code?: unknown }).code
    if (typeof code === 'string' || typeof code === 'number') failure.code = clip(String(code), 100)
    const cause = causeOf(error)
    if (cause !== undefined && depth < MAX_CAUSES) failure.cause = toFailure(cause, depth + 1)
    return failure
  } catch {
    return { name: 'NonError', message: 'something was thrown that could not be read' }
  }
}

/** Where values are hidden, only where it was thrown: libraries change messages later, and append stacks of others. */
function plainStack(error: Error, message: string): string | undefined {
  const stack = stackOf(error)
  const said = String(error.message)
  if (stack === undefined || (said === message && !everyCause(error).some(hasValues))) return stack
  const from = stack.indexOf(said) + 1
  const frames = stack.slice(from && from + said.length - 1).match(/^ +at .+$/gm) ?? []
  return [`${String(error.name)}: ${message}`, ...frames].join('\n')
}

/** The error itself and what caused it, outermost first. */
export function* causes(error: unknown): Generator<unknown> {
  for (let depth = 0; error !== undefined && error !== null && depth <= MAX_CAUSES; depth++) {
    yield error
    error = causeOf(error)
  }
}

/** Where clients that do not say `cause` keep the error that they wrap: TypeORM, Sequelize. */
const WRAPPED = ['driverError', 'parent', 'original'] as const

/** The error that this one wraps. */
function causeOf(error: unknown): unknown {
  const wrapper = error as { readonly cause?: unknown } & { readonly [K in (typeof WRAPPED)[number]]?: unknown }
  if (wrapper.cause !== undefined || !(error instanceof Error)) return wrapper.cause
  return WRAPPED.map((name) => wrapper[name]).find((inner) => inner instanceof Error)
}

/** The same, however deep, with the parts of an AggregateError: any of them may be in the words of those around it. */
export function everyCause(error: unknown): unknown[] {
  const found = new Set<unknown>([error])
  for (const one of found) {
    // A chain may have no end; what is that deep is not told either.
    if (found.size > MAX_SEARCHED) break
    if (typeof one !== 'object' || one === null) continue
    const { errors } = one as { readonly errors?: unknown }
    for (const inner of [causeOf(one), ...(Array.isArray(errors) ? (errors as unknown[]) : [])]) found.add(inner)
  }
  return [...found]
}

/** True if it holds of the error or of one of its causes: clients and ORMs wrap what the server has said. */
export function someCause(error: unknown, holds: (cause: unknown) => boolean): boolean {
  for (const cause of causes(error)) if (holds(cause)) return true
  return false
}

/** Fields of an error that may hold values: PostgreSQL's own, and those of clients. */
const VALUES = [
  ...['detail', 'where', 'internalQuery', 'hint', 'query', 'parameters', 'params', 'args', 'values', 'types', 'meta'],
  ...['sql', 'bindings'],
]

function hasValues(error: unknown): boolean {
  return typeof error === 'object' && error !== null && (VALUES.some((name) => name in error) || quotesValue(error))
}

/**
 * The error as it may leave through hooks: of the server's words only those that name no value. What has none is itself;
 * of another there is a copy, for the code that threw it may need the rest. Of its causes it has as many as are recorded.
 */
export function withoutValues(error: Error, depth = 0): Error {
  const message = plainMessage(error)
  const hidesNothing = error.message === '' || message === error.message
  if (hidesNothing && !everyCause(error).some(hasValues)) return error
  const copy = Object.create(Object.getPrototypeOf(error) as object) as Error
  for (const name of Object.getOwnPropertyNames(error)) {
    if (VALUES.includes(name) || INNER.includes(name)) continue
    Object.defineProperty(copy, name, Object.getOwnPropertyDescriptor(error, name)!)
  }
  const define = (name: string, value: unknown): void =>
    void Object.defineProperty(copy, name, { value, writable: true, configurable: true })
  define('message', message)
  define('stack', plainStack(error, message))
  const cause = causeOf(error)
  if (cause instanceof Error && depth < MAX_CAUSES) define('cause', withoutValues(cause, depth + 1))
  return copy
}

/** Where errors keep others, or what they were made of. */
const INNER: readonly string[] = ['cause', 'errors', 'previous', ...WRAPPED]

/** The message without values of rows, for records, hooks and logs. */
function plainMessage(error: { readonly message: string }, depth = 0): string {
  const said = String(error.message) || wordsOfParts(error, depth)
  const chain = everyCause(error)
  let text = said
  for (const [words, plain] of chain.flatMap(replacements)) text = text.replaceAll(words, () => plain)
  text = ORMS.reduce((rest, values) => rest.replace(values, keptOf), text)
  // It says it in words of its own, and may quote.
  return text === said && !quotesValue(error) && chain.some(quotesValue) ? text.replace(/: ?["«»„“‹「].*$/s, '') : text
}

/** Node sums up what has failed, such as a try for each address of a host, in an error that says nothing itself. */
function wordsOfParts(error: object, depth: number): string {
  const { errors, code } = error as { readonly errors?: unknown; readonly code?: unknown }
  const parts = Array.isArray(errors) && depth < MAX_SUMS ? (errors as unknown[]).slice(0, MAX_PARTS) : []
  const words = new Set(parts.filter(isErrorLike).map((part) => plainMessage(part, depth + 1)))
  words.delete('')
  return words.size === 0 && typeof code === 'string' ? code : [...words].join('; ')
}

/** The same, with what caused it, where that says more: an ORM may say that a query failed, and no word of why. */
export function plainWords(error: unknown): string {
  return wordsOf(toFailure(error))
}

/** The words of what is recorded, which are plain. */
export function wordsOf({ message, cause }: Failure): string {
  const inner = cause ? wordsOf(cause) : ''
  if (message === '') return inner
  return message.includes(inner) ? message : `${message}: ${inner}`
}

/** Messages of ORMs that tell the values of a row. What is kept of each are its groups, of which it has one or two. */
const ORMS = [
  // Drizzle
  /^(Failed query: .*?)\nparams: .*$/s,
  // Prisma: the arguments of a call that it refuses, and what PostgreSQL quotes (class 22).
  /^(\s*Invalid `[^`\n]+` invocation)[^\n]*\n\n\{.*\}(\n\n[^\n]+)$/s,
  /((?:Raw query failed|Database error)\. Code: `22[0-9A-Z]{3}`)\. Message: .*$/s,
  /^(\s*Invalid `[^`\n]+` invocation.*\n(?:Value out of range for the type|Invalid input value)): .*$/s,
  // The detail of PostgreSQL, which MikroORM and Prisma put into their messages.
  ...ROWS,
]

function isErrorLike(value: unknown): value is Error {
  return typeof value === 'object' && value !== null && 'message' in value
}

/** By its kind: what is no error may be the message itself, or a part of it. */
function describe(value: unknown): string {
  if (typeof value === 'string') return value
  if (value === undefined || value === null) return String(value)
  if (typeof value !== 'object') return `something was thrown that is no error: a ${typeof value}`
  const name = (value as { constructor?: { name?: unknown } }).constructor?.name
  const kind = typeof name === 'string' && name !== '' && name !== 'Object' ? ` of class ${name}` : ''
  return `something was thrown that is no error: an object${kind}`
}

/** Cutting may split a pair, so it comes first. */
function clip(text: string, max: number): string {
  const cut = text.length > max ? `${text.slice(0, max)}… (${text.length - max} more characters)` : text
  return storableText(cut)
}

/** PostgreSQL's text takes neither NUL nor lone surrogates. */
export function storableText(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\uFFFD')
}

/** The same with escapes for whatever is not ASCII. */
export function inAscii({ cause, ...texts }: Failure): Failure {
  const escaped = Object.entries(texts).map(([name, text]) => [name, escapeWide(text)])
  return { ...(Object.fromEntries(escaped) as unknown as Failure), ...(cause && { cause: inAscii(cause) }) }
}

function escapeWide(text: string): string {
  return text.replace(/[^\0-\x7F]/gu, (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`)
}
