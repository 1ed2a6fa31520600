/**
 * The effects journal: calls outside the database, at most once known and never silently doubled.
 *
 * The first effect of an attempt without a recorded outcome abandons the transaction. Then, with no transaction open:
 * the intent is committed, the call is made, the outcome is committed; and the handler runs again from its start, with
 * the outcome replayed. A crash between call and record leaves an intent, which means: unknown.
 */
import { createHash } from 'node:crypto'
import { inspect } from 'node:util'
import { checkFunction, checkInteger, checkKnown, checkOneOf, nameProblem, requireFunction } from '../check-options.js'
import { OnceboxError, Reject, RetryLater } from '../errors.js'
import { causes } from '../failure.js'
import type { EffectOptions } from '../handler.js'
import type { Json } from '../message.js'
import { isConnectionLoss, notTheDatabase } from '../postgres/driver.js'
import { FORGET_EFFECT, INTEND, READ_EFFECTS, RECORD_EFFECT } from '../postgres/sql/effects.js'
import type { Runtime } from '../runtime.js'
import { backoffMs, sleep } from '../backoff.js'
import { failpoint } from '../worker/failpoints.js'

/** Whose effect it is: the key of a message in its consumer's journal. */
export interface EffectSubject {
  readonly consumer: string
  readonly source: string
  readonly id: string
}

export interface WantedEffect {
  readonly name: string
  readonly run: (call: { idempotencyKey: string; signal: AbortSignal }) => unknown
  readonly options: EffectOptions
}

/** Nobody knows whether the call happened, and its author wants a person to find out. */
export class EffectUnknown extends Error {
  override readonly name = 'EffectUnknown'
  constructor(
    readonly effect: string,
    cause?: unknown,
  ) {
    super(`nobody knows whether effect '${effect}' happened; find out, and tell with admin.answer()`, { cause })
  }
}

/** How long an outcome that cannot be recorded is kept in memory while the database is away. */
const RECORD_PATIENCE_MS = 60_000

const DAY = 86_400_000

/** The effects of one message, over all runs of its handler in this attempt. */
export class EffectJournal {
  readonly #runtime: Runtime
  readonly #subject: EffectSubject
  #recorded: Map<string, string | null> | undefined
  #wanted: WantedEffect | undefined

  constructor(runtime: Runtime, subject: EffectSubject) {
    this.#runtime = runtime
    this.#subject = subject
  }

  /** `ctx.effect` for a run in this transaction: replays a recorded outcome, else gives the transaction up. */
  runIn(tx: unknown) {
    return async <R>(
      name: string,
      run: (call: { idempotencyKey: string; signal: AbortSignal }) => R | Promise<R>,
      options: EffectOptions = {},
    ): Promise<Json<R>> => {
      const problem = nameProblem(name, 200)
      if (problem) throw new OnceboxError('OPTION_INVALID', `the name of an effect ${problem}`)
      checkEffect(`effect '${name}'`, run, options)
      this.#recorded ??= await this.#read(tx)
      const recorded = this.#recorded.get(name)
      if (recorded !== undefined) return (recorded === null ? undefined : JSON.parse(recorded)) as Json<R>
      this.#wanted ??= { name, run, options }
      throw this.#abandoned()
    }
  }

  /** A handler that catches everything must not commit without its effect. */
  check(): void {
    if (this.#wanted) throw this.#abandoned()
  }

  /** The effect that ended the last run, if one did. Asking forgets it. */
  takeWanted(): WantedEffect | undefined {
    const wanted = this.#wanted
    this.#wanted = undefined
    return wanted
  }

  /**
   * Calls an effect, with no transaction open. Resolves once its outcome is on record. Rejects with what the call threw
   * if it is to be retried, and with EffectUnknown if a person has to decide.
   */
  async perform(wanted: WantedEffect, token: string, timeoutMs: number, abort: Abortable): Promise<void> {
    const { name, options } = wanted
    const key = { c: this.#subject.consumer, s: this.#subject.source, i: this.#subject.id, n: name }
    const [row] = await this.#runtime.db.run(INTEND, { ...key, k: token })
    if (row!['before'] === 'done') return void this.#recorded!.set(name, row!['result'] as string | null)
    if (row!['held'] === '0') throw new OnceboxError('CLAIM_LOST', `message ${key.i} was claimed by another worker`)
    // Somebody called before and nobody recorded what came of it.
    if (row!['before'] === 'intent' && options.onUnknown === 'park') throw new EffectUnknown(name)
    if (abort.aborted) {
      // Nothing was called: the intent must not pass for a call whose outcome nobody knows.
      if (row!['before'] === null) await this.#runtime.db.run(FORGET_EFFECT, key)
      throw abort.aborted
    }
    failpoint('intended')
    let text: string | null
    try {
      const result = await this.#call(wanted, options.timeoutMs ?? timeoutMs, abort)
      text = toText(result)
    } catch (error) {
      for (const cause of causes(error)) notTheDatabase(cause)
      if (isDefinite(error, options)) await this.#runtime.db.run(FORGET_EFFECT, key)
      else if (options.onUnknown === 'park') throw new EffectUnknown(name, error)
      throw error
    }
    failpoint('called')
    await this.#record(key, text)
    this.#recorded!.set(name, text)
  }

  async #read(tx: unknown): Promise<Map<string, string | null>> {
    const { consumer, source, id } = this.#subject
    const rows = await this.#runtime.db.run(READ_EFFECTS, [consumer, source, id], tx)
    const done = rows.filter((row) => row['state'] === 'done')
    return new Map(done.map((row) => [row['name'] as string, row['result'] as string | null]))
  }

  #call({ name, run }: WantedEffect, timeoutMs: number, abort: Abortable): Promise<unknown> {
    const controller = new AbortController()
    return new Promise((resolve, reject) => {
      const stop = (reason: Error): void => {
        controller.abort(reason)
        reject(reason)
      }
      const timer = setTimeout(() => {
        stop(
          new OnceboxError('HANDLER_TIMEOUT', `effect '${name}' took longer than ${timeoutMs} ms; raise its timeoutMs`),
        )
      }, timeoutMs)
      const forget = abort.onAbort(stop)
      const end = (): void => {
        clearTimeout(timer)
        forget()
      }
      Promise.resolve()
        .then(() => run({ idempotencyKey: idempotencyKey(this.#subject, name), signal: controller.signal }))
        .then(resolve, reject)
        .finally(end)
    })
  }

  /** The call has happened: its outcome is worth waiting for a database that is away. */
  async #record(key: object, text: string | null): Promise<void> {
    const end = performance.now() + RECORD_PATIENCE_MS
    for (let attempt = 0; ; attempt++) {
      try {
        await this.#runtime.db.run(RECORD_EFFECT, { ...key, r: text })
        return
      } catch (error) {
        if (!isConnectionLoss(error) || performance.now() > end) throw error
        await sleep(backoffMs(attempt, 50, 1_000))
      }
    }
  }

  #abandoned(): OnceboxError {
    return new OnceboxError(
      'GROUP_ABANDONED',
      'the handler calls an effect and runs again once its outcome is recorded',
    )
  }
}

/** A misspelt `onUnknown` would call again what its author wanted to be called once. */
function checkEffect(where: string, run: unknown, options: EffectOptions): void {
  requireFunction(`${where}: its second argument`, run)
  checkKnown(where, options, ['onUnknown', 'isDefinite', 'timeoutMs'])
  checkOneOf(`${where}: onUnknown`, options.onUnknown ?? 'retry', ['retry', 'park'])
  checkFunction(`${where}: isDefinite`, options.isDefinite)
  if (options.timeoutMs !== undefined) checkInteger(`${where}: timeoutMs`, options.timeoutMs, 1, DAY)
}

interface Abortable {
  readonly aborted: Error | undefined
  onAbort(listener: (reason: Error) => void): () => void
}

/** The same on every attempt, and different for every message, consumer and step. */
function idempotencyKey({ consumer, source, id }: EffectSubject, name: string): string {
  return createHash('sha256')
    .update(JSON.stringify([consumer, source, id, name]))
    .digest('hex')
    .slice(0, 40)
}

/** Did the call certainly not happen? What steers a message was thrown by the caller's own code, so it knows. */
function isDefinite(error: unknown, { isDefinite: vouches }: EffectOptions): boolean {
  return error instanceof Reject || error instanceof RetryLater || vouches?.(error) === true
}

/** The call has happened: a result that JSON cannot hold is no reason to call again, so what can be told of it is kept. */
function toText(result: unknown): string | null {
  try {
    return result === undefined ? null : (JSON.stringify(result) ?? null)
  } catch {
    return JSON.stringify({ unserializable: inspect(result, { depth: 1 }).slice(0, 1_000).toWellFormed() })
  }
}
