/**
 * The driver of a client that sits on another, as ORMs do.
 *
 * The driver underneath (pg, postgres.js, PGlite) keeps the transaction: BEGIN, shared trips, COMMIT's answer, the watch over
 * loans, LISTEN, silences. The client on top is bound to the handle that is lent, as if it had begun the transaction itself.
 * Its own `transaction()` is never called: it would commit after an error that was swallowed, see no warning at COMMIT, and
 * run statements that nobody awaited after the end.
 *
 *     fromX(db) = bound(fromPg(poolOf(db)), { expected, bind: (client) => …, begunBy: (tx) => … })
 */
import type { Driver, Loan, StatementOptions, TransactionOptions } from '../postgres/driver.js'
import { type Expected, transactionRequired } from '../postgres/drivers/loan-errors.js'
import { ignore, onceSent, refused } from '../postgres/drivers/watch.js'

export type Rows = readonly Record<string, unknown>[]

/** The client on top, bound to one handle. */
export interface Bound<Tx> {
  readonly tx: Tx
  /** Calls the handler: in an async context of the client's own, and sends what it kept back. See `Loan.run`. */
  run?<R>(handler: () => Promise<R>): Promise<R>
  /** About to be given back: a promise that rejects if the handler has left something behind that the handle cannot know of. */
  leave?(): undefined | Promise<void>
  /** It was given back, or the transaction is over. */
  close?(): void
}

/** A transaction that the user began: the handle underneath or, where that is out of reach, a way to run a statement. */
export type Begun =
  { readonly client: object } | { readonly run: (text: string, values: readonly unknown[]) => Promise<Rows> }

export interface Binding<Tx extends object> {
  /** What `send` and `once` take, and how to come by it. */
  readonly expected: Expected
  /** Learns once, before the first transaction or listener, what `bind` needs. */
  prepare?(): Promise<void>
  /** Runs the work of a transaction in one that the client on top believes to have begun on `client`, where it needs one. */
  around?<R>(client: object, work: () => Promise<R>): Promise<R>
  /** For a loan, `of` is the handle of the transaction that is lent. */
  bind(client: object, of?: object): Bound<Tx>
  /** See `Driver.check`. */
  check?(schema: string): void | Promise<void>
  /** Undefined or words for what it is if `tx` is no open transaction of the client's: a root handle, one that is over. */
  begunBy(tx: object): Begun | string | undefined
  /** True if a statement reaches the handle some ticks after it was asked for: those that nobody awaited are waited for. */
  readonly late?: boolean
  /** False as long as nobody knows what the driver underneath can do, since its pool comes later. */
  isKnown?(): boolean
  /** True if the client has one handle for a transaction, which one handler can have at a time. */
  readonly single?: boolean
}

export function bound<Tx extends object, TxIn = Tx>(
  base: Driver<never, never>,
  binding: Binding<Tx>,
): Driver<Tx, TxIn> {
  return new BoundDriver<Tx>(base, binding)
}

class BoundDriver<Tx extends object> implements Driver<Tx> {
  readonly #base: Driver<object>
  readonly #binding: Binding<Tx>
  /** The handles underneath our own transactions and loans; undefined once a transaction is over. */
  readonly #handles = new WeakMap<object, object | undefined>()
  #prepared = false
  readonly silentMs?: (tx: Tx) => number
  readonly hangUp?: (tx: Tx, reason: Error) => void
  readonly check?: (schema: string) => void | Promise<void>

  constructor(base: Driver<object>, binding: Binding<Tx>) {
    this.#base = base
    this.#binding = binding
    // A driver that cannot tell must not seem to.
    if (base.silentMs) this.silentMs = (tx) => this.#on(tx, (handle) => base.silentMs!(handle)) ?? 0
    if (binding.check) this.check = (schema) => binding.check!(schema)
    if (base.hangUp) this.hangUp = (tx, reason) => this.#on(tx, (handle) => base.hangUp!(handle, reason))
  }

  #on<R>(tx: Tx, act: (handle: object) => R): R | undefined {
    const handle = this.#handles.get(tx)
    return handle && act(handle)
  }

  get pipelines(): boolean | undefined {
    return this.#base.pipelines
  }

  get together(): boolean {
    if (this.#binding.single) return false
    return this.#base.together === true || this.#binding.isKnown?.() === false
  }

  get capacity(): number | undefined {
    return this.#base.capacity
  }

  get exhausted(): boolean {
    return this.#base.exhausted ?? false
  }

  query(text: string, values: readonly unknown[], tx?: Tx, options?: StatementOptions): Promise<Rows> {
    if (tx === undefined) return this.#base.query(text, values, undefined, options)
    const handle = this.#handles.get(tx)
    if (handle) return this.#base.query(text, values, handle, options)
    const begun = this.#begun(tx)
    if (typeof begun === 'string') return refused(transactionRequired(begun, this.#binding.expected))
    return 'client' in begun ? this.#base.query(text, values, begun.client, options) : begun.run(text, values)
  }

  /** A transaction of the user's, or words for what was passed in its place. */
  #begun(tx: unknown): Begun | string {
    if (tx === null || (typeof tx !== 'object' && typeof tx !== 'function')) return String(tx)
    if (this.#handles.has(tx)) return 'a transaction that is over'
    return this.#binding.begunBy(tx) ?? 'something else'
  }

  async transaction<R>(work: (tx: Tx) => Promise<R>, options?: TransactionOptions): Promise<R> {
    await this.#prepare()
    let begun: Bound<Tx> | undefined
    const onHandle = (handle: object): Promise<R> => {
      begun = this.#bind(handle)
      return work(begun.tx)
    }
    const binding = this.#binding
    try {
      if (!binding.around) return await this.#base.transaction(onHandle, options)
      return await this.#base.transaction((handle) => binding.around!(handle, () => onHandle(handle)), options)
    } finally {
      // Not before: a COMMIT may be silent too.
      if (begun) this.#handles.set(begun.tx, undefined)
      begun?.close?.()
    }
  }

  async #prepare(): Promise<void> {
    if (this.#prepared) return
    await this.#binding.prepare?.()
    this.#prepared = true
  }

  lend(tx: Tx): Loan<Tx> {
    return this.#lend(tx, (handle) => this.#base.lend!(handle))
  }

  lendTogether(tx: Tx, leave: () => void): Loan<Tx> {
    return this.#lend(tx, (handle) => this.#base.lendTogether!(handle, leave))
  }

  #lend(tx: Tx, lend: (handle: object) => Loan<object>): Loan<Tx> {
    const handle = this.#handles.get(tx)
    if (!handle) throw transactionRequired('a transaction that is over', this.#binding.expected)
    // A handle that was given back refuses every use by itself.
    const loan = lend(handle)
    const made = this.#bind(loan.tx, handle)
    const end = (): void | Promise<void> => {
      const left = made.leave?.()
      return left ? leaveFirst(left, made, loan) : giveBack(made, loan)
    }
    const { tx: lent, run } = made
    return { tx: lent, ...(run && { run }), giveBack: this.#binding.late ? () => onceSent(end) : end }
  }

  #bind(handle: object, of?: object): Bound<Tx> {
    const made = this.#binding.bind(handle, of)
    this.#handles.set(made.tx, handle)
    return made
  }

  async listen(channel: string, wake: () => void): Promise<() => Promise<void>> {
    await this.#prepare()
    return this.#base.listen!(channel, wake)
  }
}

function giveBack(made: Bound<object>, loan: Loan<object>): void | Promise<void> {
  made.close?.()
  return loan.giveBack()
}

async function leaveFirst(left: Promise<void>, made: Bound<object>, loan: Loan<object>): Promise<void> {
  try {
    await left
  } catch (error) {
    // Its own complaint would be about the same.
    await Promise.resolve(giveBack(made, loan)).catch(ignore)
    throw error
  }
  return giveBack(made, loan)
}
