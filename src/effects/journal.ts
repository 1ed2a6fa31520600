/**
 * The effects journal: calls outside the database, at most once known and never silently doubled.
 *
 * The first effect of an attempt without a recorded outcome abandons the transaction. Then, with no transaction open:
 * the intent is committed, the call is made, the outcome is committed; and the handler runs again from its start, with
 * the outcome replayed. A crash between call and record leaves an intent, which means: unknown.
 *
 * An intent is its caller's: each call writes a token, and nobody else takes the intent back. An outcome is everybody's:
 * it is recorded whenever it comes, also after the claim is lost, and the first one stands.
 */
import { randomUUID } from 'node:crypto'
import { nameProblem } from '../check-options.js'
import { OnceboxError, ownError } from '../errors.js'
import { causes, toFailure } from '../failure.js'
import type { EffectOptions } from '../handler.js'
import type { Json } from '../message.js'
import { isPoolEnded, isUnavailable, isUntranslatable, mayHaveCommitted, notTheDatabase } from '../postgres/errors.js'
import {
  FORGET_EFFECT,
  INTEND,
  READ_EFFECTS,
  RECORD_EFFECT,
  RESUME_RECORDED,
  type EffectSubject,
} from '../postgres/sql/effects.js'
import type { Statement } from '../postgres/statement.js'
import { readable } from '../readable.js'
import type { Runtime } from '../runtime.js'
import {
  checkEffect,
  EffectUnknown,
  idempotencyKey,
  isDefinite,
  namedAnew,
  usedTwice,
  type WantedEffect,
} from './effect.js'
import { toAscii, toText } from './outcome.js'
import { backoffMs, sleep } from '../backoff.js'
import { deadline, type Abort } from '../worker/abort.js'
import { failpoint } from '../worker/failpoints.js'

/** A statement of the journal failed, beside every transaction: whatever it failed of, no handler did it. */
export class JournalFailed extends Error {
  override readonly name = 'JournalFailed'
  constructor(override readonly cause: unknown) {
    super('the effects journal could not be written', { cause })
  }
}

/** For so long a message waits for what is known of its call to be written. */
const PATIENCE_MS = 60_000
/** How often it is tried after that, with nobody waiting. */
const AGAIN_MS = 1_000

/**
 * So many runs in a row may want another effect without a word of any that was called in this attempt. Effects that are begun side
 * by side may be asked for in another order each time; one that has another name each time would be called without end.
 */
const MOST_STRAYS = 20

/** A committed intent to call. */
interface Intent {
  readonly name: string
  readonly call: string
  readonly called: string
  /** What was on record: nothing, a call with an unknown outcome, or an outcome. */
  readonly before: 'intent' | 'done' | null
  readonly result: string | null
}

/** The effects of one message, over all runs of its handler in this attempt. */
export class EffectJournal {
  readonly #runtime: Runtime
  readonly #subject: EffectSubject
  #recorded: Map<string, string | null> | undefined
  /** Under way: effects that are begun together ask once, or an answer would still be missing when the first ends the run. */
  #reading: Promise<Map<string, string | null>> | undefined
  #wanted: WantedEffect | undefined
  /** Those that were called, and how many runs in a row have wanted another one without asking for any of them. */
  readonly #called = new Set<string>()
  #strays = 0
  /** A run that used a name twice, or strayed once too often, has failed, whatever its handler makes of it: nothing is called for it. */
  #refused: OnceboxError | undefined

  constructor(runtime: Runtime, subject: EffectSubject) {
    this.#runtime = runtime
    this.#subject = subject
  }

  /** `ctx.effect` for a run in this transaction: replays a recorded outcome, else gives the transaction up. */
  runIn(tx: unknown) {
    // A second outcome under one name would be taken for the first.
    const used = new Set<string>()
    this.#refused = undefined
    return async <R>(
      name: string,
      run: (call: { idempotencyKey: string; signal: AbortSignal }) => R | Promise<R>,
      options: EffectOptions = {},
      isOpen: () => boolean = () => true,
    ): Promise<Json<R>> => {
      const problem = nameProblem(name, 200)
      if (problem) throw new OnceboxError('OPTION_INVALID', `the name of an effect ${problem}`)
      checkEffect(`effect '${name}'`, run, options)
      if (used.has(name)) throw (this.#refused ??= usedTwice(name))
      used.add(name)
      const recorded = (this.#recorded ?? (await this.#load(tx))).get(name)
      if (recorded !== undefined) return (recorded === null ? undefined : JSON.parse(recorded)) as Json<R>
      // This run has come to nothing, so to ask again is not to ask twice.
      used.delete(name)
      // A handler that did not wait for its effect has failed: nothing is called for it.
      if (isOpen() && !this.#wanted) {
        if (this.#hasStrayed(used)) throw (this.#refused ??= namedAnew(name, [...this.#called].at(-1)!))
        this.#wanted = { name, run, options, within: this.#runtime.traces.context }
      }
      throw this.#refused ?? this.#abandoned()
    }
  }

  /** A run that has used these wants another one: has it, like too many before, asked for nothing that was called? */
  #hasStrayed(used: ReadonlySet<string>): boolean {
    const isStray = this.#called.size > 0 && ![...used].some((name) => this.#called.has(name))
    this.#strays = isStray ? this.#strays + 1 : 0
    return this.#strays > MOST_STRAYS
  }

  /** A handler that catches everything must not commit without its effect. */
  check(): void {
    if (this.#refused) throw this.#refused
    if (this.#wanted) throw this.#abandoned()
  }

  /** The effect that ended the last run, if one did. Asking forgets it. */
  takeWanted(): WantedEffect | undefined {
    const wanted = this.#wanted
    this.#wanted = undefined
    return this.#refused ? undefined : wanted
  }

  /**
   * Calls an effect, with no transaction open. Resolves once its outcome is on record. Rejects with what the call threw
   * if it is to be retried, and with EffectUnknown if a person has to decide. When the deadline passes, the claim is lost
   * or the box stops, it rejects at once; what comes of the call later is recorded all the same.
   */
  async perform(
    wanted: WantedEffect,
    token: string,
    limits: { readonly leaseMs: number; readonly timeoutMs: number },
    abort: Abort,
  ): Promise<void> {
    const { name, options } = wanted
    this.#called.add(name)
    const intent = await this.#intend(wanted, token, limits.leaseMs, abort)
    if (intent.before === 'done') return void this.#recorded!.set(name, intent.result)
    // Somebody called before and nobody recorded what came of it.
    if (intent.before === 'intent' && options.onUnknown === 'park') throw new EffectUnknown(name)
    if (abort.aborted) {
      await this.#forget(intent)
      throw abort.aborted
    }
    failpoint('intended', this.#runtime.db)
    await this.#call(wanted, intent, options.timeoutMs ?? limits.timeoutMs, abort)
  }

  async #load(tx: unknown): Promise<Map<string, string | null>> {
    this.#reading ??= this.#read(tx)
    try {
      return (this.#recorded = await this.#reading)
    } finally {
      this.#reading = undefined
    }
  }

  async #read(tx: unknown): Promise<Map<string, string | null>> {
    const rows = await this.#runtime.db.run(READ_EFFECTS, this.#subject, tx)
    return new Map(rows.filter(({ state }) => state === 'done').map(({ name, result }) => [name, result]))
  }

  async #intend(wanted: WantedEffect, token: string, leaseMs: number, abort: Abort): Promise<Intent> {
    const { name, options } = wanted
    const call = randomUUID()
    const param = { ...this.#subject, name, token, call, leaseMs, park: options.onUnknown === 'park' }
    let intent: Intent | undefined
    for (;;) {
      const asked = performance.now()
      const [row] = await this.#write(INTEND, param).catch(async (error: unknown) => {
        await this.#forgetUnheard({ name, call }, error as JournalFailed, abort)
        throw error
      })
      if (!row) {
        if (intent) await this.#forget(intent)
        throw ownError('CLAIM_LOST', `message ${this.#subject.id} was claimed by another worker`)
      }
      intent = { name, call, ...row }
      // A process that was frozen while the answer was on its way asks again: the lease has run out, and another worker
      // may have called meanwhile.
      if (performance.now() - asked < leaseMs || abort.aborted) return intent
    }
  }

  /** Nothing was called: the intent must not pass for a call whose outcome nobody knows. */
  async #forget({ name, call, called, before }: Intent): Promise<void> {
    // An earlier call is as unknown as it was.
    if (before !== null) return
    await this.#write(FORGET_EFFECT, { ...this.#subject, name, call, called })
  }

  /**
   * The intent may be on record though its answer was lost, and would pass for a call. It goes before the message is given back,
   * if there is time; else later, and a message that was parked for it runs again.
   */
  async #forgetUnheard(intent: Pick<Intent, 'name' | 'call'>, { cause }: JournalFailed, abort: Abort): Promise<void> {
    if (!mayHaveCommitted(cause)) return
    const given = { ...this.#subject, ...intent, called: null }
    const forget = async (): Promise<void> => {
      const rows = await this.#write(FORGET_EFFECT, given)
      // An intent that was still on its way, and that it had to wait for, it could not see.
      if (rows.length === 0) await this.#write(FORGET_EFFECT, given)
    }
    await unlessAborted(abort, patiently(forget)).catch(() => undefined)
  }

  async #write<In, Out>(statement: Statement<In, Out>, param: In): Promise<readonly Out[]> {
    try {
      return await this.#runtime.db.run(statement, param)
    } catch (error) {
      throw new JournalFailed(error)
    }
  }

  #call(wanted: WantedEffect, intent: Intent, timeoutMs: number, abort: Abort): Promise<void> {
    const { name, run, within } = wanted
    const { traces } = this.#runtime
    const controller = new AbortController()
    const { signal } = controller
    return new Promise((resolve, reject) => {
      let late = false
      const leave = (reason: Error): void => {
        late = true
        reject(reason)
      }
      const end = deadline(abort, timeoutMs, {
        passed() {
          const text = `effect '${name}' took longer than ${timeoutMs} ms; raise its timeoutMs`
          const error = new OnceboxError('HANDLER_TIMEOUT', text)
          controller.abort(error)
          leave(wanted.options.onUnknown === 'park' ? new EffectUnknown(name, error) : error)
        },
        // The call goes on to its own deadline: one that is cut off has an outcome that nobody knows.
        aborted: leave,
      })
      Promise.resolve()
        .then(() => {
          const call = { idempotencyKey: idempotencyKey(this.#subject, name), signal }
          return traces.effect(this.#subject.consumer, { name, within }, () => run(call))
        })
        .finally(end)
        .then(
          (result) => this.#succeeded(name, result),
          (error: unknown) => this.#failed(wanted, intent, error),
        )
        .then(resolve, (error: unknown) => {
          if (late) this.#tellLate(name, error)
          // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- calls may throw anything
          else reject(error)
        })
    })
  }

  async #succeeded(name: string, result: unknown): Promise<void> {
    failpoint('called', this.#runtime.db)
    const text = toText(result)
    const [row] = await patiently(() => this.#record(name, text))
    this.#recorded!.set(name, row ? row.result : text)
    this.#count('succeeded')
  }

  /** What the encoding of the database lacks is escaped: an outcome that cannot be recorded would be called for again. */
  async #record(name: string, text: string | null): Promise<readonly { readonly result: string | null }[]> {
    const record = { ...this.#subject, name, result: text }
    try {
      return await this.#write(RECORD_EFFECT, record)
    } catch (error) {
      if (!isUntranslatable(error) || text === null) throw error
      return this.#write(RECORD_EFFECT, { ...record, result: toAscii(text) })
    }
  }

  async #failed({ name, options }: WantedEffect, intent: Intent, thrown: unknown): Promise<never> {
    const error = readable(thrown)
    for (const cause of causes(error)) notTheDatabase(cause)
    const definite = isDefinite(error, options)
    this.#count(definite ? 'failed' : 'unknown')
    if (definite) await patiently(() => this.#forget(intent))
    else if (options.onUnknown === 'park') throw new EffectUnknown(name, error)
    throw error
  }

  #count(outcome: 'succeeded' | 'failed' | 'unknown'): void {
    this.#runtime.metrics.consumer(this.#subject.consumer).effect(outcome)
  }

  /** The handler has gone on without the outcome. */
  #tellLate(effect: string, error: unknown): void {
    const { consumer, id } = this.#subject
    const about = { consumer, id, effect, error: toFailure(error).message }
    this.#runtime.log.warn(about, 'an effect failed after its message had gone on without it')
  }

  #abandoned(): OnceboxError {
    return new OnceboxError(
      'GROUP_ABANDONED',
      'the handler calls an effect and runs again once its outcome is recorded',
    )
  }
}

/**
 * What is known of a call is worth waiting for a database that is away, or will not take it yet. After a while the message
 * goes on without it, and it is kept for as long as the process lives.
 */
async function patiently<R>(write: () => Promise<R>): Promise<R> {
  const end = performance.now() + PATIENCE_MS
  for (let attempt = 0; ; attempt++) {
    try {
      return await write()
    } catch (error) {
      const { cause } = error as JournalFailed
      // What JavaScript cannot build will not be built later either, and a pool that has ended stays so: to try on would only keep
      // the process alive.
      if (cause instanceof RangeError || cause instanceof TypeError || isPoolEnded(cause)) throw error
      if (performance.now() > end) {
        if (isUnavailable(cause)) void writeLate(write)
        throw error
      }
      await sleep(backoffMs(attempt, 50, 1_000))
    }
  }
}

/** Resolves when the work does, or at once if there is no time any more: the work goes on. */
async function unlessAborted(abort: Abort, work: Promise<unknown>): Promise<void> {
  let forget: () => void = () => undefined
  const aborted = new Promise<void>((resolve) => (forget = abort.onAbort(() => resolve())))
  try {
    await (abort.aborted ? undefined : Promise.race([work, aborted]))
  } finally {
    forget()
    work.catch(() => undefined)
  }
}

/** Its timer keeps no process alive. Anything but a database that cannot serve ends it. */
async function writeLate(write: () => Promise<unknown>): Promise<void> {
  for (let away = true; away;) {
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS).unref())
    away = await write().then(
      () => false,
      (error: unknown) => isUnavailable((error as JournalFailed).cause),
    )
  }
}

/**
 * A message was parked for want of an outcome, which may have been recorded a moment before: then it runs again. Nobody else would
 * see to that, so it is worth waiting for too.
 */
export async function resumeRecorded(
  { db }: Runtime,
  subject: EffectSubject,
  unknown: EffectUnknown,
  abort: Abort,
): Promise<void> {
  const resume = async (): Promise<void> => {
    try {
      await db.run(RESUME_RECORDED, { ...subject, name: unknown.effect })
    } catch (error) {
      throw new JournalFailed(error)
    }
  }
  await unlessAborted(abort, patiently(resume)).catch((error: JournalFailed) => {
    throw error.cause
  })
}
