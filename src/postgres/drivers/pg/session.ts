/**
 * One transaction on one pool connection: BEGIN, statements, then COMMIT, ROLLBACK or the end of the connection.
 *
 * With pg's pipeline mode BEGIN shares a trip with the first statement, and COMMIT with the last one. The price:
 * should BEGIN itself fail on a connection that survives, statements already sent behind it run on their own.
 * They all reject with BEGIN's error then, but whatever is sent before the first `await` must bear that.
 */
import { sleep, within } from '../../../backoff.js'
import { causes } from '../../../failure.js'
import type { Isolation } from '../../driver.js'
import { isConnectionLoss, silent, sqlState } from '../../errors.js'
import { travelMs } from '../../travel.js'
import { rolledBack } from '../loan-errors.js'
import { ignore, type Status, Watch } from '../watch.js'
import { cancelStatement, hangUp, unlessWithin } from './cancel.js'
import { type Answer, ask, type Client, heardFrom, type Notice, sendTogether, type Statement } from './client.js'
import { knownStatus, transactionStatus } from './status.js'
import { heedWarnings } from './warnings.js'

/** A ROLLBACK takes no time; if it does, the connection is dead and TCP has not noticed. */
const ROLLBACK_MS = 5_000
/** How long the server may take to be ready after it has answered everything. */
const READY_MS = 50
/** Another process of the server crashed, and the server ends all sessions. */
const CRASHED = '57P02'

const BEGIN: Readonly<Record<Isolation, string>> = {
  // jit: compiling a statement that runs for a millisecond takes fifty. LOCAL: poolers must see no session state.
  'read committed': 'BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL jit = off',
  'repeatable read': 'BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL jit = off',
  serializable: 'BEGIN ISOLATION LEVEL SERIALIZABLE; SET LOCAL jit = off',
}

export class Session {
  readonly client: Client
  readonly watch = new Watch()
  readonly pipelines: boolean
  /** Resolves when BEGIN was answered. */
  readonly begun: Promise<unknown>
  /** Why BEGIN failed, if it did: it explains every error that came after. */
  beginError: unknown
  readonly #usersPipeline: boolean | undefined
  #begins = true
  /** How long what is unanswered may take to get to the server: what was answered has been there. */
  #travelMs = 0
  #broken: Error | undefined
  #farewell: Error | undefined
  #queue: Promise<unknown> = Promise.resolve()

  constructor(client: Client, isolation: Isolation, settings?: string) {
    this.client = client
    this.#usersPipeline = client.pipeline
    this.pipelines = typeof client.pipeline === 'boolean'
    client.on('error', this.#onError)
    client.on('notice', this.#onNotice)
    this.#resumePipeline()
    if (this.pipelines) sendTogether(client)
    const text = settings === undefined ? BEGIN[isolation] : `${BEGIN[isolation]}; ${settings}`
    const answered = this.watch.expect()
    this.begun = ask(client, { text }, (error) => {
      this.#begins = false
      this.beginError = error
      answered()
    })
    this.begun.catch(ignore)
  }

  readonly #onError = (error: Error): void => {
    this.#broken ??= error
  }

  /** Its last words before it ends the session are no answer to anything, so pg hands them over as a notice. */
  readonly #onNotice = (notice: Notice): void => {
    if (notice.code === CRASHED) this.#farewell = Object.assign(new Error(notice.message), { code: CRASHED })
  }

  /** The same error, which says why the connection was lost if the server has told. */
  explained(error: unknown): unknown {
    const lost = this.#farewell && [...causes(error)].find(isConnectionLoss)
    // It may be frozen.
    if (lost instanceof Error && lost.cause === undefined) Reflect.set(lost, 'cause', this.#farewell)
    return error
  }

  /** A BEGIN that gets no answer in time takes its connection with it. */
  limitBegin(limitMs: number): void {
    const answered = unlessWithin(limitMs, () => hangUp(this.client, silent(limitMs)))
    this.begun.then(answered, answered)
  }

  /** For how long the server has been silent though it owes an answer, and has what it was sent. */
  get silentMs(): number {
    return Math.max(0, this.watch.silentMs - this.#travelMs)
  }

  /** Runs a statement of oncebox, for this transaction or a loan of it. Nobody has to await it: a failure shows at COMMIT. */
  send(statement: Statement, watch = this.watch): Promise<Answer> {
    let travel = 0
    for (const value of statement.values ?? []) if (typeof value === 'string') travel += travelMs(value)
    this.#travelMs += travel
    const done = watch.expect()
    // BEGIN was answered before: if it failed, that is what happened to this statement too.
    const answered = (error?: unknown): unknown => {
      this.#travelMs -= travel
      done(error)
      return this.beginError
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

  get #pipelining(): boolean {
    return this.pipelines && this.client.pipeline === true
  }

  /** The client as its owner set it up, for the time of a handler: cursors do not work in pipeline mode. */
  pausePipeline(): void {
    // With statements under way the switch would mix up their answers.
    if (this.pipelines && this.watch.unanswered === 0) this.client.pipeline = this.#usersPipeline
  }

  #resumePipeline(): void {
    if (this.pipelines) this.client.pipeline = true
  }

  /** The status after a handler. If nothing is wrong, the pipeline goes on. */
  afterHandler(): Status | Promise<Status> {
    const resumed = (status: Status): Status => {
      if (status === 'in transaction') this.#resumePipeline()
      return status
    }
    const known = knownStatus(this.client)
    return known === undefined ? transactionStatus(this.client).then(resumed) : resumed(known)
  }

  async commit(): Promise<void> {
    const { watch, client } = this
    const swallowed = watch.failure
    // From here on it is what failed behind the back of `work`.
    watch.failure = undefined
    watch.close()
    const answered = watch.expect()
    if (!this.#pipelining) await this.#queue.catch(ignore)
    try {
      const answer = await heedWarnings(
        client,
        async () => {
          const commit = ask(client, { text: 'COMMIT' })
          commit.catch(ignore)
          await this.begun
          return commit
        },
        () => watch.unanswered === 1,
      )
      if (answer.command === 'ROLLBACK') throw rolledBack(swallowed)
    } catch (error) {
      // A statement that the server refused cannot have been committed, whatever happened to the COMMIT behind it.
      const late = watch.failure
      throw sqlState(late) !== undefined && !isConnectionLoss(late) ? late : error
    } finally {
      answered()
    }
  }

  /** Rolls back what `work` gave up. Answers whether the connection can be used again. */
  async rollback(): Promise<boolean> {
    this.watch.close()
    try {
      return await within(ROLLBACK_MS, this.#rollback(), () => new Error(`no answer within ${ROLLBACK_MS} ms`))
    } catch {
      return false
    }
  }

  async #rollback(): Promise<boolean> {
    if (this.#begins && this.watch.unanswered === 1) await this.begun
    // The server tells an error and that it is ready in two messages, which may not arrive together.
    const answered = (): boolean => this.watch.unanswered === 0 && this.#broken === undefined
    for (let ms = 0; ms < READY_MS && answered() && this.#busy(); ms++) await sleep(1)
    if (this.#busy()) return false
    await ask(this.client, { text: 'ROLLBACK' })
    return true
  }

  /** True if a statement is under way, be it sent past us: by the raw client, or a cursor left open. */
  #busy(): boolean {
    return this.watch.unanswered > 0 || this.#broken !== undefined || this.client.readyForQuery === false
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
    this.client.off('notice', this.#onNotice)
    if (this.pipelines) this.client.pipeline = this.#usersPipeline
  }

  /** Closes the connection at once, and stops what the server is doing for it: a lock must not outlive us. */
  destroy(reason: unknown): void {
    if (this.#broken === undefined && this.#busy()) cancelStatement(this.client)
    // In pipeline mode `end` would wait for statements under way, which may be the very ones that hang.
    if (this.pipelines) this.client.pipeline = false
    this.client.release?.(reason instanceof Error ? reason : true)
    this.client.off('error', this.#onError)
    this.client.off('notice', this.#onNotice)
  }
}
