/**
 * The watch over a transaction that others use: is it open, what is unanswered, what has failed. A transaction has one, and
 * so has each loan of it to a handler, which tells the transaction's own.
 *
 * That no handler ends its transaction is proved by the database (see open_group); this is there to say early, and in good
 * words, what a handler did. A driver of another client needs no more than this:
 *
 *     refuse(text) → send → track(answer) … giveBack(watch, status)
 */
import { sleep } from '../../backoff.js'
import type { OnceboxError } from '../../errors.js'
import { fromTheDatabase } from '../errors.js'
import { runsBeside, sentBesideOthers } from './beside.js'
import { refusal } from './handler-sql.js'
import {
  type Expected,
  handlerCommitted,
  transactionAborted,
  transactionClosed,
  transactionRequired,
  unawaitedQuery,
} from './loan-errors.js'

export type Status = 'in transaction' | 'aborted' | 'idle'

/** A statement that waits for somebody to read on. One that is not active is over, whether or not it was answered. */
export interface Cursor {
  readonly active?: boolean
}

/** What ends the wait for an answer. */
export type Answered = (error?: unknown) => void

/** Behind one command comes another. */
const SEVERAL = /;\s*\S/

/**
 * Texts that no handler is refused, and whether they run beside others. A handler sends few, and each of them for every
 * message; those with values in them are without number, so it begins anew.
 */
const harmless = new Map<string, boolean>()
const MOST_TEXTS = 500
const LONGEST_TEXT = 4_000

/** Whether a text that is no risk runs beside others; undefined if it has to be looked at each time. */
function besideIfHarmless(text: unknown): boolean | undefined {
  if (typeof text !== 'string' || text.length > LONGEST_TEXT) return undefined
  const known = harmless.get(text)
  if (known !== undefined) return known
  if (SEVERAL.test(text) || refusal(text)) return undefined
  if (harmless.size >= MOST_TEXTS) harmless.clear()
  const beside = runsBeside(text)
  harmless.set(text, beside)
  return beside
}

/** Who else uses the transaction meanwhile. */
export interface Company {
  /** Told when a handler sends what cannot run beside others. */
  readonly leave: () => void
}

export class Watch {
  /** The first error that a statement was answered with: the handler may have swallowed it. */
  failure: unknown
  /** True if one of several commands in a text may have ended the transaction, or nobody knows what was sent. */
  suspicious = false
  readonly #transaction: Watch | undefined
  readonly #company: Company | undefined
  /** The refusal of what cannot run beside others: a handler that catches it must not settle without it. */
  #left: OnceboxError | undefined
  #open = true
  #unanswered = 0
  /** Statements among them: for these the server owes an answer. */
  #owed = 0
  #owedSince = 0
  /** Made when they are needed: there is a watch for each call of a handler. */
  #cursors: Set<Cursor> | undefined
  #settled: (() => void)[] | undefined

  constructor(transaction?: Watch, company?: Company) {
    this.#transaction = transaction
    this.#company = company
  }

  /** True if others use the transaction at the same time. */
  get inCompany(): boolean {
    return this.#company !== undefined
  }

  /** False once the handler has returned or the transaction is over. */
  get open(): boolean {
    return this.#open && !this.over
  }

  /** True once the transaction is about to end: what is sent from then on would run on its own. */
  get over(): boolean {
    return !(this.#transaction ?? this).#open
  }

  close(): void {
    this.#open = false
  }

  get unanswered(): number {
    return this.#unanswered - this.#read
  }

  /** Cursors that were read to their end, and say no word about it. */
  get #read(): number {
    if (!this.#cursors) return 0
    let read = 0
    for (const { active } of this.#cursors) if (active === false) read += 1
    return read
  }

  /** How many of what is unanswered wait for somebody to read on. */
  get openCursors(): number {
    return this.#cursors ? this.#cursors.size - this.#read : 0
  }

  /** For how long the server has been silent though it owes an answer; whatever it answers starts it anew. Not of a loan. */
  get silentMs(): number {
    return this.#owed > this.#read ? performance.now() - this.#owedSince : 0
  }

  /** Why oncebox itself may not use this handle, if so. */
  misuse(expected: Expected): OnceboxError | undefined {
    if (this.over) return transactionRequired('a transaction that is over', expected)
    return this.open ? undefined : transactionClosed()
  }

  /** Why a handler may not send this, if so. */
  refuse(text: unknown): OnceboxError | undefined {
    if (!this.open) return transactionClosed()
    const beside = besideIfHarmless(text)
    if (beside !== undefined) return beside || !this.#company ? undefined : this.leave()
    this.suspicious ||= typeof text !== 'string' || SEVERAL.test(text)
    return refusal(text) ?? this.refuseBeside(text)
  }

  /** Why this may not be sent beside others, if so. */
  refuseBeside(text: unknown): OnceboxError | undefined {
    return this.#company === undefined || runsBeside(text) ? undefined : this.leave()
  }

  /** The error for a handler that does what cannot be done beside others. */
  leave(): OnceboxError {
    this.#company?.leave()
    return (this.#left ??= sentBesideOthers())
  }

  /** Throws if a handler did what cannot be done beside others, whether or not it has caught that. */
  checkCompany(): void {
    if (this.#left) throw this.#left
  }

  /** Counts a statement as unanswered until the returned function is called, however often. */
  expect(cursor?: Cursor): Answered {
    this.sent(cursor)
    let waits = true
    return (error) => {
      if (!waits) return
      waits = false
      this.answered(error, cursor)
    }
  }

  /** The same in two steps, for a driver that tells of an answer once. */
  sent(cursor?: Cursor): void {
    this.#transaction?.sent(cursor)
    if (!this.#transaction && this.#owed === this.#read) this.#owedSince = performance.now()
    if (cursor) (this.#cursors ??= new Set()).add(cursor)
    this.#unanswered += 1
    this.#owed += 1
  }

  answered(error?: unknown, cursor?: Cursor): void {
    this.#transaction?.answered(error, cursor)
    if (cursor) this.#cursors?.delete(cursor)
    if (error !== undefined) {
      fromTheDatabase(error)
      this.failure ??= error
    }
    this.#owed -= 1
    if (!this.#transaction) this.#owedSince = performance.now()
    this.#release()
  }

  /** Counts a piece of work as unanswered, for which the server owes nothing as yet. */
  hold(work: Promise<unknown>): void {
    this.#transaction?.hold(work)
    this.#unanswered += 1
    const release = (): void => this.#release()
    work.then(release, release)
  }

  /** Counts what waits for its handler and not for the server, such as a COPY, until the returned function is called. */
  holdOpen(cursor: Cursor): Answered {
    const outer = this.#transaction?.holdOpen(cursor)
    ;(this.#cursors ??= new Set()).add(cursor)
    this.#unanswered += 1
    return (error) => {
      outer?.(error)
      this.#cursors?.delete(cursor)
      if (error !== undefined) this.failure ??= error
      this.#release()
    }
  }

  #release(): void {
    this.#unanswered -= 1
    if (this.#settled && this.unanswered === 0) for (const settled of this.#settled.splice(0)) settled()
  }

  /** Counts a statement by its answer. A rejection that nobody awaits shows in `failure`; it must not end the process. */
  track<T>(answer: Promise<T>): Promise<T> {
    const answered = this.expect()
    answer.then(() => answered(), answered)
    return answer
  }

  /** Waits until everything is answered. */
  async settled(): Promise<void> {
    while (this.unanswered > 0) await new Promise<void>((resolve) => (this.#settled ??= []).push(resolve))
  }

  /** The same for what a handler left behind, and what its author sends then; a cursor may wait for ever, though. */
  async leftBehind(): Promise<void> {
    while (this.unanswered > 0 && this.openCursors === 0 && !this.over) await sleep(1)
  }
}

/** Ends a loan. `status` is asked when everything was answered; where the client tells it, nobody has to wait. */
export function giveBack(watch: Watch, status: () => Status | Promise<Status>): void | Promise<void> {
  if (watch.unanswered > 0) return refuseUnawaited(watch)
  watch.close()
  watch.checkCompany()
  const known = status()
  return known instanceof Promise ? known.then((told) => judge(told, watch)) : judge(known, watch)
}

/** To cut them short would reject promises that nobody looks at. */
async function refuseUnawaited(watch: Watch): Promise<never> {
  const count = watch.unanswered
  await watch.leftBehind()
  watch.close()
  throw unawaitedQuery(count)
}

function judge(status: Status, watch: Watch): void {
  if (status === 'idle') throw handlerCommitted()
  if (status === 'aborted') throw transactionAborted(watch.failure)
}

/** Rejects as a client does that was asked for a promise: one that nobody awaits must not end the process. */
export function refused(error: OnceboxError): Promise<never> {
  const rejected = Promise.reject(error)
  rejected.catch(ignore)
  return rejected
}

type Ask = (text: string) => PromiseLike<readonly Record<string, unknown>[]>

/** The id of a transaction, for clients that do not tell its status: another one in its place has another. */
export async function transactionId(ask: Ask): Promise<unknown> {
  const [row] = await ask('select pg_current_xact_id_if_assigned()::text as xid')
  return row?.['xid']
}

/** Until a client has sent what it was asked for: some take a few turns of the queue, more than a handler takes to return. */
export function whenSent(): Promise<void> {
  return new Promise(setImmediate)
}

/** The same for what ends a loan, with one promise in place of a chain of them: there is one for each call of a handler. */
export function onceSent(end: () => void | Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    setImmediate(() => {
      try {
        resolve(end())
      } catch (error) {
        // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- whatever it was thrown
        reject(error)
      }
    })
  })
}

export function ignore(): void {}
