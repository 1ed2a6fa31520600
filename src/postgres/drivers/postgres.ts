/**
 * The driver for postgres.js. Its `sql.begin` owns the connection, so this driver adds what it does not check:
 * statements still unanswered at the end are awaited before the COMMIT, which is the driver's own and whose answer is looked at,
 * and every handle it gives out is guarded.
 *
 * One thing is beyond reach from outside postgres.js: a warning during COMMIT, such as a cancelled wait for a synchronous standby.
 */
import { within } from '../../backoff.js'
import type { OnceboxError } from '../../errors.js'
import type { Driver, Isolation, Loan, StatementOptions, TransactionOptions } from '../driver.js'
import {
  fromTheDatabase,
  isConnectionLoss,
  isNameLost,
  isPoolEnded,
  isReadOnly,
  isSilence,
  isStalePlan,
  poolEnded,
  silent,
} from '../errors.js'
import { type Expected, forgottenQuery, transactionRequired } from './loan-errors.js'
import type { Answers } from './postgres/answers.js'
import type { Asked } from './postgres/asked.js'
import { Gate, type Handle, type Pending, type Rows } from './postgres/gate.js'
import { type Given, givenBy, guard } from './postgres/guard.js'
import type { LineOptions, Lines } from './postgres/lines.js'
import { poolOf } from './postgres/pool.js'
import type { Room } from './postgres/room.js'
import { Run } from './postgres/run.js'
import { type Company, giveBack, ignore, refused, transactionId, whenSent } from './watch.js'
import { isPostgres, wrongClient } from './wrong-client.js'

/** postgres.js overloads `begin`; both signatures are spelled out, or `T` would not be inferred. */
/* eslint-disable @typescript-eslint/no-explicit-any */
export interface PostgresSql<T> {
  begin: { (work: (tx: T) => any): any; (options: string, work: (tx: T) => any): any }
}
/* eslint-enable @typescript-eslint/no-explicit-any */

interface Root extends Handle {
  begin<R>(options: string, work: (tx: Handle) => Promise<R>): Promise<R>
  listen?: {
    (channel: string, notified: () => void, listening: () => void): Promise<{ unlisten(): Promise<void> }>
    /** Where postgres.js keeps the connection that listens, a pool of one. */
    readonly sql?: Root
  }
  readonly options?: LineOptions & {
    prepare?: boolean
    readonly max?: number
    readonly transform?: { column?: { from?: unknown } }
  }
}

/** Runs oncebox on postgres.js. Handlers, `send` and `once` get and take what `sql.begin` hands to its callback. */
export function fromPostgres<T>(sql: PostgresSql<T>): Driver<T> {
  if (!isPostgres(sql)) throw wrongClient('fromPostgres', sql, 'the sql of postgres.js, such as postgres(url)')
  return new PostgresDriver(sql as unknown as Root) as unknown as Driver<T>
}

/** After so many, the pooler is to blame rather than a statement that somebody has deallocated. */
const STALE_TIMES = 3

const EXPECTED: Expected = [
  'the sql that sql.begin() hands to its callback',
  'call it inside sql.begin(async (tx) => …)',
]

const BEGIN: Readonly<Record<Isolation, string>> = {
  'read committed': 'isolation level read committed',
  'repeatable read': 'isolation level repeatable read',
  serializable: 'isolation level serializable',
}

class PostgresDriver implements Driver<Handle> {
  readonly pipelines = true
  readonly together = true
  readonly #sql: Root
  readonly #room: Room
  readonly #lines: Lines
  readonly #answers: Answers
  readonly #runs = new WeakMap<object, Pick<Run<unknown>, 'silentMs' | 'terminate' | 'giveUp'>>()
  #beside: Promise<unknown> | undefined
  #stale = 0

  constructor(sql: Root) {
    this.#sql = sql
    const { room, lines, answers } = poolOf(sql)
    this.#room = room
    this.#lines = lines
    this.#answers = answers
  }

  get capacity(): number | undefined {
    return this.#room.size
  }

  query(
    text: string,
    values: readonly unknown[],
    tx?: Handle,
    options: StatementOptions = {},
  ): Promise<readonly Record<string, unknown>[]> {
    if (tx === undefined) return this.#alone(text, values, options)
    const given = givenBy(tx)
    if (!given) return theirs(tx).then((raw) => this.#send({ raw }, text, values))
    const error = given.gate.misuse(EXPECTED) ?? given.gate.refuseBeside(text)
    if (error) return refused(error)
    const rows = this.#send(given, text, values)
    // A failure that nobody awaits shows at the end of the transaction.
    rows.catch(ignore)
    return rows
  }

  async #alone(text: string, values: readonly unknown[], options: StatementOptions): Promise<Rows> {
    if (!options.urgent || !this.#goesBeside(options)) return this.#ask(this.#sql, text, values, options)
    try {
      return await this.#ask(await this.#sideWithin(options.limitMs), text, values, options)
    } catch (error) {
      // To extend a claim twice does no harm, and the pool may have a connection that works. After a silence it would be too late.
      if (!isConnectionLoss(error) || isSilence(error) || this.#room.isFull) throw error
      return this.#ask(this.#sql, text, values, options)
    }
  }

  async #ask(root: Root, text: string, values: readonly unknown[], options: StatementOptions): Promise<Rows> {
    const ask = (prepare: boolean): Promise<Rows> =>
      options.settings === undefined
        ? this.#single(queryOf(root, text, values, prepare), options)
        : this.#behind(options, root, (tx) => this.#send(givenBy(tx)!, text, values, prepare))
    try {
      return await ask(true)
    } catch (error) {
      // It never began: it is sent again, without a name.
      if (isStalePlan(error)) return ask(false)
      throw isPoolEnded(error) ? poolEnded(error) : fromTheDatabase(error)
    }
  }

  /**
   * Behind a pooler that cannot keep names, no name is of use. postgres.js names the statements of handlers too, so it has to be
   * told by its own option, which it looks at for each statement. Only the driver's own statements count: a handler may have got
   * a name wrong.
   */
  #note(error: unknown): never {
    if (isNameLost(error)) this.#countStale()
    throw error
  }

  #countStale(): void {
    this.#stale += 1
    if (this.#stale < STALE_TIMES) return
    const { options, listen } = this.#sql
    if (options) options.prepare = false
    if (listen?.sql?.options) listen.sql.options.prepare = false
  }

  /** Ends the connection of a statement of its own if it leads to a server that only reads. */
  async #single(query: Pending, options: StatementOptions): Promise<Rows> {
    const asked = this.#answers.follow(query)
    try {
      return await this.#answers.within(options, { asked, answer: this.#rowsOf(query) })
    } catch (error) {
      if (isReadOnly(error)) asked.connection?.terminate?.()
      throw error
    }
  }

  /** One statement behind SET LOCAL, with all the care that a transaction takes of a connection that is lost. */
  #behind(options: StatementOptions, root: Root, work: (tx: Handle) => Promise<Rows>): Promise<Rows> {
    const run = new Run<Rows>(options.settings)
    const { asked, begin } = this.#begin(root, BEGIN['read committed'], (raw) => run.inside(raw, work))
    const ended = run.ended(begin)
    return this.#answers.within(options, {
      asked: run.asked(asked),
      answer: run.outcome(ended),
      over: ended,
      // What has not begun never will; what has goes on to its end unless its connection was closed.
      late: (reason, cut) => (cut || !run.begun) && run.giveUp(reason),
    })
  }

  /** `sql.begin` makes the query for BEGIN by its own `unsafe`, before it waits for anything. */
  #begin<R>(root: Root, options: string, work: (tx: Handle) => Promise<R>): { asked: Asked; begin: Promise<R> } {
    const { unsafe } = root
    let asked: Asked | undefined
    const follow = (...args: Parameters<Handle['unsafe']>): Pending => {
      const query = unsafe.apply(root, args)
      asked = this.#answers.follow(query)
      return query
    }
    Reflect.set(root, 'unsafe', follow)
    try {
      const begin = root.begin(options, work)
      return { asked: asked ?? UNKNOWN, begin }
    } finally {
      Reflect.set(root, 'unsafe', unsafe)
    }
  }

  #sideWithin(limitMs: number | undefined): Promise<Root> {
    return limitMs === undefined ? this.#side() : within(limitMs, this.#side(), () => silent(limitMs))
  }

  /**
   * Others may hold all connections, for as long as they like. Nobody but heartbeats uses the one that listens, if there is one.
   * One that may wait for a lock would hold up all the others there, so it goes over the pool as long as there is room.
   */
  #goesBeside({ waits = false }: StatementOptions): boolean {
    return this.#room.isFull || (!waits && this.#sql.listen?.sql !== undefined)
  }

  /** The connection that listens has room for heartbeats when transactions hold all the others. */
  async #side(): Promise<Root> {
    const { listen } = this.#sql
    if (!listen) return this.#sql
    if (listen.sql === undefined) {
      this.#beside ??= this.#sql.listen!('oncebox_pulse', ignore, ignore)
      await this.#beside.catch(() => (this.#beside = undefined))
    }
    if (listen.sql) this.#answers.meet(listen.sql)
    return listen.sql ?? this.#sql
  }

  #send(
    { raw, gate, nested = false }: SentBy,
    text: string,
    values: readonly unknown[],
    prepare = true,
  ): Promise<Rows> {
    const query = queryOf(raw, text, values, prepare)
    // postgres.js sends a moment later; from now on the transaction waits for it.
    gate?.pass(query, nested)
    return this.#rowsOf(query)
  }

  async #rowsOf(query: Pending): Promise<Rows> {
    const rows = await query.catch((error: unknown) => this.#note(error))
    // Several commands give an array of results; the last one is the answer.
    const last = rows.at(-1)
    const answer = Array.isArray(last) ? (last as Rows) : rows
    return this.#sql.options?.transform?.column?.from ? answer.map(snakeCase) : answer
  }

  async transaction<R>(work: (tx: Handle) => Promise<R>, options: TransactionOptions = {}): Promise<R> {
    const run = new Run<R>(options.settings)
    await this.#room.enter()
    try {
      let stop: () => void = ignore
      const { asked, begin } = this.#begin(this.#sql, BEGIN[options.isolation ?? 'read committed'], (raw) => {
        stop()
        return run.inside(raw, (tx) => {
          this.#runs.set(tx, run)
          return work(tx)
        })
      })
      const ended = run.ended(begin)
      const { limitMs } = options
      if (limitMs !== undefined) {
        // It may wait for its turn, for as long as others hold all connections.
        stop = this.#answers.watch(asked, limitMs, (found) => found === 'cut' && run.giveUp(silent(limitMs)))
        ended.then(stop, stop)
      }
      return await run.outcome(ended)
    } finally {
      this.#room.leave()
    }
  }

  silentMs(tx: Handle): number {
    return this.#runs.get(tx)?.silentMs ?? 0
  }

  hangUp(tx: Handle, reason: Error): void {
    const run = this.#runs.get(tx)
    if (!run) return
    // Once: what postgres.js calls a connection outlives this one, and belongs to others next.
    this.#runs.delete(tx)
    this.#lines.cutLineOf(() => run.terminate())
    run.giveUp(reason)
  }

  async listen(channel: string, wake: () => void): Promise<() => Promise<void>> {
    let stopped = false
    const call = (): void => {
      if (!stopped) wake()
    }
    const listening = await this.#sql.listen?.(channel, call, call)
    return async () => {
      if (stopped) return
      stopped = true
      await listening?.unlisten().catch(ignore)
    }
  }

  lend(tx: Handle): Loan<Handle> {
    return this.#lend(tx)
  }

  lendTogether(tx: Handle, leave: () => void): Loan<Handle> {
    return this.#lend(tx, { leave })
  }

  #lend(tx: Handle, company?: Company): Loan<Handle> {
    const given = givenBy(tx)
    if (!given?.gate.open) throw transactionRequired('a transaction that is over', EXPECTED)
    const { raw } = given
    const gate = new Gate(given.gate, company)
    const idOf = (): Promise<unknown> => transactionId((text) => raw.unsafe(text))
    // Not awaited: it travels with the handler's first statement, and is looked at only if something is suspicious.
    const start = (given.gate.start ??= idOf().catch(ignore))
    return {
      tx: guard({ raw, gate }),
      async giveBack() {
        await whenSent()
        await gate.cursorsClosed()
        await giveBack(gate, async () => {
          if (gate.forgotten > 0) throw forgottenQuery(gate.forgotten)
          if (gate.failure !== undefined) return 'aborted'
          return gate.suspicious && (await start) !== (await idOf()) ? 'idle' : 'in transaction'
        })
      },
    }
  }
}

type SentBy = Partial<Given> & Pick<Given, 'raw'>

/** What is asked of an `sql` that hides its own `unsafe`: one of the lines that are silent. */
const UNKNOWN: Asked = { place: 'next', connection: undefined }

/** Without values there may be several commands in the text, which only the simple protocol takes. */
function queryOf(raw: Handle, text: string, values: readonly unknown[], prepare: boolean): Pending {
  return values.length === 0 ? raw.unsafe(text) : raw.unsafe(text, [...values], { prepare })
}

/** One that the user began. It may be over, and postgres.js would run the statement on its own: ask the server. */
async function theirs(tx: Handle): Promise<Handle> {
  const { begin, unsafe, savepoint } = (tx ?? {}) as unknown as Record<string, unknown>
  if (typeof begin === 'function') throw required('the root sql')
  if (typeof unsafe !== 'function' || typeof savepoint !== 'function') throw required('something else')
  try {
    await tx.unsafe('savepoint oncebox_probe; release savepoint oncebox_probe')
  } catch (error) {
    if ((error as { code?: unknown }).code === '25P01') throw required('a transaction that is over')
    throw error
  }
  return tx
}

/** Undoes `transform: postgres.camel` and its like: the statements of oncebox name their columns in snake case. */
function snakeCase(row: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name.replace(/[A-Z]/g, (letter, at: number) => (at === 0 ? '' : '_') + letter.toLowerCase()).replaceAll('-', '_'),
      value,
    ]),
  )
}

function required(got: string): OnceboxError {
  return transactionRequired(got, EXPECTED)
}
