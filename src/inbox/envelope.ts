/** Envelope: what a message says of itself, checked, apart from its body. */
import { nameProblem, show } from '../check-options.js'
import { nearest } from '../nearest.js'
import type { Incoming } from '../message.js'
import type { Origin, Runtime } from '../runtime.js'
import { withTrace, type Headers } from '../telemetry/headers.js'
import { laneOf } from './origin.js'

export interface Envelope {
  id: string | undefined
  idProblem: Problem | undefined
  source: string
  type: string
  key: string | undefined
  lane: string | undefined
  time: string | undefined
  rest: string | null
  problem: Problem | undefined
  /** What came in the place of names and is none: it tells one such message from the other. */
  unusable: readonly (readonly [name: string, value: unknown])[]
}

/** What is wrong with it, for who may see the message; and without anything that it has in it, for logs. */
export interface Problem {
  readonly detail: string
  readonly why: string
}

/** So much of an unusable name is shown. */
const MAX_SHOWN = 100

interface Arrived {
  readonly origin?: Origin | undefined
  /** The lane that it was given when it came, if it comes from the quarantine. */
  readonly lane?: string | undefined
  /** The trace that it arrives in. */
  readonly trace?: Headers | undefined
}

export function readEnvelope(incoming: Incoming, { origin, lane: given, trace }: Arrived): Envelope {
  const problems: Problem[] = []
  const unusable: [name: string, value: unknown][] = []
  const text = (name: 'source' | 'type' | 'key' | 'subject', required: boolean): string | undefined => {
    const value: unknown = incoming[name]
    if (value === undefined || value === null || (value === '' && !required)) {
      if (required) problems.push(plain(`${name} is missing`))
      return undefined
    }
    const problem = nameProblem(value)
    if (problem === undefined) return value as string
    problems.push({ detail: `${name} ${problem}${gotOf(value)}`, why: `${name} ${problem}` })
    unusable.push([name, value])
    return undefined
  }
  const type = text('type', true) ?? ''
  const source = text('source', false) ?? ''
  const key = text('key', false)
  const lane = key === undefined ? undefined : (given ?? laneOf(origin?.keys ?? 'shared', source, key))
  const subject = text('subject', false)
  const time = readTime(incoming.time, problems)
  const idProblem = readId(incoming.id, unusable)
  const own = readHeaders(incoming.headers, problems)
  // What has no id is told from others by its headers as they came.
  const headers = trace && !idProblem ? withTrace(own, trace) : own
  const isBare = subject === undefined && time === undefined && headers === undefined && lane === undefined
  return {
    id: idProblem ? undefined : incoming.id,
    idProblem,
    source,
    type,
    key,
    lane,
    time,
    rest: isBare ? null : JSON.stringify({ subject, time, headers, lane }),
    problem: problems.length ? joined(problems) : undefined,
    unusable,
  }
}

/** Why it is no id, if it is none. */
function readId(id: unknown, unusable: [name: string, value: unknown][]): Problem | undefined {
  if (id === undefined || id === null) return plain('id is missing')
  const problem = nameProblem(id)
  if (problem === undefined) return undefined
  if (id !== '') unusable.push(['id', id])
  return { detail: `id ${problem}${gotOf(id)}`, why: `id ${problem}` }
}

function plain(words: string): Problem {
  return { detail: words, why: words }
}

function joined(problems: readonly Problem[]): Problem {
  const whys = new Set(problems.map(({ why }) => why))
  return { detail: problems.map(({ detail }) => detail).join('; '), why: [...whys].join('; ') }
}

/** For people who look for the message where it came from. */
function gotOf(value: unknown): string {
  if (value === '') return ''
  const text = show(value)
  return `; got ${text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text}`
}

function readTime(time: unknown, problems: Problem[]): string | undefined {
  if (time === undefined || time === null) return undefined
  const date = time instanceof Date ? time : new Date(typeof time === 'string' ? inUtc(time) : NaN)
  const ms = date.getTime()
  // Beyond these years PostgreSQL and JavaScript disagree on how to write a date.
  if (Number.isNaN(ms) || ms < -62_135_596_800_000 || ms > 253_402_300_799_999) {
    problems.push(plain('time is not a date'))
    return undefined
  }
  return date.toISOString()
}

/** Without a zone JavaScript would take the process's own, and two receivers would disagree. */
function inUtc(time: string): string {
  return /T\d\d:\d\d(:\d\d(\.\d+)?)?$/.test(time) ? `${time}Z` : time
}

function readHeaders(headers: unknown, problems: Problem[]): Headers | undefined {
  if (headers === undefined || headers === null) return undefined
  if (typeof headers !== 'object') {
    problems.push(plain('headers must be an object of strings'))
    return undefined
  }
  const entries = Object.entries(headers as Record<string, unknown>)
  if (entries.length === 0) return undefined
  for (const [name, value] of entries) {
    if (typeof value !== 'string') {
      const detail = `header ${JSON.stringify(name.slice(0, 100))} must be a string`
      problems.push({ detail, why: 'a header must be a string' })
    } else if (!storable(name) || !storable(value)) problems.push(plain('a header has NUL or a lone surrogate'))
  }
  return problems.length ? undefined : (headers as Headers)
}

export function storable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed()
}

const PROPERTIES = ['id', 'type', 'source', 'key', 'subject', 'time', 'headers', 'data', 'body', 'redelivered']
/** A message that a handler got, or an event as its JSON has it, may be handed on as it is. */
const PASSED_OVER = ['receivedAt', 'attempt', 'correlationId', 'causationId', 'specversion', 'datacontenttype']
export const PROPERTIES_TAKEN: readonly string[] = [...PROPERTIES, ...PASSED_OVER]
const TAKEN = new Set(PROPERTIES_TAKEN)
/** What others call data. */
const LIKE_DATA = /^(data|body|data_base64|payload|contents?|value|json|event|message|details?|params|args|record)$/i

/**
 * Looks for properties that no message has: each is warned of once for its type. Answers with the problem if the data
 * seems to be in one of them, for the handler would get null.
 */
export function readStray(runtime: Runtime, incoming: Incoming): string | undefined {
  const { data, body, type } = incoming as { data?: unknown; body?: unknown; type: unknown }
  if (data !== undefined && body !== undefined) {
    const text = 'a message has either data or a body; of one that has both, the data is passed over'
    runtime.warnOnce(`both ${String(type)}`, { type }, text)
  }
  for (const name in incoming) {
    if (TAKEN.has(name)) continue
    const value: unknown = incoming[name as never]
    const isObject = typeof value === 'object' && value !== null && !(value instanceof Date)
    const isData = isObject || LIKE_DATA.test(name)
    if (data === undefined && body === undefined && isData) {
      return `a message has no property ${JSON.stringify(name)}; pass it as data`
    }
    const near = nearest(name, PROPERTIES)
    const hint = near ? `did you mean ${near}?` : `it has ${PROPERTIES.join(', ')}`
    const text = `a message has no property ${JSON.stringify(name)}, so it is passed over; ${hint}`
    runtime.warnOnce(`property ${String(type)} ${name}`, { type, property: name }, text)
  }
  return undefined
}
