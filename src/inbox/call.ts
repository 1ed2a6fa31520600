/** One handler call: its context, its deadline, and what it sent. */
import { isAbandonment, OnceboxError } from '../errors.js'
import { batchRun, type BatchContext, type Context, type EffectOptions, type Logger } from '../handler.js'
import type { Json, Message, MessageMap } from '../message.js'
import { endThrown } from '../telemetry/process.js'
import type { OpenSpan } from '../telemetry/span.js'
import { beginWithin, type Ends } from './call-within.js'
import { CallContext } from './context.js'
import type { HeldMessage } from './held.js'
import { refuseError, toResult } from './outcome.js'
import type { Run, Worker } from './run.js'
import type { Opened } from './transaction.js'

/** How `ctx.effect` is answered. */
export type EffectRunner = <R>(
  name: string,
  run: (call: { idempotencyKey: string; signal: AbortSignal }) => R | Promise<R>,
  options: EffectOptions | undefined,
  /** False once the handler has returned: what it did not wait for is not called. */
  isOpen: () => boolean,
) => Promise<Json<R>>

/** The effects of one message; what becomes of them depends on whether it has a record, and its transaction to itself. */
export interface Effects {
  runIn(tx: unknown): EffectRunner
  /** Throws if an effect has ended the run: a handler that catches everything must not settle without it. */
  check(): void
}

/** Handlers that run in the same transaction at the same time. */
export interface Neighbours {
  /** Has one of them failed? */
  haveFailed(): boolean
  /** The handler does what cannot be done beside others. */
  readonly leave: () => void
}

/** How a handler is called. */
export interface Manner {
  readonly effects: Effects
  /** Undefined if it has its transaction to itself while it runs. */
  readonly company?: Neighbours
  /** Where to put what it sends, if not behind what others have sent in its transaction. */
  readonly outgoing?: Opened['outgoing']
}

/** For calls that have no record to keep an outcome in. */
export const NO_EFFECTS: Effects = {
  runIn: () => () =>
    Promise.reject(
      new OnceboxError('OPTION_INVALID', "effects need a message and a record: not in batches, not in mode 'direct'"),
    ),
  check: () => undefined,
}

/**
 * Calls the handler of these messages in an open transaction. Answers the JSON text of its result: none of a batch. Rejects
 * with what it throws, with HANDLER_TIMEOUT after the deadline, with UNAWAITED_CALL if it did not wait for what it sent or
 * called, with RESULT_INVALID if it returned an error, and with the driver's complaint if it misused the transaction. What
 * it sent is kept only if it returns.
 */
export function callHandler(
  run: Run,
  open: Opened,
  messages: readonly HeldMessage[],
  manner: Manner,
): Promise<string | undefined> {
  return new Promise((returned, failed) => beginHandler(run, open, { messages, manner, ends: { returned, failed } }))
}

/** The same for one of many, by callback: a promise for each would cost as much as the rest of the call. */
export function beginHandler(run: Run, open: Opened, call: Call): void {
  new HandlerCall(run, open, call).begin()
}

/** Which messages a handler is called with, how, and who is told what comes of it. */
export interface Call {
  readonly messages: readonly HeldMessage[]
  readonly manner: Manner
  readonly ends: Ends<string | undefined>
}

/** A call under way. How long its handler runs counts for each of its messages, but not of a run that an effect has ended. */
class HandlerCall {
  readonly #run: Run
  readonly #open: Opened
  readonly #call: Call
  readonly #span: OpenSpan | undefined
  #context: HandlerContext | undefined
  #started = 0

  constructor(run: Run, open: Opened, call: Call) {
    this.#run = run
    this.#open = open
    this.#call = call
    const { runtime, consumer } = run.worker
    this.#span = runtime.traces.process(consumer.name, call.messages)
  }

  begin(): void {
    if (this.#span) this.#span.run(() => this.#begin())
    else this.#begin()
  }

  #begin(): void {
    const { worker, abort } = this.#run
    const { runtime, consumer } = worker
    const { messages, manner } = this.#call
    const { tx } = this.#open
    this.#open.calls()
    try {
      const { driver } = runtime.db
      const loan = manner.company ? driver.lendTogether!(tx, manner.company.leave) : driver.lend?.(tx)
      const subject = messages.map(({ message }) => message)
      const context = new HandlerContext(worker, subject, loan ? loan.tx : tx, manner.effects.runIn(tx))
      this.#context = context
      const handler = consumer.handlerOf(messages[0]!.type)
      const many = batchRun(handler)
      const handle = (): unknown => (many ? many(subject, context) : (handler as PlainHandler)(subject[0]!, context))
      this.#started = performance.now()
      beginWithin({ timeoutMs: consumer.options.timeoutMs, abort }, handle, { context, loan }, this)
    } catch (error) {
      this.#end(error)
    }
  }

  returned(result: unknown): void {
    const { messages, manner, ends } = this.#call
    this.#ran('ok')
    let text: string | undefined
    try {
      refuseError(result)
      const outgoing = manner.outgoing ?? this.#open.outgoing
      for (const sent of this.#context!.sent) outgoing.push(sent)
      text = batchRun(this.#run.worker.consumer.handlerOf(messages[0]!.type)) ? undefined : toResult(result)
      manner.effects.check()
    } catch (error) {
      return this.#end(error)
    }
    this.#span?.workedUntilNow()
    ends.returned(text)
  }

  failed(error: unknown): void {
    const { messages, manner } = this.#call
    // What fails behind another's failure may fail because of it.
    if (!isAbandonment(error) && !manner.company?.haveFailed()) this.#ran('error')
    const ranMs = performance.now() - this.#started
    for (const message of messages) message.ranMs = ranMs
    this.#end(error)
  }

  #ran(outcome: 'ok' | 'error'): void {
    const { messages } = this.#call
    const ms = performance.now() - this.#started
    this.#run.worker.metrics.ran(messages[0]!.type, messages.length, ms, outcome)
  }

  #end(error: unknown): void {
    this.#open.threw(error)
    if (this.#span) endThrown(this.#span, error)
    this.#call.ends.failed(error)
  }
}

type PlainHandler = (message: Message, ctx: HandlerContext) => unknown

/** The context of a consumer's call. `log` is made when it is first asked for. */
class HandlerContext extends CallContext implements Context<MessageMap, unknown>, BatchContext<MessageMap, unknown> {
  readonly #worker: Worker
  readonly #subject: readonly Message[]
  readonly #effect: EffectRunner
  #log: Logger | undefined
  #abandoned: OnceboxError | undefined

  constructor(worker: Worker, subject: readonly Message[], tx: unknown, effect: EffectRunner) {
    super(worker.runtime, tx)
    this.#worker = worker
    this.#subject = subject
    this.#effect = effect
  }

  get attempt(): number {
    return this.#subject[0]!.attempt
  }

  get log(): Logger {
    this.#log ??= bindLogger(this.#worker, this.#subject)
    return this.#log
  }

  protected get cause(): Message | undefined {
    return this.#subject.length === 1 ? this.#subject[0] : undefined
  }

  readonly effect: Context<MessageMap, unknown>['effect'] = (name, run, options) =>
    this.watch('effect', () =>
      this.#effect(name, run, options, () => this.isOpen).catch((error: unknown) => this.#abandon(error)),
    )

  /**
   * The first effect without an outcome ends the run, and its rejection is the one that the handler sees. What was begun
   * beside it never settles: it might reject a promise that the handler has not come to yet, which would end the process.
   */
  #abandon(error: unknown): Promise<never> {
    if (this.#abandoned) {
      // A handler that caught the first rejection would wait for ever.
      this.end(this.#abandoned)
      return new Promise(() => undefined)
    }
    if (isAbandonment(error)) this.#abandoned = error
    throw error
  }

  tookTooLong(): OnceboxError {
    const { name, options } = this.#worker.consumer
    const what = this.#subject.length === 1 ? `message ${this.#subject[0]!.id}` : `a batch of ${this.#subject.length}`
    const advice = 'raise timeoutMs, or make it faster'
    const text = `${name} took longer than ${options.timeoutMs} ms for ${what}; ${advice}`
    return new OnceboxError('HANDLER_TIMEOUT', text)
  }
}

function bindLogger({ runtime, consumer: { name: consumer } }: Worker, subject: readonly Message[]): Logger {
  const { log, traces } = runtime
  const first = subject[0]!
  const traceId = traces.traceId(subject.length === 1 ? first.headers : {})
  const bound = {
    ...(subject.length === 1
      ? { id: first.id, type: first.type, consumer, attempt: first.attempt, correlationId: first.correlationId }
      : { type: first.type, consumer, messages: subject.length }),
    ...(traceId !== undefined && { traceId }),
  }
  return {
    debug: (o, m) => log.debug({ ...bound, ...o }, m),
    info: (o, m) => log.info({ ...bound, ...o }, m),
    warn: (o, m) => log.warn({ ...bound, ...o }, m),
    error: (o, m) => log.error({ ...bound, ...o }, m),
  }
}
