/**
 * Fingerprints: what failures have in common. Of the words of an error, what varies from one message to the next is replaced, and
 * what is left, with the error's name and code and those of its innermost cause, is hashed. Every pattern reads its input once.
 */
import { hash } from 'node:crypto'
import type { Failure } from './message.js'

export interface Words {
  readonly name: string | null
  readonly code: string | null
  readonly message: string | null
  /** Name and code of the innermost cause, as JSON; null if there is none. */
  readonly cause?: string | null
}

/** As UNMARKED cuts it, so that both see the same words. */
const MOST = 500

const VARYING: readonly (readonly [RegExp, string])[] = [
  // What V8 says of a property: a name as programs have it tells one error from another. Digits may be an id.
  [/\((reading|setting) '([a-z_$]{1,64})'\)/gi, '($1 $2)'],
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, '‹id›'],
  [/[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,8}/g, '‹text›'],
  [/"[^"\n]{0,400}"/g, '"‹text›"'],
  [/'[^'\n]{0,400}'/g, "'‹text›'"],
  [/`[^`\n]{0,400}`/g, '`‹text›`'],
  // An id: letters, digits, dashes and underscores, with a digit among them.
  [/\b(?=[\w-]{6,128}\b)(?=[a-z_-]{0,64}\d)(?=\d{0,64}[a-z_])[\w-]+/gi, '‹id›'],
  [/\d+(?:[.,]\d+)*/g, '‹n›'],
]

/** Constraint names, tables and columns are quoted in double quotes by PostgreSQL, and tell one error from another. */
const OF_THE_SERVER = /^[0-9A-Z]{5}$/

export function commonWords({ code, message }: Words): string {
  const keepsNames = code !== null && OF_THE_SERVER.test(code)
  return VARYING.reduce(
    (text, [pattern, by]) => (keepsNames && by === '"‹text›"' ? text : text.replace(pattern, by)),
    cut(message, MOST) ?? '',
  )
}

export function fingerprintOf(words: Words): string {
  const { name, code, cause } = words
  const inner = typeof cause === 'string' ? (JSON.parse(cause) as unknown[]) : []
  const common = JSON.stringify([name ?? '', code ?? '', commonWords(words), ...inner])
  return hash('sha256', common, 'hex').slice(0, 12)
}

/** Of a failure as it is about to be stored. */
export function fingerprintOfFailure({ name, code, message, cause }: Failure): string {
  const words = { name: cut(name, 200), code: cut(code, 100), message: cut(message, MOST) }
  return fingerprintOf({ ...words, cause: cause ? innermost(cause) : null })
}

function innermost(failure: Failure): string {
  if (failure.cause) return innermost(failure.cause)
  return JSON.stringify([cut(failure.name, 200), cut(failure.code, 100)])
}

/** By characters of Unicode, as PostgreSQL's left() counts them. */
function cut(text: unknown, most: number): string | null {
  if (typeof text !== 'string') return null
  return text.length <= most ? text : [...text].slice(0, most).join('')
}
