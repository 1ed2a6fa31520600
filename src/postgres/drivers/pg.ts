/**
 * The driver for pg (node-postgres). Prepared statements by name, trips shared through pipeline mode where pg has
 * it, two connections in reserve for when the pool is exhausted.
 */
import { createHash } from 'node:crypto'
import { boolean, resolve } from '../../options.js'
import { OnceboxError } from '../../errors.js'
import { someCause } from '../../failure.js'
import type { Driver, Loan, StatementOptions, TransactionOptions } from '../driver.js'
import { fromTheDatabase, isConnectionLoss, isReadOnly, isSilence, isStalePlan, sqlState } from '../errors.js'
import { type Expected, transactionRequired } from './loan-errors.js'
import { runOn } from './pg/alone.js'
import { hangUp } from './pg/cancel.js'
import { Checkout } from './pg/checkout.js'
import { type Answer, ask, type Client, heardFrom, type PgClient, type PgPool, type Pool } from './pg/client.js'
import type { Statement } from './pg/client.js'
import { listenOn } from './pg/listen.js'
import { borrowed, isLent, lendClient, lendTogether } from './pg/loan.js'
import { leftOf, Reserve } from './pg/reserve.js'
import { Session } from './pg/session.js'
import { transactionStatus } from './pg/status.js'
import { ignore } from './watch.js'
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

const EXPECTED: Expected = [
  'a pg client inside a transaction',
  'check one out with pool.connect(), send BEGIN, and pass it',
]

class PgDriver implements Driver<Client, object> {
  readonly #pool: Pool
  readonly #checkout: Checkout
  readonly #reserve: Reserve
  /** For heartbeats alone: they must not wait behind a statement that waits for a lock. */
  readonly #pulse: Reserve
  #prepare: boolean
  #stale = 0
  readonly #names = new Map<string, string>()
  readonly #sessions = new WeakMap<object, Session>()
  #pipelines: boolean | undefined

  constructor(pool: Pool, prepare: boolean) {
    this.#pool = pool
    this.#prepare = prepare
    this.#checkout = new Checkout(pool)
    this.#reserve = new Reserve(pool)
    this.#pulse = new Reserve(pool)
  }

  get capacity(): number | undefined {
    return this.#pool.options?.max
  }

  get exhausted(): boolean {
    return this.#checkout.isExhausted && (this.#pool.waitingCount ?? 0) > 0
  }

  get pipelines(): boolean {
    const { Client, options } = this.#pool
    if (this.#pipelines === undefined && Client && options) {
      // Not connected, so it costs no more than an object.
      this.#pipelines = typeof new Client({ ...options }).pipeline === 'boolean'
    }
    return this.#pipelines ?? false
  }

  /** Without pipeline mode each statement would wait for the answer to another handler's. */
  get together(): boolean {
    return this.pipelines
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
    const client = await this.#checkout.connect()
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
      if (isSilence(session.beginError)) this.#checkout.doubt(began)
      await this.#giveUp(session, error)
      throw session.explained(session.beginError ?? error)
    }
    try {
      await session.commit()
    } catch (error) {
      this.#sessions.delete(client)
      if (isRefusal(error) && !isSpoilt(error)) session.release()
      else session.destroy(error)
      throw session.explained(error)
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

  lend(tx: Client): Loan<Client> {
    return lendClient(this.#sessionOf(tx))
  }

  lendTogether(tx: Client, leave: () => void): Loan<Client> {
    return lendTogether(this.#sessionOf(tx), leave)
  }

  #sessionOf(tx: Client): Session {
    const session = this.#sessions.get(tx)
    if (!session) throw required('a client whose transaction is over')
    return session
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
      return this.#alone(unnamed(statement), options)
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
      if (this.#reserve.available && this.#checkout.isExhausted) {
        return await (options.urgent ? this.#pulse : this.#reserve).query(statement, options)
      }
      return await this.#pooled(statement, options)
    } catch (error) {
      if (isSilence(error)) this.#checkout.doubt(asked)
      throw error
    }
  }

  async #pooled(statement: Statement, options: StatementOptions): Promise<Answer> {
    const asked = performance.now()
    const client = await this.#checkout.connect(options.limitMs)
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

  silentMs(tx: Client): number {
    return this.#sessions.get(tx)?.silentMs ?? 0
  }

  hangUp(tx: Client, reason: Error): void {
    const session = this.#sessions.get(tx)
    if (!session) return
    this.#checkout.doubt(performance.now() - session.watch.silentMs)
    hangUp(session.client, reason)
  }

  #inside(tx: object, statement: Statement): Promise<Answer> {
    const session = this.#sessions.get(tx)
    return session ? session.send(statement) : this.#given(tx, statement)
  }

  /** Inside a transaction that was lent to a handler, or that the caller has begun. */
  async #given(tx: object, statement: Statement): Promise<Answer> {
    const loan = borrowed(tx)
    if (loan) {
      const error = loan.watch.refuseBeside(statement.text)
      if (error) throw error
      return loan.session.send(statement, loan.watch)
    }
    const client = asClient(tx)
    if ((await transactionStatus(client)) === 'idle') throw required('a client that is not in a transaction')
    // A name that its connection does not know, or that a pooler has given to another's, would cost the caller the transaction.
    return ask(client, unnamed(statement))
  }
}

/** After so many, the pooler is to blame rather than a statement that somebody has deallocated. */
const STALE_TIMES = 3

function unnamed({ text, values }: Statement): Statement {
  return values ? { text, values } : { text }
}

function rowsOf({ rows }: Answer): Answer['rows'] {
  return rows
}

/** True if the server itself said no: the connection is in order, and nothing was committed. */
function isRefusal(error: unknown): boolean {
  if (error instanceof OnceboxError) return error.code === 'ROLLED_BACK'
  return sqlState(error) !== undefined && !isConnectionLoss(error)
}

/** True if the server has said no, and would say it again on this connection, whoever asks. */
function isSpoilt(error: unknown): boolean {
  return isStalePlan(error) || someCause(error, isReadOnly)
}

function asClient(tx: unknown): Client {
  const { query, escapeIdentifier, totalCount } = (tx ?? {}) as Record<string, unknown>
  if (typeof totalCount === 'number') throw required('a pool')
  if (typeof query !== 'function') throw required(tx === null ? 'null' : `a ${typeof tx} without query()`)
  if (typeof escapeIdentifier !== 'function') throw required('an object that is not a client of pg')
  return tx as Client
}

function required(got: string): OnceboxError {
  return transactionRequired(got, EXPECTED)
}
