/** One handler call: its context, its deadline, and what it sent. */
import { isAbandonment, OnceboxError } from '../errors.js'
import { batchRun, type BatchContext, type Context, type EffectOptions, type Logger } from '../handler.js'
import type { Json, Message, MessageMap } from '../message.js'
import { endThrown } from '../telemetry/process.js'
import type { OpenSpan } from '../telemetry/span.js'
import { CallWithin, type Ends } from './call-within.js'
import { CallContext } from './context.js'
import type { HeldMessage } from './held.js'
import { refuseUndone, toResult } from './outcome.js'
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
  readonly company?: Neighbours | undefined
  /** Where to put what it sends, if not behind what others have sent in its transaction. */
  readonly outgoing?: Opened['outgoing'] | undefined
}

/** How a handler is called, and who is told the JSON text of its result. */
export interface Call extends Manner, Ends<string | undefined> {}

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
 * called, with RESULT_INVALID if it returned an error or what has not run yet, and with the driver's complaint if it misused the
 * transaction. What it sent is kept only if it returns.
 */
export function callHandler(
  run: Run,
  open: Opened,
  messages: readonly HeldMessage[],
  manner: Manner,
): Promise<string | undefined> {
  const { effects, company, outgoing } = manner
  return new Promise((returned, failed) =>
    beginHandler(run, open, messages, { effects, company, outgoing, returned, failed }),
  )
}

/** The same for one of many, by callback: a promise for each would cost as much as the rest of the call. */
export function beginHandler(run: Run, open: Opened, messages: readonly HeldMessage[], call: Call): void {
  new HandlerCall(run, open, messages, call).call()
}

/** A call under way. How long its handler runs counts for each of its messages, but not of a run that an effect has ended. */
class HandlerCall extends CallWithin<unknown> {
  readonly #run: Run
  readonly #open: Opened
  readonly #call: Call
  readonly #handler: unknown
  readonly #span: OpenSpan | undefined
  #context: HandlerContext | undefined
  #started = 0
  readonly messages: readonly HeldMessage[]

  constructor(run: Run, open: Opened, messages: readonly HeldMessage[], call: Call) {
    super()
    this.#run = run
    this.#open = open
    this.messages = messages
    this.#call = call
    const { runtime, consumer } = run.worker
    this.#handler = consumer.handlerOf(messages[0]!.type)
    this.#span = runtime.traces.process(consumer.name, messages)
  }

  get worker(): Worker {
    return this.#run.worker
  }

  call(): void {
    if (this.#span) this.#span.run(() => this.#begin())
    else this.#begin()
  }

  #begin(): void {
    const { worker, abort } = this.#run
    const { tx } = this.#open
    const { company } = this.#call
    this.#open.calls()
    try {
      const { driver } = worker.runtime.db
      const loan = company ? driver.lendTogether!(tx, company.leave) : driver.lend?.(tx)
      this.#context = new HandlerContext(this, loan ? loan.tx : tx)
      this.#started = performance.now()
      this.begin({ timeoutMs: worker.consumer.options.timeoutMs, abort }, this.#context, loan)
    } catch (error) {
      this.#end(error)
    }
  }

  protected handle(): unknown {
    const context = this.#context!
    const many = batchRun(this.#handler)
    return many
      ? many(messagesOf(this.messages), context)
      : (this.#handler as PlainHandler)(this.messages[0]!.message, context)
  }

  /** Asked for once, by the first effect of the call. */
  effects(): EffectRunner {
    return this.#call.effects.runIn(this.#open.tx)
  }

  returned(result: unknown): void {
    const { effects, outgoing = this.#open.outgoing } = this.#call
    this.#ran('ok')
    let text: string | undefined
    try {
      refuseUndone(result)
      for (const sent of this.#context!.sent) outgoing.push(sent)
      text = batchRun(this.#handler) ? undefined : toResult(result)
      effects.check()
    } catch (error) {
      return this.#end(error)
    }
    this.#span?.workedUntilNow()
    this.#call.returned(text)
  }

  failed(error: unknown): void {
    // What fails behind another's failure may fail because of it.
    if (!isAbandonment(error) && !this.#call.company?.haveFailed()) this.#ran('error')
    const ranMs = performance.now() - this.#started
    for (const message of this.messages) message.ranMs = ranMs
    this.#end(error)
  }

  #ran(outcome: 'ok' | 'error'): void {
    const ms = performance.now() - this.#started
    this.worker.metrics.ran(this.messages[0]!.type, this.messages.length, ms, outcome)
  }

  #end(error: unknown): void {
    this.#open.threw(error)
    if (this.#span) endThrown(this.#span, error)
    this.#call.failed(error)
  }
}

function messagesOf(held: readonly HeldMessage[]): readonly Message[] {
  return held.map(({ message }) => message)
}

/** Who called it nobody knows. */
const DRAINED = 'if it awaits box.drain(), it waits for itself; else '

/** Is a drain under way that began in the last `ms`, with what a timer may be late? */
function drainedSince({ runtime }: Worker, ms: number): boolean {
  const earliest = performance.now() - ms - 100
  return [...runtime.drains].some(({ since }) => since > earliest)
}

type PlainHandler = (message: Message, ctx: HandlerContext) => unknown

/** The context of a consumer's call. `log` is made when it is first asked for. */
class HandlerContext extends CallContext implements Context<MessageMap, unknown>, BatchContext<MessageMap, unknown> {
  readonly #call: HandlerCall
  #runEffect: EffectRunner | undefined
  #log: Logger | undefined
  #abandoned: OnceboxError | undefined

  constructor(call: HandlerCall, tx: unknown) {
    super(call.worker.runtime, tx)
    this.#call = call
  }

  get attempt(): number {
    return this.#call.messages[0]!.message.attempt
  }

  get log(): Logger {
    this.#log ??= bindLogger(this.#call.worker, messagesOf(this.#call.messages))
    return this.#log
  }

  protected get cause(): Message | undefined {
    const { messages } = this.#call
    return messages.length === 1 ? messages[0]!.message : undefined
  }

  readonly effect: Context<MessageMap, unknown>['effect'] = (name, run, options) =>
    this.watch('effect', () => {
      this.#runEffect ??= this.#call.effects()
      return this.#runEffect(name, run, options, () => this.isOpen).catch((error: unknown) => this.#abandon(error))
    })

  /**
   * The first effect without an outcome ends the run, and its rejection is the one that the handler sees. What was begun
   * beside it never settles: it might reject a promise that the handler has not come to yet, which would end the process.
   */
  #abandon(error: unknown): Promise<never> {
    if (this.#abandoned) {
      // A handler that caught the first rejection would wait for ever.
      this.#call.end(this.#abandoned)
      return new Promise(() => undefined)
    }
    if (isAbandonment(error)) this.#abandoned = error
    throw error
  }

  tookTooLong(): OnceboxError {
    const { messages, worker } = this.#call
    const { name, options } = worker.consumer
    const what = messages.length === 1 ? `message ${messages[0]!.message.id}` : `a batch of ${messages.length}`
    const advice = `${drainedSince(worker, options.timeoutMs) ? DRAINED : ''}raise timeoutMs, or make it faster`
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
