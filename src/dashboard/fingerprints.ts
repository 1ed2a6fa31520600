/**
 * Fingerprints, as a reader gets to see them. One is a hash of an error's words: who guesses the words can check the guess without
 * asking anybody. So those who may not see the words get an alias in its place, the fingerprint enciphered by a secret of the box:
 * it is the same in every process, and everybody can search for it. The fingerprint itself they can neither see nor search for.
 */
import { createHmac, randomBytes } from 'node:crypto'
import { sharedByCopies } from '../copies.js'
import { someCause } from '../failure.js'
import { sqlState } from '../postgres/errors.js'
import { SECRET } from '../postgres/sql/dashboard.js'
import type { Runtime } from '../runtime.js'
import { Problem } from './problem.js'
import { scan } from './scan.js'
import { sharedReading } from './shared-reading.js'

export interface Fingerprints {
  show(fingerprint: string): string
  /** What somebody has searched for, as the database has it. */
  read(given: string): string
  /** A query that somebody else may have written. */
  showQuery(query: string): string
}

const FINGERPRINT = /^[0-9a-f]{12}$/
const ALIAS = /^x[0-9a-f]{12}$/
const ROUNDS = 8
const HALF = 0xffffff

export function fingerprintsFor(key: string, maySeeWords: boolean): Fingerprints {
  const show = (one: string): string => (maySeeWords || !FINGERPRINT.test(one) ? one : aliasOf(key, one))
  return {
    show,
    read(given) {
      if (ALIAS.test(given)) return behind(key, given)
      if (maySeeWords || !FINGERPRINT.test(given)) return given
      const advice = 'take the one that the page of failures shows you, which begins with an x'
      throw new Problem(
        'QUERY_INVALID',
        `‘fingerprint:’ tells of an error’s words, which takes the right ‘bodies’; ${advice}`,
      )
    },
    showQuery: (query) => (maySeeWords ? query : replaced(query, show)),
  }
}

/** A permutation of 48 bits (Feistel), each round under the key: as long as a fingerprint, and back again. */
function aliasOf(key: string, fingerprint: string): string {
  let [left, right] = halvesOf(fingerprint)
  for (let round = 0; round < ROUNDS; round++) [left, right] = [right, left ^ mixed(key, round, right)]
  return `x${hex(left)}${hex(right)}`
}

function behind(key: string, alias: string): string {
  let [left, right] = halvesOf(alias.slice(1))
  for (let round = ROUNDS - 1; round >= 0; round--) [left, right] = [right ^ mixed(key, round, left), left]
  return `${hex(left)}${hex(right)}`
}

function mixed(key: string, round: number, half: number): number {
  return createHmac('sha256', key).update(`${round} ${half}`).digest().readUIntBE(0, 3) & HALF
}

function halvesOf(digits: string): [left: number, right: number] {
  return [parseInt(digits.slice(0, 6), 16), parseInt(digits.slice(6), 16)]
}

function hex(half: number): string {
  return half.toString(16).padStart(6, '0')
}

/** What cannot be read as a query is told by the code that reads it. */
function replaced(query: string, show: (one: string) => string): string {
  try {
    const terms = scan(query).filter(({ qualifier }) => qualifier === 'fingerprint')
    return terms.reduceRight((text, { values, from, to }) => {
      const shown = values.map((value) => show(value.text)).join(',')
      return `${text.slice(0, from)}fingerprint:${shown}${text.slice(to)}`
    }, query)
  } catch {
    return '[hidden]'
  }
}

const OWN = (): string => sharedByCopies('dashboard-fingerprints', () => randomBytes(32).toString('hex'))

/** So long it stays that there is no secret, or no right to it: a migration and a grant are rare, and requests are not. */
const MISSING_MS = 60_000

/**
 * The secret of a box. Where there is none yet, or no right to it, one of this process: its aliases are good for nobody else. All who
 * look share one question, so it needs no place among what readers ask of the database.
 */
export function secretOf({ db }: Runtime): () => Promise<string> {
  let known: string | undefined
  const look = sharedReading(
    async () => {
      try {
        known = (await db.run(SECRET, { name: 'fingerprints' }))[0]?.value
      } catch (error) {
        if (!someCause(error, (cause) => ['42P01', '42501'].includes(sqlState(cause) ?? ''))) throw error
      }
    },
    () => MISSING_MS,
  )
  return async () => {
    if (known === undefined) await look()
    return known ?? OWN()
  }
}
