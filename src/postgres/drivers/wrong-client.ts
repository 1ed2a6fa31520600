/** What was given in place of a client, in words: the mistakes are few, and each has one remedy. */
import type { OnceboxError } from '../../errors.js'
import { invalid } from '../../options.js'

/** Refuses what is not the client that this driver is for. */
export function wrongClient(call: string, given: unknown, expected: string): OnceboxError {
  return unfit(call, expected, nameOf(given))
}

/** Refuses a client of the right kind that cannot be used; `got` says why not, and what to do. */
export function unfit(call: string, expected: string, got: string): OnceboxError {
  return invalid(`${call} takes ${expected}; got ${got}`)
}

function nameOf(given: unknown): string {
  if (typeof given === 'string') return 'a text. A connection string goes to the client’s own constructor'
  if (given === null || given === undefined) return String(given)
  if (typeof given !== 'object' && typeof given !== 'function') return `a ${typeof given}`
  return clientIn(given) ?? `an object that is none (${ownName(given)})`
}

/** Which client this is, and what to do with it; undefined if it is none that is known. */
export function clientIn(given: unknown): string | undefined {
  return KNOWN.find(([, fits]) => fits(parts(given)))?.[0]
}

type Fits = (given: Readonly<Record<string, unknown>>) => boolean

const KNOWN: readonly (readonly [words: string, fits: Fits])[] = [
  ['a MikroORM: use fromMikroOrm of oncebox/mikro-orm', (it) => isMikroOrm(it)],
  ['a Prisma client: use fromPrisma of oncebox/prisma', (it) => typeof it['$transaction'] === 'function'],
  ['a Drizzle database: use fromDrizzle of oncebox/drizzle', (it) => isSomething(it['$client'])],
  [
    'a Knex instance: use fromKnex of oncebox/knex',
    (it) => typeof it['raw'] === 'function' && typeof it['transaction'] === 'function',
  ],
  ['a Sequelize instance: use fromSequelize of oncebox/sequelize', (it) => isSomething(it['connectionManager'])],
  [
    'a DataSource of TypeORM: use fromTypeOrm of oncebox/typeorm',
    (it) => typeof it['createQueryRunner'] === 'function',
  ],
  ['a Kysely instance: use fromKysely of oncebox/kysely', (it) => typeof it['getExecutor'] === 'function'],
  ['PGlite: use fromPglite of oncebox/pglite', (it) => isPglite(it)],
  ['the sql of postgres.js: use fromPostgres of oncebox/postgres', (it) => isPostgres(it)],
  ['a pool of pg: use fromPg of oncebox/pg', (it) => isPgPool(it)],
  ['a single client of pg, which cannot carry several transactions at once: pass a pool', (it) => isPgClient(it)],
]

export function isPgPool(it: unknown): boolean {
  const { connect, query, totalCount, escapeIdentifier } = parts(it)
  if (typeof connect !== 'function' || typeof escapeIdentifier === 'function' || isPostgres(it)) return false
  if (isMikroOrm(it)) return false
  // A pool of one's own needs nothing but connect().
  return typeof totalCount === 'number' || typeof query !== 'function' || !isPglite(it)
}

function isPgClient(it: unknown): boolean {
  const { query, escapeIdentifier } = parts(it)
  return typeof query === 'function' && typeof escapeIdentifier === 'function'
}

export function isPostgres(it: unknown): boolean {
  const { begin, unsafe } = parts(it)
  return typeof it === 'function' && typeof begin === 'function' && typeof unsafe === 'function'
}

export function isPglite(it: unknown): boolean {
  const { transaction, query, exec } = parts(it)
  return typeof transaction === 'function' && typeof query === 'function' && typeof exec === 'function'
}

function isMikroOrm(it: unknown): boolean {
  return typeof parts(parts(it)['em'])['fork'] === 'function'
}

function parts(it: unknown): Record<string, unknown> {
  return (it ?? {}) as Record<string, unknown>
}

function isSomething(value: unknown): boolean {
  return value !== undefined && value !== null
}

function ownName(given: object): string {
  const name: unknown = (given.constructor as { name?: unknown } | undefined)?.name
  return typeof name === 'string' && name !== '' ? name : typeof given
}
