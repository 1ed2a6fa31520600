/**
 * A driver bound to a schema: what every step of the flow runs its statements on.
 *
 * Statements are whole constants in `sql/`, written against the schema `ob` and taking one text parameter, `$1`: JSON in
 * text is the only parameter type that every PostgreSQL client for Node.js passes on unchanged.
 */
import { OnceboxError } from '../errors.js'
import { someCause } from '../failure.js'
import type { Driver, Isolation, StatementOptions } from './driver.js'
import { ofOwnStatement, sqlState } from './errors.js'
import { Limits, withTravel } from './limits.js'
import { qualify } from './qualify.js'
import { type Settings, settingsFor } from './session-defaults.js'
import { Silences } from './silences.js'
import { REMOVE_HANDLED } from './sql/consumers.js'
import { LIMIT_IDLE, ONCE_BEGIN, ONCE_TRANSACTION } from './sql/once.js'
import { PRUNABLE, PRUNE } from './sql/retain.js'
import { DEAF, SESSION_DEFAULTS } from './sql/session.js'
import { OPEN } from './sql/settle.js'
import { toText, type Statement } from './statement.js'

export type Row = Readonly<Record<string, unknown>>

export interface Database<Tx = unknown> {
  readonly schema: string
  readonly driver: Driver<Tx, unknown>
  /** The notification channel of this schema. */
  readonly channel: string
  run<In, Out>(statement: Statement<In, Out>, param: In, tx?: unknown): Promise<readonly Out[]>
  /** Runs a statement between this box and another one of its database: `to_box.` stands for the other's schema, quoted. */
  runInto<In, Out>(schema: string, statement: Statement<In, Out>, param: In): Promise<readonly Out[]>
  /** Several statements of ours in one transaction. What a role may take at most for a statement is not meant for them. */
  transaction<R>(work: (tx: Tx) => Promise<R>, isolation?: Isolation): Promise<R>
  /** A transaction that is lent to handlers. It asks for its id first: OPEN, ONCE_BEGIN or LIMIT_IDLE. */
  transactionForHandlers<R>(work: (tx: Tx) => Promise<R>, isolation?: Isolation): Promise<R>
  /** The statement with the schema's name in place of `ob`, whatever the session's `search_path` is. */
  bind(statement: string): string
}

/**
 * Puts the schema's name in place of `ob`, whatever the session's `search_path` is, and that of another box in place of
 * `to_box`: both at once, for either may contain what stands for the other.
 */
export function bindTo(schema: string): (statement: string, other?: string) => string {
  const quoted = quoteSchema(schema)
  const bound = new Map<string, string>()
  return (statement, other = '') => {
    const key = other + statement
    let text = bound.get(key)
    if (text === undefined) {
      text = qualify(statement).replace(/\b(?:ob|to_box)\./g, (name) =>
        name === 'ob.' ? `${quoted}.` : other === '' ? name : `${other}.`,
      )
      bound.set(key, text)
    }
    return text
  }
}

export function bindDatabase<Tx, TxIn>(driver: Driver<Tx, TxIn>, schema: string): Database<Tx> {
  const bind = bindTo(schema)
  const limits = new Limits()
  const send = (text: string, param: unknown, options: StatementOptions): Promise<readonly never[]> => {
    const given = toText(param)
    return driver.query(text, [given], undefined, withTravel(options, given)) as Promise<readonly never[]>
  }
  const ask = <In, Out>(statement: Statement<In, Out>, param: In, options: StatementOptions): Promise<readonly Out[]> =>
    send(bind(statement), param, options)

  let settings: Settings | undefined
  let readAt = -Infinity
  const readSettings = async (): Promise<Settings> => {
    readAt = performance.now()
    const [defaults] = await ask(SESSION_DEFAULTS, null, limits.optionsOf(SESSION_DEFAULTS, null))
    return (settings = defaults ? settingsFor(defaults) : KIND)
  }
  /** Waited for once; what was changed since is seen a little later. */
  const settingsNow = (): Settings | Promise<Settings> => {
    if (settings === undefined) return readSettings()
    if (performance.now() - readAt > READ_AGAIN_MS) readSettings().catch(() => undefined)
    return settings
  }

  const silences = new Silences({
    driver,
    shortMs: () => limits.shortMs,
    async deaf(ms, transactions) {
      // Urgent: handlers may hold every connection of the pool, and wait for this.
      const rows = await ask(DEAF, { ms, transactions }, { limitMs: Math.min(limits.shortMs, LOOK_MS), urgent: true })
      return new Map(rows.map(({ xid, deaf }) => [xid, deaf === 'true']))
    },
  })

  const begin = async <R>(work: (tx: Tx) => Promise<R>, how: How): Promise<R> => {
    const { isolation, settings, forHandlers = false } = how
    let own: unknown
    const watched = async (tx: Tx): Promise<R> => {
      own = tx
      silences.begin(tx, forHandlers)
      return work(tx).catch(async (error: unknown) => {
        throw isTimeout(error) ? ((await silences.isDead(tx)) ?? explain(driver, error)) : explain(driver, error)
      })
    }
    try {
      return await driver.transaction(watched, { isolation, settings, limitMs: limits.shortMs })
    } finally {
      silences.end(own)
    }
  }

  return {
    schema,
    driver,
    channel: channelOf(schema),
    bind,
    run: async (statement: string, param: unknown, tx?: unknown): Promise<readonly never[]> => {
      try {
        if (tx === undefined) {
          const known = settingsNow()
          const { statement: settings } = known instanceof Promise ? await known : known
          return await ask(statement as Statement<unknown, never>, param, {
            ...limits.optionsOf(statement, param),
            settings: SEES_ALL.has(statement)
              ? [settings, 'set local row_security = off'].filter(Boolean).join('; ')
              : settings,
          })
        }
        const given = toText(param)
        const isOurs = silences.isOurs(tx)
        if (isOurs) silences.allow(tx, withTravel(limits.optionsOf(statement, param), given).limitMs)
        let rows: readonly Row[]
        try {
          rows = await driver.query(bind(statement), [given], tx as Tx)
        } finally {
          if (isOurs) silences.allow(tx, undefined)
        }
        if (statement === OPEN) silences.opened(tx, (rows[0]?.['opened'] as string).split(' ', 1)[0]!)
        if (TELLS_ID.has(statement)) silences.opened(tx, rows[0]?.['xid'] as string)
        return rows as readonly never[]
      } catch (error) {
        throw isMissing(error) ? missing(schema, error) : ofOwnStatement(error)
      }
    },
    async runInto(other, statement, param) {
      const { statement: settings } = await settingsNow()
      const options = { ...limits.optionsOf(statement, param), settings }
      return send(bind(statement, other), param, options)
    },
    async transaction(work, isolation) {
      const { statement: settings } = await settingsNow()
      return begin(work, { isolation, settings })
    },
    async transactionForHandlers(work, isolation) {
      const known = settingsNow()
      const { transaction: settings } = known instanceof Promise ? await known : known
      return begin(work, { isolation, settings, forHandlers: true })
    },
  }
}

interface How {
  readonly isolation: Isolation | undefined
  readonly settings: string | undefined
  readonly forHandlers?: boolean
}

/** Answer with the id of their transaction. OPEN does too, in its own way. */
const TELLS_ID = new Set<string>([ONCE_BEGIN, ONCE_TRANSACTION, LIMIT_IDLE])

/** Delete what has no row of work: where row-level security would hide such rows, PostgreSQL refuses these instead. */
const SEES_ALL = new Set<string>([PRUNABLE, PRUNE, REMOVE_HANDLED])

const KIND: Settings = { statement: undefined, transaction: undefined }
const READ_AGAIN_MS = 60_000
/** A look at the sessions of a server takes milliseconds. */
const LOOK_MS = 2_000

function isTimeout(error: unknown): boolean {
  return error instanceof OnceboxError && error.code === 'HANDLER_TIMEOUT'
}

/** A handler that waits for a second connection of a pool whose connections handlers hold waits for itself. */
function explain(driver: Pick<Driver<never>, 'exhausted'>, error: unknown): unknown {
  if (!driver.exhausted || !(isTimeout(error) || someCause(error, isWaitInVain))) return error
  const what = 'handlers hold every connection of the pool and wait for more of them'
  const advice =
    'use the tx that a handler is given, or give its other queries a pool of their own, or raise the pool’s max'
  const because = error instanceof Error ? ` (${error.message})` : ''
  return new OnceboxError('HANDLER_TIMEOUT', `${what}; ${advice}${because}`, { cause: error })
}

/** pg says it in words alone. A handler may throw anything. */
function isWaitInVain(error: unknown): boolean {
  const message = (error as { message?: unknown }).message
  return typeof message === 'string' && message.includes('timeout exceeded when trying to connect')
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
  if (bytes === 0 || bytes > 63 || /[?'$\\\p{Cc}]/u.test(schema) || !schema.isWellFormed()) {
    throw new OnceboxError(
      'OPTION_INVALID',
      `schema must be a PostgreSQL name of 1 to 63 bytes without ?, ', $, \\ and control characters; got ${JSON.stringify(schema)}`,
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
