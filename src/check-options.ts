/** Checks options once, where they are resolved: an unknown or ill-typed one is an error that says what was meant. */
import { OnceboxError } from './errors.js'
import { hintAt } from './nearest.js'

export function checkKnown(where: string, given: object, known: readonly string[]): void {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new OnceboxError('OPTION_INVALID', `${where}: options must be an object; got ${show(given)}`)
  }
  for (const name of Object.keys(given)) {
    if (known.includes(name)) continue
    const hint = hintAt(name, known, `it takes ${known.join(', ')}`)
    throw new OnceboxError('OPTION_INVALID', `${where} has no option ${JSON.stringify(name)}; ${hint}`)
  }
}

export function checkInteger(where: string, value: number, min: number, max = Number.MAX_SAFE_INTEGER): number {
  if (!Number.isInteger(value) || value < min || value > max) {
    throw new OnceboxError(
      'OPTION_INVALID',
      `${where} must be a whole number from ${min} to ${max}; got ${show(value)}`,
    )
  }
  return value
}

export function checkNumber(where: string, value: number, min: number): number {
  if (typeof value !== 'number' || !(value >= min) || value === Infinity) {
    throw new OnceboxError('OPTION_INVALID', `${where} must be a number of at least ${min}; got ${show(value)}`)
  }
  return value
}

export function checkOneOf<const T extends string>(where: string, value: T, allowed: readonly T[]): T {
  if (!allowed.includes(value)) {
    throw new OnceboxError('OPTION_INVALID', `${where} must be one of ${allowed.join(', ')}; got ${show(value)}`)
  }
  return value
}

/** A function that has to be there. */
export function requireFunction(where: string, value: unknown): void {
  if (typeof value === 'function') return
  throw new OnceboxError('OPTION_INVALID', `${where} must be a function; got ${show(value)}`)
}

/** A vocabulary: without this, an entry that is no schema would fail when the first message of its type arrives. */
export function checkMessages(where: string, messages: object): void {
  if (typeof messages !== 'object' || messages === null || Array.isArray(messages)) {
    throw new OnceboxError('OPTION_INVALID', `${where} must be an object, type name → schema; got ${show(messages)}`)
  }
  for (const [type, schema] of Object.entries(messages) as [string, { '~standard'?: { validate?: unknown } }?][]) {
    const problem = nameProblem(type)
    if (problem) throw new OnceboxError('OPTION_INVALID', `${where}: the type ${JSON.stringify(type)} ${problem}`)
    if (typeof schema?.['~standard']?.validate === 'function') continue
    const advice = 'take one of zod (3.24 or later), valibot or arktype, or unchecked<T>()'
    throw new OnceboxError('OPTION_INVALID', `${where}: ${type} has no Standard Schema; ${advice}`)
  }
}

/** Of a type that the vocabulary of the box does not have. */
export function typeUnknown(where: string, type: string, known: readonly string[]): OnceboxError {
  const hint = hintAt(type, known, 'add it to defineMessages')
  return new OnceboxError('MESSAGE_TYPE_UNKNOWN', `${where}: there is no message type ${JSON.stringify(type)}; ${hint}`)
}

/** A list of types, each one that the vocabulary has, if there is one. `all` says how to have all of them. */
export function checkTypes(
  where: string,
  given: readonly string[],
  known: readonly string[],
  all: string,
): readonly string[] {
  if (!Array.isArray(given) || given.length === 0) {
    throw new OnceboxError('OPTION_INVALID', `${where}: types must be a list of message types; for all of them, ${all}`)
  }
  for (const type of given as readonly string[]) {
    const problem = nameProblem(type)
    if (problem) throw new OnceboxError('OPTION_INVALID', `${where}: a type ${problem}`)
    if (known.includes(type)) continue
    if (type.includes('*')) throw patternRefused(where, type, `for all of them, ${all}`)
    if (known.length > 0) throw typeUnknown(where, type, known)
  }
  return [...new Set(given as readonly string[])]
}

/** A pattern would be the name of a type that nobody sends. */
export function patternRefused(where: string, type: string, advice: string): OnceboxError {
  const problem = `types are whole names, and ${JSON.stringify(type)} is a pattern; ${advice}`
  return new OnceboxError('OPTION_INVALID', `${where}: ${problem}`)
}

/** Names that end up in keys: consumers, and what a message carries. */
export function nameProblem(value: unknown, maxBytes = 512): string | undefined {
  if (typeof value !== 'string') return `must be a string, not ${value === null ? 'null' : typeof value}`
  if (value === '') return 'must not be empty'
  // A code unit takes three bytes at most, so most names need not be counted.
  if (value.length * 3 > maxBytes && Buffer.byteLength(value) > maxBytes)
    return `must be at most ${maxBytes} bytes of UTF-8`
  if (value.includes('\0')) return 'must not contain NUL'
  if (!value.isWellFormed()) return 'must be well-formed Unicode (it has a lone surrogate)'
  return undefined
}

/** What was given, as far as it can be shown. */
export function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value)
  if (typeof value !== 'object' || value === null) return String(value)
  // An object may not even have a toString.
  return Array.isArray(value) ? 'an array' : 'an object'
}

/** Without one, the driver would use a connection of its own, and what was meant to be atomic would not be. */
export function requireTransaction(what: string, tx: unknown): void {
  if (tx !== undefined && tx !== null && typeof tx !== 'string' && !Array.isArray(tx)) return
  throw new OnceboxError(
    'TRANSACTION_REQUIRED',
    `${what} needs your transaction as its first argument; got ${show(tx)}`,
  )
}
