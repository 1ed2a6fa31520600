/**
 * One transaction on one pool connection: BEGIN, statements, then COMMIT, ROLLBACK or the end of the connection.
 *
 * With pg's pipeline mode BEGIN shares a trip with the first statement, and COMMIT with the last one. The price:
 * should BEGIN itself fail on a connection that survives, statements already sent behind it run on their own.
 * They all reject with BEGIN's error then, but whatever is sent before the first `await` must bear that.
 */
import { sleep, within } from '../../../backoff.js'
import { OnceboxError } from '../../../errors.js'
import type { Isolation, StatementOptions } from '../../driver.js'
import { fromTheDatabase, isConnectionLoss, silent, sqlState } from '../../errors.js'
import { rolledBack } from '../loan-errors.js'
import { cancelStatement, hangUp } from './cancel.js'
import {
  type Answer,
  ask,
  type Client,
  heardFrom,
  ignore,
  type Notice,
  sendTogether,
  type Statement,
} from './client.js'

/** A ROLLBACK takes no time; if it does, the connection is dead and TCP has not noticed. */
const ROLLBACK_MS = 5_000
/** How long the server may take to be ready after it has answered everything. */
const READY_MS = 50

const BEGIN: Readonly<Record<Isolation, string>> = {
  // jit: compiling a statement that runs for a millisecond takes fifty. LOCAL: poolers must see no session state.
  'read committed': 'BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL jit = off',
  'repeatable read': 'BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL jit = off',
  serializable: 'BEGIN ISOLATION LEVEL SERIALIZABLE; SET LOCAL jit = off',
}

export class Session {
  readonly client: Client
  readonly pipelines: boolean
  /** Resolves when BEGIN was answered. */
  readonly begun: Promise<unknown>
  readonly #usersPipeline: boolean | undefined
  #unanswered = 0
  #begins = true
  #beginError: unknown
  #broken: Error | undefined
  #committing = false
  #swallowed: unknown
  #late: unknown
  #over = false
  #queue: Promise<unknown> = Promise.resolve()
  /** Since when the server owes an answer; whatever it answers starts it anew. */
  #owesSince: number

  constructor(client: Client, isolation: Isolation, settings?: string) {
    this.client = client
    this.#usersPipeline = client.pipeline
    this.pipelines = typeof client.pipeline === 'boolean'
    client.on('error', this.#onError)
    this.resumePipeline()
    if (this.pipelines) sendTogether(client)
    this.#owesSince = performance.now()
    const text = settings === undefined ? BEGIN[isolation] : `${BEGIN[isolation]}; ${settings}`
    this.begun = ask(client, { text }, (error) => {
      this.#begins = false
      this.#owesSince = performance.now()
      this.#beginError = error
    })
    this.begun.catch(ignore)
  }

  readonly #onError = (error: Error): void => {
    this.#broken ??= error
  }

  /** Why BEGIN failed, if it did: it explains every error that came after. */
  get beginError(): unknown {
    return this.#beginError
  }

  /** The first error that `work` was told of. Whether it swallowed it shows at the end. */
  get swallowed(): unknown {
    return this.#swallowed
  }

  get unanswered(): number {
    return this.#unanswered
  }

  /** True if every statement was answered, BEGIN included: then the client's transaction status is up to date. */
  get quiet(): boolean {
    return this.#unanswered === 0 && !this.#begins
  }

  /** True once the end of the transaction is on its way: what is sent behind it would run on its own. */
  get over(): boolean {
    return this.#over
  }

  /** A BEGIN that gets no answer in time takes its connection with it. */
  limitBegin(limitMs: number): void {
    const answered = unlessWithin(limitMs, () => hangUp(this.client, silent(limitMs)))
    this.begun.then(answered, answered)
  }

  /** Runs a statement of oncebox. Nobody has to await it: a failure then shows at COMMIT. */
  send(statement: Statement): Promise<Answer> {
    const done = this.expect()
    // BEGIN was answered before: if it failed, that is what happened to this statement too.
    const answered = (error?: unknown): unknown => {
      done(error)
      return this.#beginError
    }
    if (this.#pipelining) {
      sendTogether(this.client)
      return ask(this.client, statement, answered)
    }
    // Without it pg warns about a second statement sent before the first is answered.
    const answer = this.#queue.catch(ignore).then(() => ask(this.client, statement, answered))
    this.#queue = answer
    return answer
  }

  /** Counts a statement as unanswered until the returned function is called. */
  expect(): (error?: unknown) => void {
    let open = true
    if (this.#unanswered === 0) this.#owesSince = performance.now()
    this.#unanswered += 1
    return (error) => {
      if (!open) return
      open = false
      this.#unanswered -= 1
      this.#owesSince = performance.now()
      if (error === undefined) return
      fromTheDatabase(error)
      if (this.#committing) this.#late ??= error
      else this.#swallowed ??= error
    }
  }

  /** For how long the server has been silent though it owes an answer. */
  get silentMs(): number {
    return this.#unanswered > 0 || this.#begins || this.#committing ? performance.now() - this.#owesSince : 0
  }

  get #pipelining(): boolean {
    return this.pipelines && this.client.pipeline === true
  }

  /** The client as its owner set it up, for the time of a handler: cursors do not work in pipeline mode. */
  pausePipeline(): void {
    // With statements under way the switch would mix up their answers.
    if (this.pipelines && this.quiet) this.client.pipeline = this.#usersPipeline
  }

  resumePipeline(): void {
    if (this.pipelines) this.client.pipeline = true
  }

  async commit(): Promise<void> {
    if (this.#unanswered === 0) this.#owesSince = performance.now()
    this.#committing = true
    this.#over = true
    if (!this.#pipelining) await this.#queue.catch(ignore)
    let warning: Notice | undefined
    const onNotice = (notice: Notice): void => {
      if (this.#unanswered === 0 && isWarning(notice)) warning ??= notice
    }
    this.client.on('notice', onNotice)
    try {
      const commit = ask(this.client, { text: 'COMMIT' })
      commit.catch(ignore)
      await this.begun
      const answer = await commit
      if (answer.command === 'ROLLBACK') throw rolledBack(this.#swallowed)
      if (warning !== undefined) throw uncertain(warning)
    } catch (error) {
      // A statement that the server refused cannot have been committed, whatever happened to the COMMIT behind it.
      throw sqlState(this.#late) !== undefined && !isConnectionLoss(this.#late) ? this.#late : error
    } finally {
      this.client.off('notice', onNotice)
    }
  }

  /** Rolls back what `work` gave up. Answers whether the connection can be used again. */
  async rollback(): Promise<boolean> {
    this.#over = true
    try {
      return await within(ROLLBACK_MS, this.#rollback(), () => new Error(`no answer within ${ROLLBACK_MS} ms`))
    } catch {
      return false
    }
  }

  async #rollback(): Promise<boolean> {
    if (this.#unanswered === 0) await this.begun
    // The server tells an error and that it is ready in two messages, which may not arrive together.
    const answered = (): boolean => this.#unanswered === 0 && this.#broken === undefined
    for (let ms = 0; ms < READY_MS && answered() && this.#busy(); ms++) await sleep(1)
    if (this.#busy()) return false
    await ask(this.client, { text: 'ROLLBACK' })
    return true
  }

  /** True if a statement is under way, be it sent past us: by the raw client, or a cursor left open. */
  #busy(): boolean {
    return this.#unanswered > 0 || this.#broken !== undefined || this.client.readyForQuery === false
  }

  /** Hands the connection back to the pool. */
  release(): void {
    if (this.#broken !== undefined) return this.destroy(this.#broken)
    this.detach()
    heardFrom(this.client)
    this.client.release?.()
  }

  /** Leaves the client as it was found. */
  detach(): void {
    this.client.off('error', this.#onError)
    if (this.pipelines) this.client.pipeline = this.#usersPipeline
  }

  /** Closes the connection at once, and stops what the server is doing for it: a lock must not outlive us. */
  destroy(reason: unknown): void {
    if (this.#broken === undefined && this.#busy()) cancelStatement(this.client)
    // In pipeline mode `end` would wait for statements under way, which may be the very ones that hang.
    if (this.pipelines) this.client.pipeline = false
    this.client.release?.(reason instanceof Error ? reason : true)
    this.client.off('error', this.#onError)
  }
}

/** Runs a statement that commits on its own. One that gets no answer in time takes its connection with it. */
export async function runOn(client: Client, statement: Statement, options: StatementOptions): Promise<Answer> {
  const { settings, limitMs } = options
  const answered = limitMs === undefined ? ignore : unlessWithin(limitMs, () => hangUp(client, silent(limitMs)))
  try {
    return await (settings === undefined ? askCommitting(client, statement) : askInside(client, statement, settings))
  } finally {
    answered()
  }
}

/** Calls `late` unless it is told in time. What has arrived meanwhile is read first: this process may have been busy. */
function unlessWithin(ms: number, late: () => void): () => void {
  let reading: NodeJS.Immediate | undefined
  const timer = setTimeout(() => (reading = setImmediate(late)), ms)
  return () => {
    clearTimeout(timer)
    clearImmediate(reading)
  }
}

/** In a transaction of its own, whose commands share a trip where pg pipelines. */
async function askInside(client: Client, statement: Statement, settings: string): Promise<Answer> {
  const session = new Session(client, 'read committed', settings)
  try {
    const answer = session.send(statement)
    answer.catch(ignore)
    if (!session.pipelines) await answer
    await session.commit()
    return await answer
  } catch (error) {
    await session.rollback()
    throw session.beginError ?? error
  } finally {
    session.detach()
  }
}

/** Runs a statement that commits on its own, and is as careful about a warning as `commit`. */
async function askCommitting(client: Client, statement: Statement): Promise<Answer> {
  let warning: Notice | undefined
  const onNotice = (notice: Notice): void => {
    if (isWarning(notice)) warning ??= notice
  }
  client.on('notice', onNotice)
  try {
    const answer = await ask(client, statement)
    if (warning !== undefined) throw uncertain(warning)
    return answer
  } finally {
    client.off('notice', onNotice)
  }
}

/**
 * By SQLSTATE besides severity, which is translated with `lc_messages`: class 01 is warnings, class 57 is an
 * operator who cancelled the wait for a synchronous standby, 25P01 says that there was nothing to commit.
 */
function isWarning({ severity, code = '' }: Notice): boolean {
  return severity === 'WARNING' || code.startsWith('01') || code.startsWith('57') || code === '25P01'
}

function uncertain(warning: Notice): OnceboxError {
  return warning.code === '25P01'
    ? new OnceboxError('HANDLER_COMMITTED', 'the transaction was ended inside the work that it was opened for')
    : new OnceboxError(
        'COMMIT_UNCERTAIN',
        `the server warned during COMMIT: ${warning.message ?? 'no message'}. It may be lost if the primary fails`,
        { cause: warning },
      )
}
