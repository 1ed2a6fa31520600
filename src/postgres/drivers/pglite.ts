/**
 * The driver for PGlite: PostgreSQL in the process, one session for everybody. For tests, demos and embedded use.
 * While a transaction is open every statement outside it waits, so a handler must use its `tx` and nothing else.
 */
import { OnceboxError } from '../../errors.js'
import type { Driver, Loan, StatementOptions, TransactionOptions } from '../driver.js'
import { refusal } from './handler-sql.js'
import {
  handlerCalled,
  handlerCommitted,
  rolledBack,
  transactionAborted,
  transactionClosed,
  unawaitedQuery,
} from './loan-errors.js'
import { isPglite, wrongClient } from './wrong-client.js'

export interface PgliteDb<T> {
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  transaction(work: (tx: T) => Promise<any>): Promise<any>
}

interface Results {
  readonly rows: Record<string, unknown>[]
}

interface Session {
  query(text: string, values?: unknown[]): Promise<Results>
  exec(text: string): Promise<Results[]>
}

interface Tx extends Session {
  readonly closed?: boolean
}

interface Db extends Session {
  transaction<R>(work: (tx: Tx) => Promise<R>): Promise<R>
  listen?(channel: string, notified: () => void): Promise<() => Promise<void>>
}

/** Runs oncebox on PGlite. Handlers, `send` and `once` get and take what `db.transaction` hands to its callback. */
export function fromPglite<T>(db: PgliteDb<T>): Driver<T> {
  if (!isPglite(db)) throw wrongClient('fromPglite', db, 'a database of PGlite, such as await PGlite.create()')
  return new PgliteDriver(db as unknown as Db) as unknown as Driver<T>
}

const XID = 'select pg_current_xact_id_if_assigned()::text as xid'

class PgliteDriver implements Driver<Tx> {
  readonly pipelines = true
  readonly #db: Db
  readonly #watches = new WeakMap<object, Watch>()

  constructor(db: Db) {
    this.#db = db
  }

  query(
    text: string,
    values: readonly unknown[],
    tx?: Tx,
    options: StatementOptions = {},
  ): Promise<readonly Record<string, unknown>[]> {
    if (tx === undefined && options.settings !== undefined) {
      return this.transaction((own) => this.#query(text, values, own), options)
    }
    const rows = this.#query(text, values, tx)
    // A rejection that nobody awaits inside our transaction shows at its end; it must not end the process.
    if (tx !== undefined && this.#watches.has(tx)) rows.catch(() => {})
    return rows
  }

  async #query(text: string, values: readonly unknown[], tx: Tx | undefined): Promise<Results['rows']> {
    const session = tx === undefined ? this.#db : this.#inTransaction(tx)
    if (values.length > 0) return (await session.query(text, [...values])).rows
    // Without values there may be several commands in the text, which only `exec` takes.
    return (await session.exec(text)).at(-1)?.rows ?? []
  }

  async transaction<R>(work: (tx: Tx) => Promise<R>, options: TransactionOptions = {}): Promise<R> {
    const { isolation = 'read committed', settings = '' } = options
    return this.#db.transaction(async (raw) => {
      // Said in any case: the database may have another default.
      await raw.exec(`set transaction isolation level ${isolation}; ${settings}`)
      const watch = new Watch(raw)
      const tx = watched(raw, watch)
      this.#watches.set(tx, watch)
      try {
        const result = await work(tx)
        const swallowed = watch.failure
        await watch.settled()
        if (swallowed === undefined && watch.failure !== undefined) throw watch.failure
        if (raw.closed || (swallowed !== undefined && (await isAborted(raw)))) throw rolledBack(swallowed)
        return result
      } finally {
        watch.open = false
      }
    })
  }

  async listen(channel: string, wake: () => void): Promise<() => Promise<void>> {
    let stopped = false
    const call = (): void => {
      if (!stopped) wake()
    }
    const unlisten = await this.#db.listen?.(`"${channel.replaceAll('"', '""')}"`, call)
    call()
    return async () => {
      if (stopped) return
      stopped = true
      await unlisten?.().catch(() => {})
    }
  }

  lend(tx: Tx): Loan<Tx> {
    const transaction = this.#watches.get(tx)
    if (!transaction?.open) throw transactionRequired('a transaction that is over')
    const { raw } = transaction
    const watch = new Watch(raw, transaction)
    const start = (transaction.start ??= raw.query(XID).catch(() => undefined))
    const lent = watched(raw, watch)
    this.#watches.set(lent, watch)
    return {
      tx: lent,
      async giveBack() {
        const left = watch.unanswered
        // They run to their end, and so does what their author sends behind them.
        while (watch.unanswered > 0 && watch.transactionOpen) {
          await watch.settled()
          await new Promise(setImmediate)
        }
        watch.open = false
        if (left > 0) throw unawaitedQuery(left)
        if (watch.failure !== undefined && (await isAborted(raw))) throw transactionAborted(watch.failure)
        if (watch.suspicious && !(await sameTransaction(raw, await start))) throw handlerCommitted()
      },
    }
  }

  #inTransaction(tx: Tx): Session {
    const watch = this.#watches.get(tx)
    if (watch && !watch.transactionOpen) throw transactionRequired('a transaction that is over')
    const { transaction, query, closed } = (tx ?? {}) as unknown as Record<string, unknown>
    if (typeof transaction === 'function') throw transactionRequired('the database itself')
    if (typeof query !== 'function') throw transactionRequired('something else')
    if (closed === true) throw transactionRequired('a transaction that is over')
    return tx
  }
}

/** What is known of one transaction, or of one handler's use of it. */
class Watch {
  readonly raw: Tx
  open = true
  unanswered = 0
  failure: unknown
  suspicious = false
  start: Promise<Results | undefined> | undefined
  readonly #transaction: Watch | undefined
  readonly #pending = new Set<Promise<unknown>>()

  constructor(raw: Tx, transaction?: Watch) {
    this.raw = raw
    this.#transaction = transaction
  }

  get transactionOpen(): boolean {
    return this.#transaction ? this.#transaction.open : this.open
  }

  add(answer: Promise<unknown>): void {
    this.#transaction?.add(answer)
    this.unanswered += 1
    const done = answer.then(
      () => (this.unanswered -= 1),
      (error: unknown) => {
        this.unanswered -= 1
        this.failure ??= error
      },
    )
    this.#pending.add(done)
    void done.finally(() => this.#pending.delete(done))
  }

  async settled(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending)
  }
}

/** PGlite's own transaction, whose statements are counted and refused by the rules of `Driver.lend`. */
function watched(raw: Tx, watch: Watch): Tx {
  const send =
    (name: string, method: (...args: unknown[]) => Promise<unknown>) =>
    (...args: unknown[]): Promise<unknown> => {
      const [first] = args
      const text: unknown = Array.isArray(first) ? first[0] : first
      const error = watch.open && watch.transactionOpen ? refusal(text) : transactionClosed()
      if (error) return refused(error)
      if (name === 'exec' && String(text).includes(';')) watch.suspicious = true
      const answer = method.apply(raw, args)
      watch.add(answer)
      return answer
    }
  return new Proxy(raw, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target)
      if (key === 'query' || key === 'exec' || key === 'sql') return send(key, value as never)
      if (key === 'rollback') return () => refused(handlerCalled('rollback'))
      return value
    },
  })
}

/** A rejection that nobody awaits must not end the process. */
function refused(error: OnceboxError): Promise<never> {
  const rejected = Promise.reject(error)
  rejected.catch(() => {})
  return rejected
}

async function isAborted(raw: Tx): Promise<boolean> {
  try {
    await raw.query('select 1')
    return false
  } catch {
    return true
  }
}

async function sameTransaction(raw: Tx, start: Results | undefined): Promise<boolean> {
  const now = await raw.query(XID)
  return now.rows[0]?.['xid'] === start?.rows[0]?.['xid']
}

function transactionRequired(what: string): OnceboxError {
  return new OnceboxError(
    'TRANSACTION_REQUIRED',
    `expected what db.transaction() hands to its callback, got ${what}: call it inside db.transaction(async (tx) => …)`,
  )
}
