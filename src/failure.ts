/** Turns whatever was thrown into a record that can be stored: truncated, free of what PostgreSQL refuses. */
import { inspect } from 'node:util'
import type { Failure } from './message.js'

const MAX_MESSAGE = 4_000
const MAX_STACK = 8_000
const MAX_CAUSES = 5

export function toFailure(error: unknown, depth = 0): Failure {
  try {
    if (!isErrorLike(error)) return { name: 'NonError', message: clip(describe(error), MAX_MESSAGE) }
    const said = String(error.message)
    const message = plainMessage(error)
    const failure: { -readonly [K in keyof Failure]: Failure[K] } = {
      name: clip(String(error.name || 'Error'), 200),
      message: clip(message, MAX_MESSAGE),
    }
    const stack = stackOf(error)
    if (stack !== undefined) failure.stack = clip(said === message ? stack : stack.replaceAll(said, message), MAX_STACK)
    const code = (error as { code?: unknown }).code
    if (typeof code === 'string' || typeof code === 'number') failure.code = clip(String(code), 100)
    const cause = causeOf(error)
    if (cause !== undefined && depth < MAX_CAUSES) failure.cause = toFailure(cause, depth + 1)
    return failure
  } catch {
    return { name: 'NonError', message: 'something was thrown that could not be read' }
  }
}

/** The stack is written when it is first read, and that may fail where the name is no string. */
function stackOf(error: Error): string | undefined {
  try {
    return typeof error.stack === 'string' ? error.stack : undefined
  } catch {
    return undefined
  }
}

/** Handlers may throw anything: what cannot even be looked at is replaced, before everybody down the line looks. */
export function readable(error: unknown): unknown {
  try {
    for (const cause of causes(error)) void [cause instanceof Error, (cause as { code?: unknown }).code]
    return error
  } catch {
    return new Error('something was thrown that could not be read')
  }
}

/** What was thrown, in words for the log, whatever it is. */
export function wordsOf(error: unknown): string {
  try {
    return error instanceof Error ? String(error.message) : String(error)
  } catch {
    return 'something was thrown that could not be read'
  }
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

/**
 * The error as it may leave through hooks: of the server's words only those that name no value. What has none is itself;
 * of another there is a copy, for whoever threw it may need the rest.
 */
export function withoutValues(error: Error, depth = 0): Error {
  const { cause } = error
  const inner = cause instanceof Error && depth < MAX_CAUSES ? withoutValues(cause, depth + 1) : cause
  const message = plainMessage(error)
  const hasValues = VALUES.some((name) => name in error) || message !== error.message
  if (!hasValues && inner === cause) return error
  const copy = Object.create(Object.getPrototypeOf(error) as object) as Error
  for (const name of Object.getOwnPropertyNames(error)) {
    if (VALUES.includes(name) || name === 'cause') continue
    Object.defineProperty(copy, name, Object.getOwnPropertyDescriptor(error, name)!)
  }
  const define = (name: string, value: unknown): void =>
    void Object.defineProperty(copy, name, { value, writable: true, configurable: true })
  if (message !== error.message) {
    define('message', message)
    define('stack', stackOf(error)?.replaceAll(error.message, message))
  }
  if (cause !== undefined) define('cause', inner)
  return copy
}

/** The message without values of rows, for records, hooks and logs. PostgreSQL quotes one that does not fit: class 22. */
export function plainMessage(error: { readonly message: string }): string {
  const text = withoutRows(String(error.message))
  const quotes = someCause(error, (cause) => /^22[0-9A-Z]{3}$/.test(String((cause as { code?: unknown }).code)))
  return quotes ? text.replace(/: ".*$/s, '') : text
}

/** The same, with what caused it, where that says more: an ORM may say that a query failed, and no word of why. */
export function plainWords(error: { readonly message: string }): string {
  const words = plainMessage(error)
  const cause = causeOf(error)
  if (!isErrorLike(cause)) return words
  const inner = plainWords(cause)
  return words.includes(inner) ? words : `${words}: ${inner}`
}

/** Messages that tell the values of a row. What is kept of each are its groups, of which it has one or two. */
const ROWS = [
  // Drizzle
  /^(Failed query: .*?)\nparams: .*$/s,
  // Prisma: the arguments of a call that it refuses, and what PostgreSQL quotes (class 22).
  /^(\s*Invalid `[^`\n]+` invocation)[^\n]*\n\n\{.*\}(\n\n[^\n]+)$/s,
  /((?:Raw query failed|Database error)\. Code: `22[0-9A-Z]{3}`)\. Message: .*$/s,
  /^(\s*Invalid `[^`\n]+` invocation.*\n(?:Value out of range for the type|Invalid input value)): .*$/s,
  // The detail of PostgreSQL, which MikroORM and Prisma put into their messages.
  /(Key \([^)]*\))=\(.*?\)( already exists| is not present| is still referenced| conflicts)/s,
  /(Failing row contains) \(.*\)/s,
]

function withoutRows(message: string): string {
  return ROWS.reduce((text, values) => text.replace(values, keptOf), message)
}

function keptOf(_: string, first: string, second: unknown): string {
  return typeof second === 'string' ? first + second : first
}

function isErrorLike(value: unknown): value is Error {
  return typeof value === 'object' && value !== null && 'message' in value
}

function describe(value: unknown): string {
  return typeof value === 'string' ? value : inspect(value, { depth: 2, maxStringLength: 1_000, maxArrayLength: 20 })
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
