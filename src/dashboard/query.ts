/**
 * Query: what the search bar takes, as a filter of the admin and a judge for the rest.
 *
 *     consumer:charge-card state:dead,quarantined error:"no answer" data.orderId:A-1 after:90m
 *
 * A space is `and`, a comma is `any of`, quotes are for what has either in it. A bare word is an id.
 */
import { checkFilter, STATES, type CheckedFilter } from '../admin/filter.js'
import type { Filter } from '../admin/types.js'
import { nearest } from '../nearest.js'
import type { FoundRow } from '../postgres/sql/walk.js'
import type { Term } from './answers/index.js'
import { dataTerm, type DataTerm } from './data-term.js'
import type { Fingerprints } from './fingerprints.js'
import { parseExact } from './exact.js'
import { Problem } from './problem.js'
import { see, type Redact } from './redact.js'
import { scan, type Scanned } from './scan.js'
import { readTime, type Clock } from './when.js'

export interface Query {
  readonly terms: readonly Term[]
  readonly filter: CheckedFilter
  /** It asks for what only bodies, or errors, tell. */
  readonly needsBodies: boolean
  readonly asksForErrors: boolean
}

/** Every qualifier, with its words for suggestions. */
export const QUALIFIERS = {
  state: { words: STATES.join(', '), bodies: false },
  type: { words: 'the type of a message', bodies: false },
  id: { words: 'the producer’s id; a bare word is one', bodies: false },
  consumer: { words: 'a consumer, or in the outbox a sink', bodies: false },
  key: { words: 'the ordering key', bodies: false },
  source: { words: 'the producer', bodies: false },
  reason: { words: 'why it is in quarantine', bodies: false },
  error: { words: 'a part of the last error’s message', bodies: true },
  after: { words: '14:00, 2026-11-15, 2026-11-15T13:52:00Z, or 90m ago', bodies: false },
  before: { words: 'as after', bodies: false },
  box: { words: 'inbox or outbox', bodies: false },
  fingerprint: { words: 'of a group of failures', bodies: false },
  blocking: { words: 'true: others with its key wait behind it', bodies: false },
  data: { words: 'a path into the payload, as in data.orderId:A-1', bodies: true },
} as const

type Qualifier = keyof typeof QUALIFIERS
const NAMES = Object.keys(QUALIFIERS) as Qualifier[]

const MOST_TERMS = 50
const MOST_VALUES = 500
const MOST_DATA = 8

/** What is searched for a reader from whom `redact` keeps something: nobody finds by what nobody gets to see. */
export interface Glasses {
  readonly redact: Redact | undefined
  report(error: unknown): void
  readonly fingerprints: Pick<Fingerprints, 'read'>
}

export function parseQuery(text: string, clock: Clock, glasses: Glasses): Query {
  const scanned = scan(text)
  if (scanned.length > MOST_TERMS) throw invalid(`a query has at most ${MOST_TERMS} parts`)
  if (scanned.reduce((sum, { values }) => sum + values.length, 0) > MOST_VALUES) {
    throw invalid(`a query names at most ${MOST_VALUES} values`)
  }
  const said = new Map<Qualifier, readonly string[]>()
  const data: DataTerm[] = []
  for (const term of scanned) {
    const [qualifier, path] = split(term)
    if (qualifier === 'data') data.push(dataTerm(path, term.values))
    else if (said.has(qualifier)) throw twice(qualifier, [...said.get(qualifier)!, ...valuesOf(term)])
    else said.set(qualifier, valuesOf(term))
  }
  if (data.length > MOST_DATA) throw invalid(`a query has at most ${MOST_DATA} parts that look into data`)
  const { filter, fits } = toFilter(said, clock, glasses)
  const keys = glasses.redact && said.get('key')
  const judges = [
    ...fits,
    ...(data.length > 0 || keys ? [(row: FoundRow) => fitsSeen(row, { data, keys }, glasses)] : []),
  ]
  const judge = {
    bodies: data.length > 0 || keys !== undefined,
    fits: (row: FoundRow) => judges.every((one) => one(row)),
  }
  return {
    terms: scanned.map(({ qualifier, values, from, to }) => ({
      qualifier,
      values: values.map(({ text }) => text),
      from,
      to,
    })),
    filter: judges.length > 0 ? { ...checkFilter(filter), judge } : checkFilter(filter),
    needsBodies: data.length > 0 || said.has('error'),
    asksForErrors: said.has('error'),
  }
}

function split({ qualifier }: Scanned): [Qualifier, path: string] {
  const [head = '', ...path] = qualifier.split('.')
  if (head === 'data' && path.length > 0) return ['data', path.join('.')]
  if (head === 'data') throw invalid('data needs a path, as in data.orderId:A-1')
  if (path.length === 0 && NAMES.includes(head as Qualifier)) return [head as Qualifier, '']
  const near = nearest(head, NAMES)
  const hint = near ? `Did you mean ‘${near === 'data' ? 'data.path' : near}:’?` : `There are ${NAMES.join(', ')}.`
  throw invalid(`There is no ‘${qualifier}:’. ${hint} An id with a colon goes in quotes.`)
}

function valuesOf({ values }: Scanned): string[] {
  return values.map(({ text }) => text)
}

function twice(qualifier: string, values: readonly string[]): Problem {
  return invalid(`‘${qualifier}:’ is there twice. For any of them, say ${qualifier}:${values.join(',')}`)
}

/** Those that a filter of the admin takes one value of. Several are judged here. */
const SINGLE: Readonly<
  Record<'consumer' | 'key' | 'source' | 'reason' | 'error', (row: FoundRow, value: string) => boolean>
> = {
  consumer: (row, value) => row.consumer === value,
  key: (row, value) => row.key === value,
  source: (row, value) => (row.origin_source ?? row.source) === value,
  reason: (row, value) => row.reason === value,
  error: (row, value) => messageOf(row).includes(value),
}

function toFilter(
  said: ReadonlyMap<Qualifier, readonly string[]>,
  clock: Clock,
  { fingerprints }: Glasses,
): { filter: Filter; fits: ((row: FoundRow) => boolean)[] } {
  const criteria: Record<string, unknown> = {}
  const fits: ((row: FoundRow) => boolean)[] = []
  for (const [qualifier, values] of said) {
    if (qualifier === 'state' || qualifier === 'type' || qualifier === 'id') criteria[qualifier] = values
    else if (qualifier === 'before' || qualifier === 'after')
      criteria[qualifier] = readTime(one(qualifier, values), clock)
    else if (qualifier === 'box') criteria['box'] = one(qualifier, values)
    else if (qualifier === 'fingerprint') criteria['fingerprint'] = values.map((value) => fingerprints.read(value))
    else if (qualifier === 'blocking') criteria['blocking'] = isTrue(one(qualifier, values))
    else if (qualifier !== 'data') {
      if (values.length === 1) criteria[qualifier] = values[0]
      else fits.push((row) => values.some((value) => SINGLE[qualifier](row, value)))
    }
  }
  return { filter: criteria, fits }
}

function one(qualifier: string, values: readonly string[]): string {
  if (values.length === 1) return values[0]!
  throw invalid(`‘${qualifier}:’ takes one value`)
}

function isTrue(value: string): true {
  if (value === 'true') return true
  throw invalid('‘blocking:’ takes true: what blocks nothing is what is left without it')
}

function messageOf({ error, detail }: FoundRow): string {
  if (!error) return detail ?? ''
  return String((JSON.parse(error) as { message?: unknown }).message)
}

interface Sought {
  readonly data: readonly DataTerm[]
  readonly keys: readonly string[] | undefined
}

/** Of what `redact` leaves, if there is one. */
function fitsSeen(row: FoundRow, { data, keys }: Sought, { redact, report }: Glasses): boolean {
  if (!redact) return fitsData(row, data)
  const { body = null, key } = see(row, redact, report)
  if (keys && (key === undefined || !keys.includes(key))) return false
  return data.length === 0 || fitsData({ body }, data)
}

function fitsData({ body }: Pick<FoundRow, 'body'>, terms: readonly DataTerm[]): boolean {
  // To look for a text is a hundred times faster than to parse. One that may be escaped is not looked for.
  if (body == null || !terms.every((term) => body.includes('\\u') || term.mayBeIn(body))) return false
  const node = parseExact(body)
  return node !== undefined && terms.every((term) => term.fits(node))
}

export function invalid(problem: string): Problem {
  return new Problem('QUERY_INVALID', problem)
}
