/**
 * The driver for PGlite: PostgreSQL in the process, one session for everybody. For tests, demos and embedded use.
 * While a transaction is open every statement outside it waits, so a handler must use its `tx` and nothing else.
 */
import type { OnceboxError } from '../../errors.js'
import type { Driver, Loan, StatementOptions, TransactionOptions } from '../driver.js'
import { type Expected, handlerCalled, rolledBack, transactionRequired } from './loan-errors.js'
import { giveBack, ignore, refused, transactionId, Watch } from './watch.js'
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

const EXPECTED: Expected = [
  'what db.transaction() hands to its callback',
  'call it inside db.transaction(async (tx) => …)',
]

/** A handle that was given out, to our own work or to a handler. */
interface Given {
  readonly raw: Tx
  readonly watch: Watch
  /** The id of the transaction at its first loan, asked for once. */
  readonly start: { id?: Promise<unknown> }
}

class PgliteDriver implements Driver<Tx> {
  readonly pipelines = true
  readonly together = true
  readonly #db: Db
  readonly #given = new WeakMap<object, Given>()

  constructor(db: Db) {
    this.#db = db
  }

  query(text: string, values: readonly unknown[], tx?: Tx, options: StatementOptions = {}): Promise<Results['rows']> {
    if (tx === undefined) {
      if (options.settings === undefined) return run(this.#db, text, values)
      return this.transaction((own) => this.query(text, values, own), options)
    }
    const given = this.#given.get(tx)
    const error = given ? (given.watch.misuse(EXPECTED) ?? given.watch.refuseBeside(text)) : misuse(tx)
    if (error) return refused(error)
    return given ? given.watch.track(run(given.raw, text, values)) : run(tx, text, values)
  }

  async transaction<R>(work: (tx: Tx) => Promise<R>, options: TransactionOptions = {}): Promise<R> {
    const { isolation = 'read committed', settings = '' } = options
    return this.#db.transaction(async (raw) => {
      // Said in any case: the database may have another default.
      await raw.exec(`set transaction isolation level ${isolation}; ${settings}`)
      const watch = new Watch()
      try {
        const result = await work(this.#give({ raw, watch, start: {} }))
        const swallowed = watch.failure
        await watch.settled()
        if (swallowed === undefined && watch.failure !== undefined) throw watch.failure
        if (raw.closed || (swallowed !== undefined && (await isAborted(raw)))) throw rolledBack(swallowed)
        return result
      } finally {
        watch.close()
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
      await unlisten?.().catch(ignore)
    }
  }

  lend(tx: Tx): Loan<Tx> {
    const { raw, start, watch: transaction } = this.#lendable(tx)
    const watch = new Watch(transaction)
    const idOf = (): Promise<unknown> => transactionId(async (text) => (await raw.query(text)).rows)
    start.id ??= idOf().catch(ignore)
    return {
      tx: this.#give({ raw, watch, start }),
      giveBack: () =>
        giveBack(watch, async () => {
          if (watch.failure !== undefined && (await isAborted(raw))) return 'aborted'
          return watch.suspicious && (await start.id) !== (await idOf()) ? 'idle' : 'in transaction'
        }),
    }
  }

  /** Its statements wait for each other in the process, so nothing is gained; what is tested with it works, though. */
  lendTogether(tx: Tx, leave: () => void): Loan<Tx> {
    const { raw, start, watch: transaction } = this.#lendable(tx)
    const watch = new Watch(transaction, { leave })
    return {
      tx: this.#give({ raw, watch, start }),
      giveBack: () => giveBack(watch, () => (watch.failure === undefined ? 'in transaction' : 'aborted')),
    }
  }

  #lendable(tx: Tx): Given {
    const given = this.#given.get(tx)
    if (!given?.watch.open) throw transactionRequired('a transaction that is over', EXPECTED)
    return given
  }

  #give(given: Given): Tx {
    const tx = guarded(given)
    this.#given.set(tx, given)
    return tx
  }
}

async function run(session: Session, text: string, values: readonly unknown[]): Promise<Results['rows']> {
  if (values.length > 0) return (await session.query(text, [...values])).rows
  // Without values there may be several commands in the text, which only `exec` takes.
  return (await session.exec(text)).at(-1)?.rows ?? []
}

/** PGlite's own transaction, whose statements are counted and refused by the rules of `Driver.lend`. */
function guarded({ raw, watch }: Given): Tx {
  const send =
    (method: (...args: unknown[]) => Promise<unknown>) =>
    (...args: unknown[]): Promise<unknown> => {
      const error = watch.refuse(textOf(args))
      return error ? refused(error) : watch.track(method.apply(raw, args))
    }
  return new Proxy(raw, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target)
      if (key === 'query' || key === 'exec' || key === 'sql') return send(value as never)
      if (key === 'rollback') return () => refused(handlerCalled('rollback'))
      return value
    },
  })
}

/** The text of what `query`, `exec` and the template `sql` are called with. */
function textOf([first, ...values]: readonly unknown[]): unknown {
  if (!Array.isArray(first)) return first
  return (first as string[]).reduce((text, part, at) => text + partText(values[at - 1]) + part)
}

/** What PGlite's `sql`, `raw` and `identifier` put into a template is text; everything else is a parameter. */
function partText(value: unknown): string {
  const { _templateType: type, str, strings } = (value ?? {}) as Part
  if (type === 'container' && strings) return strings.join('$1')
  return type === 'part' && str !== undefined ? str : '$1'
}

interface Part {
  readonly _templateType?: unknown
  readonly str?: string
  readonly strings?: readonly string[]
}

async function isAborted(raw: Tx): Promise<boolean> {
  return raw.query('select 1').then(
    () => false,
    () => true,
  )
}

function misuse(tx: unknown): OnceboxError | undefined {
  const { transaction, query, closed } = (tx ?? {}) as Record<string, unknown>
  if (typeof transaction === 'function') return transactionRequired('the database itself', EXPECTED)
  if (typeof query !== 'function') return transactionRequired('something else', EXPECTED)
  return closed === true ? transactionRequired('a transaction that is over', EXPECTED) : undefined
}
