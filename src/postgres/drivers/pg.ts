/**
 * The driver for pg (node-postgres). Prepared statements by name, trips shared through pipeline mode where pg has
 * it, a connection in reserve for when the pool is exhausted.
 */
import { createHash } from 'node:crypto'
import { boolean, resolve } from '../../options.js'
import { OnceboxError } from '../../errors.js'
import { causes } from '../../failure.js'
import type { Driver, StatementOptions, TransactionOptions } from '../driver.js'
import {
  fromTheDatabase,
  isConnectionLoss,
  isPoolEnded,
  isReadOnly,
  isStalePlan,
  poolEnded,
  sqlState,
} from '../errors.js'
import { hangUp } from './pg/cancel.js'
import {
  type Answer,
  ask,
  type Client,
  heardFrom,
  ignore,
  isSilentSince,
  type PgClient,
  type PgPool,
  type Pool,
  type Statement,
} from './pg/client.js'
import { listenOn } from './pg/listen.js'
import { borrowed, isLent, lendClient } from './pg/loan.js'
import { leftOf, Reserve } from './pg/reserve.js'
import { runOn, Session } from './pg/session.js'
import { transactionStatus } from './pg/status.js'
import { isPgPool, wrongClient } from './wrong-client.js'

export type { PgClient, PgPool }

export interface PgOptions {
  /** Name statements, so that each connection parses and plans them once. Turn off behind poolers that cannot. */
  prepare?: boolean
}

const OPTIONS = { prepare: boolean(true) }

/**
 * Runs oncebox on a pool of pg. Handlers get a `PoolClient`; `send` and `once` take any client in a transaction.
 * The pool stays yours: oncebox never ends it.
 */
export function fromPg<C extends PgClient>(pool: PgPool<C>, options: PgOptions = {}): Driver<C, PgClient> {
  if (!isPgPool(pool)) throw wrongClient('fromPg', pool, 'a pool of pg, such as new pg.Pool({ connectionString })')
  const { prepare } = resolve('fromPg', options, OPTIONS)
  return new PgDriver(pool as unknown as Pool, prepare) as unknown as Driver<C, PgClient>
}

class PgDriver implements Driver<Client, object> {
  readonly #pool: Pool
  readonly #reserve: Reserve
  /** For heartbeats alone: they must not wait behind a statement that waits for a lock. */
  readonly #pulse: Reserve
  #prepare: boolean
  #stale = 0
  /** A connection fell silent: those on which nothing was heard since this moment may be dead too. */
  #doubtedSince = -Infinity
  readonly #names = new Map<string, string>()
  readonly #sessions = new WeakMap<object, Session>()
  #pipelines: boolean | undefined

  constructor(pool: Pool, prepare: boolean) {
    this.#pool = pool
    this.#prepare = prepare
    this.#reserve = new Reserve(pool)
    this.#pulse = new Reserve(pool)
    if (!guarded.has(pool)) guard(pool)
  }

  get capacity(): number | undefined {
    return this.#pool.options?.max
  }

  get exhausted(): boolean {
    return isExhausted(this.#pool) && (this.#pool.waitingCount ?? 0) > 0
  }

  get pipelines(): boolean {
    const { Client, options } = this.#pool
    if (this.#pipelines === undefined && Client && options) {
      // Not connected, so it costs no more than an object.
      this.#pipelines = typeof new Client({ ...options }).pipeline === 'boolean'
    }
    return this.#pipelines ?? false
  }

  query(
    text: string,
    values: readonly unknown[],
    tx?: object,
    options: StatementOptions = {},
  ): Promise<readonly Record<string, unknown>[]> {
    const statement = this.#statement(text, values)
    if (tx === undefined) return this.#run(statement, options).then(rowsOf)
    const rows = this.#inside(tx, statement).then(rowsOf)
    // A rejection that nobody awaits inside our transaction shows at its COMMIT; it must not end the process.
    if (isLent(tx) || this.#sessions.has(tx)) rows.catch(ignore)
    return rows
  }

  async transaction<R>(work: (tx: Client) => Promise<R>, options: TransactionOptions = {}): Promise<R> {
    const client = await this.#checkOut()
    const began = performance.now()
    const session = new Session(client, options.isolation ?? 'read committed', options.settings)
    if (options.limitMs !== undefined) session.limitBegin(options.limitMs)
    this.#pipelines ??= session.pipelines
    this.#sessions.set(client, session)
    let result: R
    try {
      if (!session.pipelines) await session.begun
      result = await work(client)
    } catch (error) {
      this.#note(error)
      if (isSilence(session.beginError)) this.#doubt(began)
      await this.#giveUp(session, error)
      throw session.beginError ?? error
    }
    try {
      await session.commit()
    } catch (error) {
      this.#sessions.delete(client)
      if (isRefusal(error) && !isSpoilt(error)) session.release()
      else session.destroy(error)
      throw error
    }
    this.#sessions.delete(client)
    session.release()
    return result
  }

  async #giveUp(session: Session, error: unknown): Promise<void> {
    const usable = await session.rollback()
    this.#sessions.delete(session.client)
    if (usable && !isSpoilt(error)) session.release()
    else session.destroy(error)
  }

  listen(channel: string, wake: () => void): Promise<() => Promise<void>> {
    return listenOn(this.#pool, channel, wake)
  }

  lend(tx: Client) {
    const session = this.#sessions.get(tx)
    if (!session) throw transactionRequired('a client whose transaction is over')
    return lendClient(session)
  }

  #statement(text: string, values: readonly unknown[]): Statement {
    // Without values there may be several commands in the text, which only the simple protocol takes.
    if (values.length === 0) return { text }
    return this.#prepare ? { name: this.#name(text), text, values } : { text, values }
  }

  #name(text: string): string {
    let name = this.#names.get(text)
    if (name === undefined) {
      name = `oncebox_${createHash('sha256').update(text).digest('hex').slice(0, 16)}`
      this.#names.set(text, name)
    }
    return name
  }

  /** A named statement that its connection does not know never began: it is sent again, without a name. */
  async #run(statement: Statement, options: StatementOptions): Promise<Answer> {
    try {
      return await this.#alone(statement, options)
    } catch (error) {
      if (statement.name === undefined || !isStalePlan(error)) throw error
      this.#note(error)
      const { text, values = [] } = statement
      return this.#alone({ text, values }, options)
    }
  }

  /** Behind a pooler that cannot keep names, no name is of use. */
  #note(error: unknown): void {
    if (sqlState(error) !== '26000' && sqlState(error) !== '42P05') return
    this.#stale += 1
    if (this.#stale >= STALE_TIMES) this.#prepare = false
  }

  async #alone(statement: Statement, options: StatementOptions): Promise<Answer> {
    const asked = performance.now()
    try {
      if (this.#reserve.available && isExhausted(this.#pool)) {
        return await (options.urgent ? this.#pulse : this.#reserve).query(statement, options)
      }
      return await this.#pooled(statement, options)
    } catch (error) {
      if (isSilence(error)) this.#doubt(asked)
      throw error
    }
  }

  async #pooled(statement: Statement, options: StatementOptions): Promise<Answer> {
    const asked = performance.now()
    const client = await this.#checkOut(options.limitMs)
    client.on('error', ignore)
    let failure: Error | undefined
    try {
      const answer = await runOn(client, statement, options.urgent ? leftOf(options, asked) : options)
      heardFrom(client)
      return answer
    } catch (error) {
      fromTheDatabase(error)
      if (!isRefusal(error) || isSpoilt(error)) failure = error instanceof Error ? error : new Error(String(error))
      throw error
    } finally {
      client.off('error', ignore)
      client.release?.(failure)
    }
  }

  /** A connection of the pool, except one that may have died in silence. */
  async #checkOut(limitMs?: number): Promise<Client> {
    for (;;) {
      const client = await connectWithin(this.#pool, limitMs)
      if (!isSilentSince(client, this.#doubtedSince)) return client
      const reason = new Error('the connection may have died with another one')
      client.on('error', ignore)
      hangUp(client, reason)
      client.release?.(reason)
    }
  }

  #doubt(since: number): void {
    this.#doubtedSince = Math.max(this.#doubtedSince, since)
  }

  silentMs(tx: Client): number {
    return this.#sessions.get(tx)?.silentMs ?? 0
  }

  hangUp(tx: Client, reason: Error): void {
    const session = this.#sessions.get(tx)
    if (!session) return
    this.#doubt(performance.now() - session.silentMs)
    hangUp(session.client, reason)
  }

  #inside(tx: object, statement: Statement): Promise<Answer> {
    const session = this.#sessions.get(tx)
    return session ? session.send(statement) : this.#given(tx, statement)
  }

  /** Inside a transaction that was lent to a handler, or that the caller has begun. */
  async #given(tx: object, statement: Statement): Promise<Answer> {
    const session = borrowed(tx)
    if (session) return session.send(statement)
    const client = asClient(tx)
    if ((await transactionStatus(client)) === 'idle') throw transactionRequired('a client that is not in a transaction')
    return ask(client, statement)
  }
}

/** After so many, the pooler is to blame rather than a statement that somebody has deallocated. */
const STALE_TIMES = 3
const LOOK_MS = 250

/**
 * Waits for a connection no longer than that; one that comes later goes back. A pool that is ended never tells those
 * who wait for it, so it is looked at.
 */
function connectWithin(pool: Pool, limitMs = Infinity): Promise<Client> {
  return new Promise((resolve, reject) => {
    const began = performance.now()
    let waits = true
    const give = (error: Error): void => {
      waits = false
      clearInterval(timer)
      reject(error)
    }
    const timer = setInterval(
      () => {
        if (pool.ending) give(poolEnded())
        else if (performance.now() - began >= limitMs) give(noConnection(limitMs))
      },
      Math.min(LOOK_MS, limitMs),
    )
    pool.connect().then(
      (client) => {
        clearInterval(timer)
        if (waits) resolve(client)
        else client.release?.()
      },
      (error: Error) => give(isPoolEnded(error) ? poolEnded(error) : error),
    )
  })
}

function noConnection(ms: number): Error {
  const text = `the pool had no connection to spare within ${Math.round(ms)} ms`
  return fromTheDatabase(Object.assign(new Error(text), { code: 'CONNECT_TIMEOUT' }))
}

function isSilence(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === 'CONNECTION_SILENT'
}

function rowsOf({ rows }: Answer): Answer['rows'] {
  return rows
}

const guarded = new WeakSet<object>()

/** An 'error' event without a listener ends the process. */
function guard(pool: Pool): void {
  guarded.add(pool)
  // An idle client that loses its connection reports to the pool.
  if (pool.listenerCount?.('error') === 0) pool.on?.('error', ignore)
  // A session that is ended as soon as it is ready tells so in the same packet, before whoever asked for it has it.
  pool.on?.('connect', (client: Client) => {
    heardFrom(client)
    client.on('error', ignore)
  })
}

/** True if the server itself said no: the connection is in order, and nothing was committed. */
function isRefusal(error: unknown): boolean {
  if (error instanceof OnceboxError) return error.code === 'ROLLED_BACK'
  return sqlState(error) !== undefined && !isConnectionLoss(error)
}

/** True if the server has said no, and would say it again on this connection, whoever asks. */
function isSpoilt(error: unknown): boolean {
  return isStalePlan(error) || [...causes(error)].some(isReadOnly)
}

/** True if a statement would have to wait for a connection. */
function isExhausted({ options, totalCount, idleCount = 0, waitingCount = 0 }: Pool): boolean {
  if (options?.max === undefined || totalCount === undefined) return false
  return idleCount + options.max - totalCount - waitingCount <= 0
}

function asClient(tx: unknown): Client {
  const { query, escapeIdentifier, totalCount } = (tx ?? {}) as Record<string, unknown>
  if (typeof totalCount === 'number') throw transactionRequired('a pool')
  if (typeof query !== 'function') throw transactionRequired(tx === null ? 'null' : `a ${typeof tx} without query()`)
  if (typeof escapeIdentifier !== 'function') throw transactionRequired('an object that is not a client of pg')
  return tx as Client
}

function transactionRequired(what: string): OnceboxError {
  return new OnceboxError(
    'TRANSACTION_REQUIRED',
    `expected a pg client inside a transaction, got ${what}: check one out with pool.connect(), send BEGIN, and pass it`,
  )
}
