/**
 * A driver bound to a schema: what every step of the flow runs its statements on.
 *
 * Statements are whole constants in `sql/`, written against the schema `ob` and taking one text parameter, `$1`, used
 * once: JSON in text is the only parameter type that every PostgreSQL client for Node.js passes on unchanged.
 */
import { OnceboxError } from '../errors.js'
import { sqlState, type Driver, type Isolation } from './driver.js'

export type Row = Readonly<Record<string, unknown>>

export interface Database<Tx = unknown> {
  readonly schema: string
  readonly driver: Driver<Tx, unknown>
  /** The notification channel of this schema. */
  readonly channel: string
  run(statement: string, param: unknown, tx?: unknown): Promise<readonly Row[]>
  transaction<R>(work: (tx: Tx) => Promise<R>, isolation?: Isolation): Promise<R>
  /** The statement with the schema's name in place of `ob`. */
  bind(statement: string): string
}

export function bindDatabase<Tx, TxIn>(driver: Driver<Tx, TxIn>, schema: string): Database<Tx> {
  const quoted = quoteSchema(schema)
  const bound = new Map<string, string>()
  const bind = (statement: string): string => {
    let text = bound.get(statement)
    if (text === undefined) {
      text = statement.replace(/\bob\./g, () => `${quoted}.`)
      bound.set(statement, text)
    }
    return text
  }
  return {
    schema,
    driver,
    channel: channelOf(schema),
    bind,
    run: async (statement, param, tx) => {
      try {
        return await driver.query(bind(statement), [JSON.stringify(param)], tx as Tx | undefined)
      } catch (error) {
        if (sqlState(error) === '42501') denied.add(error as object)
        throw isMissing(error) ? missing(schema, error) : error
      }
    },
    transaction: (work, isolation) => driver.transaction(work, isolation ? { isolation } : undefined),
  }
}

const denied = new WeakSet<object>()

/** True if one of our own statements lacked a permission: a handler's own fail with the same error. */
export function isDenied(error: unknown): boolean {
  return typeof error === 'object' && error !== null && denied.has(error)
}

/** Undefined schema, table, column or function: only our own statements come this way. */
function isMissing(error: unknown): boolean {
  return ['3F000', '42P01', '42703', '42883'].includes(sqlState(error) ?? '')
}

function missing(schema: string, cause: unknown): OnceboxError {
  const what = `the tables of schema ${schema} are missing or older than this version of oncebox`
  const why = cause instanceof Error ? ` (${cause.message})` : ''
  return new OnceboxError('SCHEMA_OUTDATED', `${what}; run box.migrate() first${why}`, { cause })
}

function quoteSchema(schema: string): string {
  if (typeof schema !== 'string') {
    throw new OnceboxError(
      'OPTION_INVALID',
      `schema must be a string, the name of a PostgreSQL schema; got ${String(schema)}`,
    )
  }
  const bytes = Buffer.byteLength(schema)
  // Statements name the schema inside strings, function bodies and comments too, which these would end.
  if (bytes === 0 || bytes > 63 || /[?'$\p{Cc}]/u.test(schema) || !schema.isWellFormed()) {
    throw new OnceboxError(
      'OPTION_INVALID',
      `schema must be a PostgreSQL name of 1 to 63 bytes without ?, ', $ and control characters; got ${JSON.stringify(schema)}`,
    )
  }
  if (/^pg_/i.test(schema) || schema.toLowerCase() === 'information_schema') {
    throw new OnceboxError('OPTION_INVALID', `schema ${schema} is reserved by PostgreSQL; choose another name`)
  }
  return `"${schema.replaceAll('"', '""')}"`
}

/** At most 63 bytes, like every PostgreSQL name; long schema names are told apart by a hash. */
function channelOf(schema: string): string {
  if (/^[a-z0-9_]{1,50}$/.test(schema)) return `oncebox_${schema}`
  let hash = 0xcbf29ce484222325n
  for (const byte of Buffer.from(schema)) hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn
  return `oncebox_${hash.toString(16)}`
}

/** `String.prototype.isWellFormed` is in Node 20 but not in the ES2023 library of TypeScript. */
declare global {
  interface String {
    isWellFormed(): boolean
    toWellFormed(): string
  }
}
