/**
 * The gate that statements of a postgres.js transaction pass on their way to the server: it counts what is
 * unanswered, refuses what a handler may not send, and shuts when the handler or the transaction is over.
 */
import { sleep } from '../../../backoff.js'
import type { OnceboxError } from '../../../errors.js'
import { fromTheDatabase, isConnectionLoss } from '../../errors.js'
import { refusal } from '../handler-sql.js'
import { handlerCalled, transactionClosed } from '../loan-errors.js'
import { firstWords } from '../sql-text.js'

export type Rows = Record<string, unknown>[]

/** A query of postgres.js: a promise that is sent when somebody awaits it, by calling its `handler`. */
export interface Pending extends Promise<Rows> {
  handler?: ((query: Pending) => unknown) & { debug?: unknown }
  canceller?: ((query: Pending) => Promise<unknown>) | null
  reject?(error: unknown): void
  readonly strings?: readonly string[]
  readonly string?: string
  readonly options?: { readonly simple?: boolean }
  readonly cursorFn?: unknown
  readonly active?: boolean
  readonly executed?: boolean
  /** Set when it is put into another one that is sent. */
  readonly fragment?: boolean
}

export interface Handle {
  (...args: unknown[]): unknown
  unsafe(
    text: string,
    values?: unknown[],
    options?: { prepare?: boolean; onexecute?: (connection: object) => boolean },
  ): Pending
  savepoint?(...args: unknown[]): Promise<unknown>
}

/** Longer than a round trip, and what a handler pays that leaves a cursor open. */
const CURSOR_CLOSE_MS = 250

type Work = (tx: Handle) => unknown

export function ignore(): void {}

const gates = new WeakMap<object, Gate>()

/** The gate of a guarded handle; undefined for one that postgres.js itself gave out. */
export function gateOf(handle: unknown): Gate | undefined {
  return typeof handle === 'function' ? gates.get(handle) : undefined
}

export class Gate {
  readonly raw: Handle
  /** False once the handler or the transaction is over. */
  open = true
  /** The first error of a statement outside a savepoint: the transaction cannot commit any more. */
  failure: unknown
  /** True if a text with several commands was sent, one of which may have ended the transaction. */
  suspicious = false
  /** The transaction id at the first loan, asked for once. */
  start: Promise<Rows | void> | undefined
  readonly #transaction: Gate | undefined
  readonly #pending = new Set<Pending>()
  readonly #expected = new Set<Promise<unknown>>()
  readonly #unsent = new Set<Pending>()

  constructor(raw: Handle, transaction?: Gate) {
    this.raw = raw
    this.#transaction = transaction
  }

  get transactionOpen(): boolean {
    return this.#transaction ? this.#transaction.open : this.open
  }

  /** The connection is gone: postgres.js must write nothing more on it, not even a ROLLBACK, or it ends the process. */
  get dead(): boolean {
    return !this.transactionOpen || isConnectionLoss(this.failure)
  }

  get unanswered(): number {
    return Math.max(this.#sent.length, this.#expected.size)
  }

  /** Since when the server owes an answer; whatever it answers starts it anew. */
  owedSince: number | undefined

  get #sent(): Pending[] {
    // The promise of an iterated cursor never settles; when it is done it is no longer active.
    return [...this.#pending].filter((query) => !query.cursorFn || query.active)
  }

  /** How many statements were made and never sent: postgres.js sends what somebody awaits. */
  get forgotten(): number {
    return [...this.#unsent].filter((query) => !query.executed && !query.fragment && isStatement(query)).length
  }

  /** Remembers a query until it is sent, or put into another one. Only a handler forgets any. */
  made(query: Pending): void {
    if (this.#transaction) this.#unsent.add(query)
  }

  /** What is put into another query is a part of it. */
  used(parts: readonly unknown[]): void {
    if (this.#unsent.size === 0) return
    for (const part of parts) {
      if (typeof part !== 'object' || part === null) continue
      if (this.#unsent.delete(part as Pending)) continue
      if (Array.isArray(part)) this.used(part)
      // The values of a row.
      else if (Object.getPrototypeOf(part) === Object.prototype) this.used(Object.values(part))
    }
  }

  /** Why a query may not pass, if so. */
  refuse(query: Pending): OnceboxError | undefined {
    return this.open && this.transactionOpen ? refusal(textOf(query)) : transactionClosed()
  }

  pass(query: Pending, nested: boolean): void {
    this.#unsent.delete(query)
    if (this.#pending.size === 0) this.owedSince = performance.now()
    this.#pending.add(query)
    this.#transaction?.pass(query, nested)
    const answered = (): void => {
      this.#pending.delete(query)
      this.owedSince = this.#pending.size > 0 ? performance.now() : undefined
      this.suspicious ||= query.options?.simple === true && query.string?.includes(';') === true
    }
    // Not `query.then`, which would send it a second time.
    void Promise.prototype.then.call(query, answered, (error: unknown) => {
      answered()
      fromTheDatabase(error)
      // Within a savepoint postgres.js rolls back to it, if there is a connection left.
      if (!nested || isConnectionLoss(error)) this.failure ??= error
    })
  }

  /** Counts something as unanswered from before its statements are sent. */
  expect(rows: Promise<unknown>): void {
    this.#transaction?.expect(rows)
    this.#expected.add(rows)
    const done = (): unknown => this.#expected.delete(rows)
    // Also marks a rejection as seen: it shows in `failure`.
    rows.then(done, done)
  }

  /** Waits until what was issued is sent: postgres.js takes a few microtasks, more than a handler takes to return. */
  async sent(): Promise<void> {
    await new Promise(setImmediate)
  }

  /** Waits a moment for cursors, if nothing else is unanswered: one left by `break` takes a round trip to close. */
  async cursorsClosed(): Promise<void> {
    const end = performance.now() + CURSOR_CLOSE_MS
    const closing = (): boolean =>
      this.unanswered > 0 && this.#expected.size === 0 && this.#sent.every((query) => query.cursorFn)
    while (closing() && performance.now() < end) await sleep(1)
  }

  /**
   * Waits until what was sent is answered, and what its author sends behind it, unless a cursor waits for somebody to
   * read on. Answers how many statements were left behind.
   */
  async left(): Promise<number> {
    await this.sent()
    await this.cursorsClosed()
    const count = this.unanswered
    while (this.unanswered > 0 && this.transactionOpen && !this.#sent.some((query) => query.cursorFn)) {
      await sleep(1)
      await this.sent()
    }
    return count
  }

  /** Waits until what was sent is answered. */
  async settled(): Promise<void> {
    await this.sent()
    while (this.unanswered > 0) await Promise.allSettled([...this.#sent, ...this.#expected])
  }

  /** Asks the server to stop what is running. Answers whether anything was. */
  cancelAll(): boolean {
    const running = this.unanswered > 0
    for (const query of this.#pending) {
      const cancel = query.canceller
      query.canceller = null
      // Not `query.cancel()`, which drops this promise: unreachable, the server would end the process.
      cancel?.(query)?.catch(ignore)
    }
    return running
  }
}

/** The handle itself in every respect, but its statements pass the gate. */
export function guard(raw: Handle, gate: Gate, nested = false): Handle {
  const watch = (query: unknown): unknown => watched(query, gate, nested)
  const handle = new Proxy(raw, {
    apply(target, _, args: unknown[]) {
      gate.used(args)
      return watch(Reflect.apply(target, undefined, args))
    },
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target)
      switch (key) {
        case 'unsafe':
        case 'file':
          return (...args: unknown[]) => watch(Reflect.apply(value as Handle, target, args))
        case 'savepoint':
          return (...args: unknown[]) => {
            const done = savepoint(value as Handle, args)
            // Its first statement is sent past the gate, and the others only after that.
            gate.expect(done)
            return done
          }
        case 'prepare':
          return () => {
            throw handlerCalled('prepare')
          }
        default:
          return value
      }
    },
  })
  function savepoint(make: Handle, args: unknown[]): Promise<unknown> {
    if (gate.dead) return Promise.reject(transactionClosed())
    return new Promise((resolve, reject) => {
      const guarded = args.map((arg) => (typeof arg === 'function' ? guardCallback(arg as Work, reject) : arg))
      ;(Reflect.apply(make, raw, guarded) as Promise<unknown>).then(resolve, reject)
    })
  }
  /** `lost` hears of a connection that died; postgres.js, which would roll back to the savepoint, hears nothing more. */
  function guardCallback(work: Work, lost: (error: unknown) => void): Work {
    return async (inner) => {
      try {
        return await work(guard(inner, gate, true))
      } catch (error) {
        // The statement is told of a lost connection before the transaction is.
        await gate.sent()
        if (!gate.dead) throw error
        lost(error)
        return new Promise(ignore)
      }
    }
  }
  gates.set(handle, gate)
  return handle
}

/** What the template says, with a parameter for whatever is put into it. */
function textOf({ strings }: Pending): string | undefined {
  return strings && strings.length > 1 ? strings.join('$1') : strings?.[0]
}

/** The words that begin a statement. What begins with another is a fragment that was not used. */
const STATEMENT =
  /^(ALTER|ANALYZE|CALL|COMMENT|COPY|CREATE|DELETE|DO|DROP|GRANT|INSERT|LOCK|MERGE|NOTIFY|REFRESH|REVOKE|SELECT|SET|TRUNCATE|UPDATE|VALUES|WITH)$/

function isStatement(query: Pending): boolean {
  const text = textOf(query)
  // A file has no text before it is read.
  return text === undefined || STATEMENT.test(firstWords(text, 0)[0] ?? '')
}

/** Fragments and identifiers pass through here too; only what is sent ever calls its handler. */
function watched(query: unknown, gate: Gate, nested: boolean): unknown {
  const pending = query as Pending
  const send = pending?.handler
  if (typeof send !== 'function') return query
  gate.made(pending)
  pending.handler = Object.assign(
    (sent: Pending) => {
      const error = gate.refuse(sent)
      if (error) {
        // One that nobody awaits must not end the process. Not `catch`, which would send it.
        void Promise.prototype.then.call(sent, ignore, ignore)
        return sent.reject?.(error)
      }
      gate.pass(sent, nested)
      return send(sent)
    },
    { debug: send.debug },
  )
  return query
}
