/** One handler call: its context, its deadline, and what it sent. */
import { OnceboxError } from '../errors.js'
import { batchRun, type BatchContext, type Context, type EffectOptions, type Logger } from '../handler.js'
import type { Json, Message, MessageMap } from '../message.js'
import { callWithin } from './call-within.js'
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
  effects: Effects,
): Promise<string | undefined> {
  const { runtime, consumer } = run.worker
  const call = async (): Promise<string | undefined> => {
    const loan = runtime.db.driver.lend?.(open.tx)
    const subject = messages.map(({ message }) => message)
    const context = new HandlerContext(run.worker, subject, loan ? loan.tx : open.tx, effects.runIn(open.tx))
    const handler = consumer.handlerOf(messages[0]!.type)
    const many = batchRun(handler)
    const handle = (): unknown => (many ? many(subject, context) : (handler as PlainHandler)(subject[0]!, context))
    const { timeoutMs } = consumer.options
    const time = { timeoutMs, abort: run.abort }
    const result = await measured(run, messages, callWithin(time, handle, context, loan))
    refuseError(result)
    for (const sent of context.sent) open.outgoing.push(sent)
    const text = many ? undefined : toResult(result)
    effects.check()
    return text
  }
  return open.call(runtime.traces.process(consumer.name, messages, call))
}

/** How long a handler runs counts for each of its messages, but not of a run that an effect has ended. */
async function measured<R>({ worker }: Run, messages: readonly HeldMessage[], running: Promise<R>): Promise<R> {
  const { type } = messages[0]!
  const started = performance.now()
  const ran = (outcome: 'ok' | 'error'): void => {
    worker.metrics.ran(type, messages.length, performance.now() - started, outcome)
  }
  try {
    const result = await running
    ran('ok')
    return result
  } catch (error) {
    if (!(error instanceof OnceboxError && error.code === 'GROUP_ABANDONED')) ran('error')
    const ranMs = performance.now() - started
    for (const message of messages) message.ranMs = ranMs
    throw error
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
    if (error instanceof OnceboxError && error.code === 'GROUP_ABANDONED') this.#abandoned = error
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
