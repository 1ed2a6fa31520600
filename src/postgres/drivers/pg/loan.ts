/**
 * The client as one handler gets it: pg's own in every respect, except that it knows what is unanswered, refuses to
 * end the transaction, and is of no use once the handler has returned.
 */
import type { OnceboxError } from '../../../errors.js'
import type { Loan } from '../../driver.js'
import { isConnectionLoss, sqlState } from '../../errors.js'
import { handlerCalled, handlerCommitted, transactionClosed } from '../loan-errors.js'
import { type Answered, giveBack, ignore, refused, type Status, Watch } from '../watch.js'
import { type Client, sendTogether } from './client.js'
import { isNamed, named } from './named.js'
import type { Session } from './session.js'
import { knownStatus, watchStatus } from './status.js'

/** A statement in one of the forms pg takes: text, config, or an object that submits itself (cursor, stream). */
interface Submittable {
  submit?: unknown
  rows?: unknown
  text?: unknown
  callback?: unknown
  cursor?: { text?: unknown }
  read?: unknown
  handleReadyForQuery?: (...args: unknown[]) => unknown
  handleError?: (...args: unknown[]) => unknown
}
type Method = (...args: unknown[]) => unknown
type Callback = (error: unknown, result?: unknown) => void

/** The status comes in the same packet as the error, or in the next. */
const STATUS_MS = 1_000

/** What a lent client answers with its loan. A WeakMap would cost more than the rest, with an entry for each message. */
const LOAN = Symbol.for('oncebox.loan')

const TAKES_LISTENER: ReadonlySet<string | symbol> = new Set([
  ...['on', 'once', 'addListener', 'prependListener', 'prependOnceListener', 'off', 'removeListener'],
])

function loanOf(tx: object | null): Lent | undefined {
  return (tx as { [LOAN]?: Lent } | null)?.[LOAN]
}

export function isLent(tx: object): boolean {
  return loanOf(tx) !== undefined
}

/** The loan of a lent client; throws if it was given back. Undefined if `tx` is not lent. */
export function borrowed(tx: object): Lent | undefined {
  const loan = loanOf(tx)
  if (loan && !loan.watch.open) throw transactionClosed()
  return loan
}

/** To one handler, which has the connection to itself. */
export function lendClient(session: Session): Loan<Client> {
  const loan = new Lent(session, new Watch(session.watch))
  session.pausePipeline()
  return loan
}

/** To one of several handlers at a time: in pipeline mode, and what each of them did is known by the answers it got. */
export function lendTogether(session: Session, leave: () => void): Loan<Client> {
  return new Lent(session, new Watch(session.watch, { leave }))
}

/** One loan, and what stands between its client and pg's. There is one for each call of a handler: it makes what is asked for. */
class Lent implements Loan<Client>, ProxyHandler<Client> {
  readonly session: Session
  readonly watch: Watch
  readonly tx: Client
  /** A function of its own: drivers on top of this one take it out of the loan. */
  readonly giveBack = (): void | Promise<void> => giveBack(this.watch, () => this.#status)
  #query: Method | undefined
  #bound: Map<unknown, unknown> | undefined
  #heard: WeakMap<object, Method> | undefined

  constructor(session: Session, watch: Watch) {
    this.session = session
    this.watch = watch
    watchStatus(session.client)
    this.tx = new Proxy(session.client, this)
  }

  get #status(): Status | Promise<Status> {
    const { session, watch } = this
    if (!watch.inCompany) return session.afterHandler()
    return watch.failure === undefined ? 'in transaction' : 'aborted'
  }

  get(target: Client, key: string | symbol): unknown {
    if (key === 'query') return (this.#query ??= (...args) => this.#send(args))
    if (key === LOAN) return this
    if (key === 'release' || key === 'end' || key === 'connect')
      return () => {
        throw handlerCalled(key)
      }
    const value: unknown = Reflect.get(target, key, target)
    if (typeof value !== 'function' || key === 'constructor') return value
    this.#bound ??= new Map()
    if (!this.#bound.has(value)) {
      const call = this.#guarded(value as Method)
      this.#bound.set(value, TAKES_LISTENER.has(key) ? this.#listening(call) : call)
    }
    return this.#bound.get(value)
  }

  set(target: Client, key: string | symbol, value: unknown): boolean {
    return Reflect.set(target, key, value, target)
  }

  /** pg's methods write to `this`, which must be the client itself. An emitter's answer with it, for the next call. */
  #guarded(method: Method): Method {
    const { client } = this.session
    return (...args) => {
      const answer = method.apply(client, args)
      return answer === client ? this.tx : answer
    }
  }

  /** An emitter calls its listeners with the client as `this`. One that comes twice is the same both times, and can be taken off. */
  #listening(call: Method): Method {
    return (event, listener, ...rest) => {
      if (typeof listener !== 'function') return call(event, listener, ...rest)
      this.#heard ??= new WeakMap()
      let own = this.#heard.get(listener)
      if (!own) this.#heard.set(listener, (own = calledWith(this.tx, listener as Method)))
      return call(event, own, ...rest)
    }
  }

  #send(args: unknown[]): unknown {
    const { session, watch } = this
    const error = watch.refuse(textOf(args[0])) ?? unfitBesideOthers(watch, args[0]) ?? endedByHandler(session)
    return error ? fail(error, args) : track(this, args)
  }
}

/** By `listener` Node.js knows which function it stands for: `listeners()` and a removal by somebody else find that one. */
function calledWith(self: unknown, listener: Method): Method {
  return Object.assign((...args: unknown[]) => listener.apply(self, args), { listener })
}

/** What pg refuses in pipeline mode: cursors and streams, and the option by which rows come in pages. */
function unfitBesideOthers(watch: Watch, statement: unknown): OnceboxError | undefined {
  if (!watch.inCompany || typeof statement === 'string') return undefined
  const { submit, rows } = (statement ?? {}) as Submittable
  return submit === undefined && !rows ? undefined : watch.leave()
}

/** Once the transaction is over, PostgreSQL would commit each further statement on its own. */
function endedByHandler(session: Session): OnceboxError | undefined {
  return session.watch.unanswered === 0 && knownStatus(session.client) === 'idle' ? handlerCommitted() : undefined
}

function textOf(statement: unknown): unknown {
  if (typeof statement === 'string') return statement
  const { text, cursor } = (statement ?? {}) as Submittable
  return text ?? cursor?.text
}

/** Passes a statement on and counts it until it is answered, in whichever of pg's forms it came. */
function track({ session, watch }: Lent, args: unknown[]): unknown {
  if (watch.inCompany) sendTogether(session.client)
  const statement = (args[0] ?? {}) as Submittable
  const isSubmittable = typeof statement.submit === 'function'
  const at = isSubmittable ? -1 : args.findIndex((arg) => typeof arg === 'function')
  if (!isSubmittable && at <= 0 && typeof statement.callback !== 'function') return promised(session, watch, args)
  const answered = watch.expect(isCursor(statement) ? {} : undefined)
  try {
    if (isSubmittable) watchSubmittable(statement, answered)
    else if (at > 0) args[at] = watchCallback(args[at] as Callback, answered)
    else args[0] = { ...statement, callback: watchCallback(statement.callback as Callback, answered) }
    return (session.client.query as Method).apply(session.client, args)
  } catch (error) {
    answered()
    throw error
  }
}

/** By pg's callback: its promise, and those that it takes to watch it, would be four more for each statement. */
function promised(session: Session, watch: Watch, [statement, values]: unknown[]): Promise<unknown> {
  const { client } = session
  let resolve!: (result: unknown) => void
  let reject!: (error: unknown) => void
  const answer = new (client._Promise ?? Promise)<unknown>((resolved, rejected) => {
    resolve = resolved
    reject = rejected
  }).catch(leadBack)
  let isTold = false
  const told: Callback = (error, result) => {
    // Some versions tell once more of a statement that they could not send, when its connection closes.
    if (isTold) return
    isTold = true
    watch.answered(error ?? undefined)
    if (!error) return resolve(result)
    void statusKnown(session, error).then(() => reject(error))
    // A rejection that nobody awaits shows in the transaction's status; it must not end the process.
    answer.catch(ignore)
  }
  watch.sent()
  try {
    const query = client.query as Method
    if (isNamed(statement)) query.call(client, named(statement.name, statement.text), values ?? statement.values, told)
    else query.call(client, copyOf(statement), values, told)
  } catch (error) {
    if (!isTold) watch.answered()
    isTold = true
    throw error
  }
  return answer
}

/**
 * Versions before 8.23.1 write the callback into the config, which its owner may use again. A plain one is copied: an object
 * that others inherit from gets a shape of its own, and everybody who reads it takes several times as long.
 */
function copyOf(statement: unknown): unknown {
  if (typeof statement !== 'object' || statement === null) return statement
  return Object.getPrototypeOf(statement) === Object.prototype
    ? { ...statement }
    : (Object.create(statement) as unknown)
}

/** As pg does: the stack leads to who has sent the statement, not to the socket. */
function leadBack(error: unknown): never {
  if (error instanceof Error) Error.captureStackTrace(error)
  throw error
}

/** pg tells of an error before it reads the status that follows, by which the next statement is judged. */
async function statusKnown(session: Session, error: unknown): Promise<void> {
  if (sqlState(error) === undefined || isConnectionLoss(error)) return
  const end = performance.now() + STATUS_MS
  while (session.watch.unanswered === 0 && session.client.readyForQuery === false && performance.now() < end) {
    await new Promise(setImmediate)
  }
}

function watchCallback(callback: Callback, answered: Answered): Callback {
  return (error, result) => {
    answered(error ?? undefined)
    callback(error, result)
  }
}

/** Cursors, and what is queued behind them, wait for somebody to read on. */
function isCursor({ submit, cursor, read }: Submittable): boolean {
  return typeof submit === 'function' && (cursor !== undefined || typeof read === 'function')
}

function watchSubmittable(statement: Submittable, answered: Answered): void {
  for (const name of ['handleReadyForQuery', 'handleError'] as const) {
    const original = statement[name]
    if (typeof original !== 'function') continue
    statement[name] = function (this: unknown, ...args: unknown[]) {
      answered(name === 'handleError' ? args[0] : undefined)
      return original.apply(this, args)
    }
  }
}

/** Fails the way the caller asked to be told: by callback or by promise. */
function fail(error: OnceboxError, args: unknown[]): unknown {
  const statement = (args[0] ?? {}) as Submittable
  const callback = [...args.slice(1), statement.callback].find((arg) => typeof arg === 'function') as
    Callback | undefined
  if (callback) return void process.nextTick(callback, error)
  // A cursor has no promise to reject, and an event that nobody listens to would end the process.
  if (typeof statement.submit === 'function') throw error
  return refused(error)
}
