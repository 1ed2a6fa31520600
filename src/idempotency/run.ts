/**
 * One try: the handler's writes, what it sends, and its response commit together, or none of them does.
 */
import { within } from '../backoff.js'
import type { EndpointHost } from '../endpoint.js'
import { OnceboxError } from '../errors.js'
import type { Send } from '../handler.js'
import { isResponse } from '../http/response.js'
import type { MessageMap } from '../message.js'
import { silence } from '../postgres/errors.js'
import type { Fingerprint } from './key.js'
import type { ResolvedEndpoint } from './options.js'
import { isFinal, toStored, withoutCookies, type Stored } from './stored.js'

export interface IdempotentContext<M extends MessageMap, Tx> {
  /** The database client's own transaction: your writes here commit together with the response. */
  readonly tx: Tx
  /** Writes an event to the outbox, in the same transaction, once the handler has returned. */
  readonly send: Send<M>
  /** The key; undefined where none was sent and none is required. */
  readonly key: string | undefined
  /** Whose key it is; undefined where keys are shared. */
  readonly scope: string | undefined
  /** Aborted when the deadline passes. A client that is gone aborts nothing: it may ask again. */
  readonly signal: AbortSignal
}

export type IdempotentHandler<M extends MessageMap, Tx> = (
  request: Request,
  context: IdempotentContext<M, Tx>,
) => Response | Promise<Response>

export interface Endpoint {
  readonly host: EndpointHost
  /** Has to have happened before a response is stored. */
  register(): Promise<void>
  readonly options: ResolvedEndpoint
  readonly handler: IdempotentHandler<MessageMap, unknown>
}

/** A request that may be handled. */
export interface Asked {
  readonly key: string | undefined
  readonly scope: string | undefined
  readonly fingerprint: Fingerprint
  /** Made for each try: a body can be read once. */
  request(): Request
}

export type Tried =
  /** The handler ran. */
  | { readonly status: 'answered'; readonly response: Stored }
  /** A copy is in flight. */
  | { readonly status: 'busy' }
  /** The key is known: with this payload or with another one, as whoever asks sees for themselves. */
  | { readonly status: 'known'; readonly kept: Kept }
  /** It was decided otherwise, by a person. */
  | { readonly status: 'withdrawn' }

/** Ends the transaction without a trace of it, and answers all the same. */
class Unstored extends Error {
  constructor(readonly response: Stored) {
    super('not stored')
  }
}

/**
 * What is kept of a request that was handled. Its payload is compared here: the box would keep another one under the same
 * key in quarantine, which a client could fill.
 */
export interface Kept {
  readonly request: Fingerprint
  readonly response: Stored
}

/** For a connection, the statements around the handler, and the COMMIT. */
const AROUND_MS = 5_000

/**
 * Rejects in the end, whatever the database does: clients wait for an answer. A transaction that goes on all the same is no
 * harm, for the key is its own, and what is not yet called by then never is. `begun` is told when a handler with a key is called.
 */
export function tryOnce(endpoint: Endpoint, asked: Asked, begun: () => void): Promise<Tried> {
  const ms = endpoint.options.timeoutMs + AROUND_MS
  const gaveUp = new AbortController()
  return within(ms, run(endpoint, { ...asked, begun }, gaveUp.signal), () => {
    const advice = 'give the pool more connections, or a connectionTimeoutMillis'
    const text = `no connection or no answer of the database within ${ms} ms; ${advice}`
    const reason = silence(text)
    gaveUp.abort(reason)
    return reason
  })
}

async function run(endpoint: Endpoint, asked: Asked & { begun(): void }, gaveUp: AbortSignal): Promise<Tried> {
  const { host, options } = endpoint
  const { key, scope, fingerprint } = asked
  let called = false
  let fresh: Stored | undefined
  const call = async (tx: unknown): Promise<Kept> => {
    gaveUp.throwIfAborted()
    called = true
    asked.begun()
    fresh = await callHandler(endpoint, asked, tx)
    return { request: fingerprint, response: options.cookies === 'replay' ? fresh : withoutCookies(fresh) }
  }
  if (key !== undefined) await endpoint.register()
  try {
    return await host.transaction<Tried>(async (tx) => {
      gaveUp.throwIfAborted()
      const { name, timeoutMs } = options
      if (key === undefined) {
        await host.limitIdle(tx, timeoutMs)
        return { status: 'answered', response: await callHandler(endpoint, asked, tx) }
      }
      const outcome = await host.once(tx, { name, source: scope ?? name, id: key, timeoutMs }, () => call(tx))
      if (outcome.status === 'handled') return { status: 'answered', response: fresh! }
      const kept = outcome.status === 'duplicate' ? (outcome.result as Kept | undefined) : undefined
      return kept === undefined ? { status: 'withdrawn' } : { status: 'known', kept }
    }, options.isolation)
  } catch (error) {
    if (error instanceof Unstored) return { status: 'answered', response: error.response }
    // Whatever the handler threw is its own.
    if (key !== undefined && !called && isBusy(error)) return { status: 'busy' }
    throw error
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof OnceboxError && error.code === 'BUSY'
}

function callHandler({ host, options, handler }: Endpoint, asked: Asked, tx: unknown): Promise<Stored> {
  const { key, scope } = asked
  const { name, timeoutMs, maxResponseBytes } = options
  return host.call({ tx, name, timeoutMs }, async ({ checkCalls, ...given }) => {
    const { response, thrown } = await answerOf(() => handler(asked.request(), { ...given, key, scope }))
    if (!thrown) checkCalls()
    const stored = await toStored(response, maxResponseBytes, given.signal)
    if (thrown || !isFinal(stored.status)) throw new Unstored(stored)
    return stored
  })
}

/** A Response that is thrown refuses the request: it is answered, and nothing is kept. */
async function answerOf(run: () => Response | Promise<Response>): Promise<{ response: Response; thrown: boolean }> {
  let response: Response
  try {
    response = await run()
  } catch (error) {
    if (!isResponse(error)) throw error
    return { response: error, thrown: true }
  }
  if (isResponse(response)) return { response, thrown: false }
  throw new OnceboxError(
    'RESULT_INVALID',
    'the handler answered no Response; return new Response(…) or Response.json(…)',
  )
}
