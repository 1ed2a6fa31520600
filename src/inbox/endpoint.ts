/** What an HTTP endpoint gets of its box: a name that remembers, and transactions as handlers get them. */
import type { CallLimits, EndpointHost } from '../endpoint.js'
import { OnceboxError } from '../errors.js'
import type { Logger } from '../handler.js'
import { writeOutgoing } from '../outbox/send.js'
import { LIMIT_IDLE } from '../postgres/sql/once.js'
import type { Runtime } from '../runtime.js'
import { Abort } from '../worker/abort.js'
import { callWithin } from './call-within.js'
import { checkNew, type ConsumerDeclaration } from './consumer.js'
import { CallContext } from './context.js'
import { once } from './once.js'
import { resolveOptions } from './options.js'
import { register } from './registry.js'

/** Beyond the deadline: a handler that has returned in time commits. */
const IDLE_MS = 5_000

export function createHost(
  runtime: Runtime,
  workers: ReadonlyMap<string, unknown>,
  endpoints: Map<string, ConsumerDeclaration>,
  added: () => void,
): EndpointHost {
  const { db } = runtime
  return {
    declare(name, retainMs) {
      checkNew(name, workers, endpoints)
      const declaration = declareEndpoint(name, retainMs)
      endpoints.set(name, declaration)
      added()
      return registration(runtime, declaration)
    },
    transaction: (work, isolation) => db.transactionForHandlers(work, isolation),
    async limitIdle(tx, timeoutMs) {
      await db.run(LIMIT_IDLE, { idleMs: timeoutMs + IDLE_MS }, tx)
    },
    once(tx, { name, source, id, timeoutMs }, work) {
      const idleMs = timeoutMs + IDLE_MS
      const where = { runtime, tx, name, declared: endpoints.get(name), owner: 'box', idleMs } as const
      return once(where, { id, source, type: 'http.request' }, work)
    },
    async call(limits, handler) {
      const loan = db.driver.lend?.(limits.tx)
      const context = new EndpointContext(runtime, limits, loan ? loan.tx : limits.tx)
      const { tx, send, signal } = context
      const given = { tx, send, signal, checkCalls: () => context.checkCalls() }
      const time = { timeoutMs: limits.timeoutMs, abort: new Abort() }
      const result = await callWithin(time, () => handler(given), context, loan)
      await writeOutgoing(runtime, context.sent, limits.tx)
      runtime.metrics.wrote(context.sent)
      return result
    },
  }
}

/** Once for the process; what fails is tried again by the next request. */
function registration(runtime: Runtime, endpoint: ConsumerDeclaration): () => Promise<void> {
  let registered: Promise<void> | undefined
  return () => {
    registered ??= register(runtime, [endpoint]).catch((error: unknown) => {
      registered = undefined
      throw error
    })
    return registered
  }
}

/** It takes no message, and remembers what `once` is called with. */
function declareEndpoint(name: string, retainMs: number): ConsumerDeclaration {
  // By its mode it is no consumer whose memory a source goes by.
  return { name, options: resolveOptions(name, { mode: 'direct', retainMs }), types: [], handlerOf: () => undefined }
}

/** A request is no message: nothing that it sends goes back to one. */
class EndpointContext extends CallContext {
  readonly #limits: CallLimits
  readonly log: Logger
  protected readonly cause = undefined

  constructor(runtime: Runtime, limits: CallLimits, tx: unknown) {
    super(runtime, tx)
    this.#limits = limits
    this.log = runtime.log
  }

  tookTooLong(): OnceboxError {
    const { name, timeoutMs } = this.#limits
    const advice = 'raise timeoutMs, or make it faster'
    return new OnceboxError('HANDLER_TIMEOUT', `${name} took longer than ${timeoutMs} ms; ${advice}`)
  }
}
