/**
 * The gate that statements of a postgres.js transaction pass on their way to the server: the watch over it, and what is
 * postgres.js's own. A query is sent when somebody awaits it, and is a part of another one if it was put into it.
 */
import { Readable, Writable } from 'node:stream'
import { sleep } from '../../../backoff.js'
import { fromTheDatabase, isConnectionLoss } from '../../errors.js'
import { travelMs } from '../../travel.js'
import { firstWords } from '../sql-text.js'
import { type Company, ignore, Watch, whenSent } from '../watch.js'

export type Rows = Record<string, unknown>[]

/** A query of postgres.js: a promise that is sent when somebody awaits it, by calling its `handler`. */
export interface Pending extends Promise<Rows> {
  handler?: ((query: Pending) => unknown) & { debug?: unknown }
  canceller?: ((query: Pending) => Promise<unknown>) | null
  reject?(error: unknown): void
  readonly strings?: readonly string[]
  readonly args?: readonly unknown[]
  readonly cursorFn?: unknown
  /** What it was sent on; null before that. */
  readonly state?: object | null
  readonly options?: { onexecute?: (connection: object) => unknown }
  /** True while the server is asked for the types of its values, before they are sent. Nobody is told of its connection then. */
  readonly describeFirst?: unknown
  /** The promise of an iterated cursor never settles; when it is done it is no longer active. */
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

export class Gate extends Watch {
  /** The id of the transaction at its first loan, asked for once. */
  start: Promise<unknown> | undefined
  readonly #transaction: Gate | undefined
  readonly #sent = new Set<Pending>()
  readonly #unsent = new Set<Pending>()
  /** Of COPY, which nothing can be sent behind before they have ended. */
  #streams = 0
  /** How long what is unanswered may take to get to the server: what was answered has been there. */
  #travelMs = 0

  constructor(transaction?: Gate, company?: Company) {
    super(transaction, company)
    this.#transaction = transaction
  }

  /** The connection is gone: postgres.js must write nothing more on it, not even a ROLLBACK, or it ends the process. */
  get dead(): boolean {
    return this.over || isConnectionLoss(this.failure)
  }

  /** For how long the server has been silent though it owes an answer, and has what it was sent. */
  override get silentMs(): number {
    return Math.max(0, super.silentMs - this.#travelMs)
  }

  /** True if the connection is within a COPY. */
  get copies(): boolean {
    return this.#streams > 0
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

  /** Counts a query that is about to be sent; `nested` in a savepoint, to which postgres.js rolls back if it fails. */
  pass(query: Pending, nested: boolean): void {
    const transaction = this.#transaction ?? this
    const travel = travelOf(query)
    this.#unsent.delete(query)
    transaction.#sent.add(query)
    transaction.#travelMs += travel
    const answered = this.expect(query.cursorFn ? query : undefined)
    const end = (error?: unknown): void => {
      transaction.#sent.delete(query)
      transaction.#travelMs -= travel
      answered(nested && !isConnectionLoss(fromTheDatabase(error)) ? undefined : error)
    }
    // Not `query.then`, which would send it.
    void Promise.prototype.then.call(
      query,
      (answer: unknown) => {
        // A COPY is answered as soon as it can begin.
        if (answer instanceof Readable || answer instanceof Writable) this.#copy(answer, nested)
        end()
      },
      end,
    )
  }

  #copy(stream: Readable | Writable, nested: boolean): void {
    const transaction = this.#transaction ?? this
    const ended = this.holdOpen({})
    transaction.#streams += 1
    // What it is destroyed with, when its connection is given up, must not end the process.
    stream.on('error', ignore)
    stream.once('close', () => {
      transaction.#streams -= 1
      ended(nested ? undefined : brokenOff(stream))
    })
  }

  /** Waits a moment for cursors, if nothing else is unanswered: one left by `break` takes a round trip to close. */
  async cursorsClosed(): Promise<void> {
    const end = performance.now() + CURSOR_CLOSE_MS
    const closing = (): boolean => this.unanswered > 0 && this.unanswered === this.openCursors
    while (closing() && performance.now() < end) await sleep(1)
  }

  override async settled(): Promise<void> {
    await whenSent()
    await super.settled()
  }

  /** Asks the server to stop what is running. Answers whether anything was. */
  cancelAll(): boolean {
    const running = this.unanswered > 0
    for (const query of this.#sent) {
      const cancel = query.canceller
      query.canceller = null
      // Not `query.cancel()`, which drops this promise: unreachable, the server would end the process.
      cancel?.(query)?.catch(ignore)
    }
    return running
  }
}

/** Why a COPY to the server came to nothing, which the server takes for an error of the transaction. */
function brokenOff(stream: Readable | Writable): unknown {
  if (stream instanceof Readable || stream.writableFinished) return undefined
  return stream.errored ?? new Error('the stream of a COPY was destroyed before its end')
}

/** How long its values may take to get to the server. */
function travelOf({ args = [] }: Pending): number {
  let ms = 0
  for (const value of args) if (typeof value === 'string' || ArrayBuffer.isView(value)) ms += travelMs(value)
  return ms
}

/** What the template says, with a parameter for whatever is put into it. */
export function textOf({ strings }: Pending): string | undefined {
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
