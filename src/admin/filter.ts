/** Checks a filter: a criterion that is misspelt or undefined would otherwise match everything. */
import { show } from '../check-options.js'
import { hintAt } from '../nearest.js'
import { OnceboxError } from '../errors.js'
import { isOnCalendar } from '../figures.js'
import { QUARANTINE_REASONS, type State } from '../message.js'
import type { FoundRow } from '../postgres/sql/walk.js'
import type { Filter } from './types.js'

/** A checked filter, in the form that the statements of search.ts take; `data` is judged in JavaScript. */
export interface CheckedFilter {
  readonly box: 'inbox' | 'outbox'
  readonly consumer: string | undefined
  readonly source: string | undefined
  readonly key: string | undefined
  readonly reason: string | undefined
  readonly error: string | undefined
  readonly fingerprints: readonly string[] | undefined
  readonly blocking: true | undefined
  readonly states: readonly State[] | undefined
  readonly type: readonly string[] | undefined
  readonly ids: readonly string[] | undefined
  readonly before: string | undefined
  readonly after: string | undefined
  readonly data: Readonly<Record<string, unknown>> | undefined
  /** Only messages that were as they are at this time. No criterion of a person’s. */
  readonly asOf?: string
  /** What no statement can judge. */
  readonly judge?: Judge
}

/** A criterion that is judged here, among the rows that the others select. */
export interface Judge {
  /** It looks at bodies: they have to be read. */
  readonly bodies: boolean
  fits(row: FoundRow): boolean
}

/** Whether it judges bodies, which have to be read for that. */
export function looksIntoBodies({ data, judge }: CheckedFilter): boolean {
  return data !== undefined || judge?.bodies === true
}

export const STATES: readonly State[] = ['pending', 'processing', 'handled', 'dead', 'quarantined', 'discarded']

const CRITERIA = [
  'box', 'consumer', 'state', 'type', 'key', 'id', 'source', 'reason', 'error', 'fingerprint', 'blocking', 'before',
  'after', 'data',
] // prettier-ignore

const INBOX_ONLY = ['fingerprint', 'blocking']
const MAX_IDS = 1_000

export function checkFilter(filter: Filter | undefined): CheckedFilter {
  const given: unknown = filter ?? {}
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw invalid(`a filter must be an object such as { state: 'dead' }; got ${show(given)}`)
  }
  const criteria = given as Record<string, unknown>
  checkCriteria(criteria, CRITERIA)
  for (const [name, value] of Object.entries(criteria)) {
    if (value === undefined || value === null) {
      throw invalid(`filter: ${name} is ${show(value)}, which would match everything; leave it out, or give it a value`)
    }
  }
  const states = list(criteria, 'state', (state) => oneOf('state', state, STATES))
  for (const name of INBOX_ONLY) {
    if (criteria['box'] !== 'outbox' || criteria[name] === undefined) continue
    throw invalid(`filter: ${name} is of messages, and there are none in the outbox; leave it out`)
  }
  return {
    box: criteria['box'] === undefined ? 'inbox' : oneOf('box', criteria['box'], ['inbox', 'outbox']),
    consumer: text(criteria, 'consumer'),
    source: text(criteria, 'source'),
    key: text(criteria, 'key'),
    reason: criteria['reason'] === undefined ? undefined : oneOf('reason', criteria['reason'], QUARANTINE_REASONS),
    error: part(criteria, 'error'),
    fingerprints: list(criteria, 'fingerprint', fingerprint),
    blocking: isTrue(criteria, 'blocking'),
    states,
    type: list(criteria, 'type', (type) => storable('type', type)),
    ids: list(criteria, 'id', (id) => storable('id', id)),
    before: time(criteria, 'before'),
    after: time(criteria, 'after'),
    data: data(criteria['data']),
  }
}

export function checkCriteria(criteria: object, known: readonly string[]): void {
  const unknown = Object.keys(criteria).find((name) => !known.includes(name))
  if (unknown !== undefined) throw unknownWord('a filter has no criterion', unknown, known)
}

/** For those that change messages: everything must be asked for by name. */
export function checkSelection(verb: string, filter: Filter | 'all'): CheckedFilter {
  if (filter === 'all') return checkFilter({})
  if (typeof filter !== 'object' || filter === null || Object.keys(filter).length === 0) {
    throw invalid(`${verb} needs at least one criterion; to take everything, say ${verb}('all')`)
  }
  return checkFilter(filter)
}

function text(criteria: Record<string, unknown>, name: string): string | undefined {
  return criteria[name] === undefined ? undefined : storable(name, criteria[name])
}

/** A text that others have in them: the empty one is in all of them. */
function part(criteria: Record<string, unknown>, name: string): string | undefined {
  const value = text(criteria, name)
  if (value !== '') return value
  throw invalid(`filter: ${name} is empty, which would match everything; leave it out, or give it a value`)
}

/** Twelve hexadecimal digits: another text is no fingerprint of anything. */
function fingerprint(value: unknown): string {
  const given = storable('fingerprint', value)
  if (/^[0-9a-f]{12}$/.test(given)) return given
  const problem = 'must be that of a group of failures, with all 12 hexadecimal digits, such as 9f3a61c2b04d'
  throw invalid(`filter: fingerprint ${problem}; got ${show(value)}`)
}

function isTrue(criteria: Record<string, unknown>, name: string): true | undefined {
  if (criteria[name] === undefined || criteria[name] === true) return criteria[name]
  throw invalid(`filter: ${name} can only be true; leave it out for all messages. Got ${show(criteria[name])}`)
}

function storable(name: string, value: unknown): string {
  if (typeof value !== 'string') throw invalid(`filter: ${name} must be a string; got ${show(value)}`)
  if (value.includes('\0') || !value.isWellFormed()) {
    throw invalid(`filter: ${name} has NUL or a lone surrogate, which nothing stored has`)
  }
  return value
}

function list<T>(criteria: Record<string, unknown>, name: string, check: (value: unknown) => T): T[] | undefined {
  const value = criteria[name]
  if (value === undefined) return undefined
  if (!Array.isArray(value)) return [check(value)]
  if (value.length > MAX_IDS) throw invalid(`filter: ${name} takes at most ${MAX_IDS} values; got ${value.length}`)
  // Named twice, it would be looked for twice, and found twice.
  return [...new Set(value.map(check))]
}

function oneOf<const T extends string>(name: string, value: unknown, allowed: readonly T[]): T {
  if (typeof value === 'string' && (allowed as readonly string[]).includes(value)) return value as T
  if (typeof value === 'string') throw unknownWord(`filter: ${name} cannot be`, value, allowed)
  throw invalid(`filter: ${name} must be one of ${allowed.join(', ')}; got ${show(value)}`)
}

function time(criteria: Record<string, unknown>, name: string): string | undefined {
  const value = criteria[name]
  if (value === undefined) return undefined
  if (isOnCalendar(value)) return value.toISOString()
  throw invalid(`filter: ${name} must be a valid Date; got ${show(value)}`)
}

function data(value: unknown): Readonly<Record<string, unknown>> | undefined {
  if (value === undefined) return undefined
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalid(`filter: data must be an object that the message's data contains; got ${show(value)}`)
  }
  if (Object.keys(value).length === 0)
    throw invalid('filter: data is empty, which would match everything; leave it out')
  refuseVague(value, 'data', 0)
  try {
    return JSON.parse(JSON.stringify(value)) as Record<string, unknown>
  } catch (error) {
    throw invalid('filter: data cannot be written as JSON', error)
  }
}

/** What would match more than it says: undefined, and numbers that JavaScript has rounded or that JSON does not have. */
function refuseVague(value: unknown, path: string, depth: number): void {
  if (value === undefined) throw invalid(`filter: ${path} is undefined; leave it out, or give it a value`)
  if (typeof value === 'number' && !(Number.isInteger(value) ? Number.isSafeInteger(value) : Number.isFinite(value))) {
    const advice = 'which JavaScript cannot tell from its neighbours; leave it out, and look at what is found'
    throw invalid(`filter: ${path} is ${value}, ${advice}`)
  }
  if (typeof value !== 'object' || value === null || value instanceof Date || depth > 100) return
  for (const [name, inner] of Object.entries(value)) refuseVague(inner, `${path}.${name}`, depth + 1)
}

function unknownWord(what: string, word: string, known: readonly string[]): OnceboxError {
  return invalid(`${what} ${JSON.stringify(word)}; ${hintAt(word, known, `it takes ${known.join(', ')}`)}`)
}

function invalid(message: string, cause?: unknown): OnceboxError {
  return new OnceboxError('FILTER_INVALID', message, cause === undefined ? undefined : { cause })
}
