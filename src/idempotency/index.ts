/**
 * Idempotency-Key: an endpoint that runs each request once, and gives the same response to every repetition of the request.
 *
 *     const charge = idempotent(box, { name: 'POST /charges', scope: tenantOf }, async (request, { tx, send }) => {
 *       …
 *       return Response.json({ id }, { status: 201 })
 *     })
 *     app.post('/charges', toNodeListener(charge))
 *
 * read the key → say whose it is → read the body → run in one transaction with the response → answer after the commit
 */
import { backoffMs, sleep } from '../backoff.js'
import type { Box } from '../box.js'
import { nameProblem, requireFunction } from '../check-options.js'
import { ENDPOINTS, type EndpointHost } from '../endpoint.js'
import { OnceboxError } from '../errors.js'
import { invalid } from '../options.js'
import { createIntake, flowOf, type Intake } from '../http/body.js'
import { mountOf, rememberMount } from '../http/handler.js'
import { tellSafely } from '../http/report.js'
import { isResponse } from '../http/response.js'
import { MIB } from '../figures.js'
import { someCause } from '../failure.js'
import type { MessageMap } from '../message.js'
import { isConflict, isUnavailable } from '../postgres/errors.js'
import { fingerprintOf, readKey } from './key.js'
import { resolveEndpoint, type IdempotentOptions } from './options.js'
import { problem } from './problem.js'
import { tryOnce, type Asked, type Endpoint, type IdempotentHandler, type Kept, type Tried } from './run.js'
import { toResponse } from './stored.js'

export type { IdempotentOptions } from './options.js'
export type { IdempotentContext, IdempotentHandler } from './run.js'

export interface IdempotentEndpoint {
  /** Takes a request from whatever serves HTTP. It may be passed on without its object. */
  fetch(request: Request): Promise<Response>
}

const BUSY = { 'retry-after': '1' }
const AWAY = { 'retry-after': '5' }
/** For the request ahead to find out whether its key is known. It may itself wait for a connection, for much longer. */
const LEARN_MS = 2_000
/** Deadlocks and the like are nobody's fault: so often is a request tried at once. */
const TRIES = 5

export function idempotent<M extends MessageMap, Tx, TxIn = Tx>(
  box: Box<M, Tx, TxIn>,
  options: IdempotentOptions,
  handler: IdempotentHandler<M, Tx>,
): IdempotentEndpoint {
  const host = (box as Partial<Record<typeof ENDPOINTS, EndpointHost>> | undefined)?.[ENDPOINTS]
  if (!host) throw invalid('idempotent takes a box as its first argument')
  const resolved = resolveEndpoint(options)
  requireFunction('idempotent: its last argument, the handler,', handler)
  const register = host.declare(resolved.name, resolved.retainMs)
  const endpoint = { host, register, options: resolved, handler } as unknown as Endpoint
  const { maxBytes, bodyTimeoutMs } = resolved
  const intake = createIntake({ maxBytes, bodyTimeoutMs, maxBufferedBytes: Math.max(64 * MIB, 4 * maxBytes) })
  const inFlight: InFlight = new Map()
  return {
    async fetch(request) {
      try {
        const asked = await read(endpoint, request, intake)
        return isResponse(asked) ? asked : await answer(endpoint, asked, inFlight)
      } catch (error) {
        return failed(endpoint, error)
      }
    },
  }
}

/** Who asks for what; or why not. */
async function read({ options }: Endpoint, request: Request, intake: Intake): Promise<Asked | Response> {
  const { method, headers } = request
  const { methods, maxBytes } = options
  if (!methods.includes(method)) return problem(405, { headers: { allow: methods.join(', ') } })
  const found = readKey(headers)
  if ('problem' in found) return problem(400, { detail: found.problem })
  if (found.key === undefined && options.required) return problem(400, { detail: 'it is missing' })
  const tooLarge = (): Response => problem(413, { detail: `the limit is ${maxBytes} bytes` })
  if (Number(headers.get('content-length')) > maxBytes) return tooLarge()
  const scope = options.scope === 'shared' ? undefined : await options.scope(request)
  if (isResponse(scope)) return scope
  const odd = options.scope === 'shared' ? undefined : scope === undefined ? 'is undefined' : nameProblem(scope)
  if (odd !== undefined) {
    const advice = `answer a text of 1 to 512 bytes that names the caller, such as an account's id, or a Response, such as a 401`
    throw invalid(`idempotent: what scope answered ${odd}; ${advice}`)
  }
  if (request.bodyUsed) {
    const advice = 'mount it before whatever parses bodies, or have the bytes kept'
    throw invalid(`the body of a request had been read already; ${advice}`)
  }
  const body = await intake.read(flowOf(request))
  if ('problem' in body) {
    if (body.problem === 'too-large') return tooLarge()
    if (body.problem === 'crowded-out') return problem(503, { headers: AWAY })
    return body.problem === 'too-slow' ? problem(408) : problem(400, { detail: 'the body broke off' })
  }
  // The intake's buffer is this request's own.
  const { bytes } = body
  const again = (): Request => {
    const init = { method, headers, body: bytes.length > 0 ? bytes : null, signal: request.signal }
    return rememberMount(new Request(request.url, init), mountOf(request))
  }
  return { key: found.key, scope, fingerprint: fingerprintOf(request, bytes), request: again }
}

/** A try that runs, by whose key it is. */
type InFlight = Map<string, Running>

interface Running {
  /** The handler is called: its response is not known yet. */
  readonly begun: Promise<void>
  /** Undefined if it failed. */
  readonly settled: Promise<Tried | undefined>
}

/** Copies in this process wait for each other here, and not with a connection each. */
async function answer(endpoint: Endpoint, asked: Asked, inFlight: InFlight): Promise<Response> {
  const { options } = endpoint
  const end = performance.now() + options.waitMs
  const left = (): number => Math.max(0, end - performance.now())
  const own = asked.key === undefined ? undefined : `${asked.scope ?? ''}\0${asked.key}`
  for (let attempt = 0; ; attempt++) {
    const other = own === undefined ? undefined : inFlight.get(own)
    const tried = other ? await learn(other, left() + LEARN_MS) : await track(inFlight, own, { endpoint, asked })
    if (tried?.status === 'answered') return toResponse(tried.response)
    if (tried?.status === 'known') return replay(tried.kept, asked)
    if (tried?.status === 'withdrawn') return problem(422, { detail: 'its first request was withdrawn; use a new key' })
    if (left() === 0) return tried ? problem(409, { headers: BUSY }) : problem(503, { headers: AWAY })
    await (other ? sleep(left(), other.settled) : sleep(Math.min(left(), backoffMs(attempt, 20, 500))))
  }
}

const BUSY_HERE: Tried = { status: 'busy' }

/**
 * What a request that is ahead finds out serves for all, whatever its payload is, if the key was known before. Its own response
 * does not: it may be the first with the key, and fail. Undefined: it came to nothing, and is not outstanding any more.
 */
async function learn({ begun, settled }: Running, ms: number): Promise<Tried | undefined> {
  await sleep(ms, begun, settled)
  // The first of those that are settled by now: what is not, is busy.
  const tried = await Promise.race([settled, Promise.resolve(BUSY_HERE)])
  return tried?.status === 'answered' ? BUSY_HERE : tried
}

function replay({ request, response }: Kept, { fingerprint }: Asked): Response {
  if (request.sha256 !== fingerprint.sha256) return problem(422)
  return toResponse(response, { 'idempotent-replayed': 'true' })
}

async function track(
  inFlight: InFlight,
  own: string | undefined,
  { endpoint, asked }: { readonly endpoint: Endpoint; readonly asked: Asked },
): Promise<Tried> {
  let tell = (): void => undefined
  const begun = new Promise<void>((resolve) => (tell = resolve))
  const running = tryPatiently(endpoint, asked, () => tell())
  if (own === undefined) return running
  inFlight.set(own, { begun, settled: running.catch(() => undefined) })
  return running.finally(() => inFlight.delete(own))
}

async function tryPatiently(endpoint: Endpoint, asked: Asked, begun: () => void): Promise<Tried> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await tryOnce(endpoint, asked, begun)
    } catch (error) {
      if (attempt >= TRIES || !someCause(error, isConflict)) throw error
      await sleep(backoffMs(attempt, 5, 100))
    }
  }
}

/** Nothing of it was kept, or it is not known whether: the client may ask again, and is told what holds. */
function failed({ options: { onError } }: Endpoint, error: unknown): Response {
  tellSafely(onError, error)
  const isLate = error instanceof OnceboxError && ['HANDLER_TIMEOUT', 'COMMIT_UNCERTAIN'].includes(error.code)
  const isAway = isLate || someCause(error, isUnavailable) || someCause(error, isConflict)
  return isAway ? problem(503, { headers: AWAY }) : problem(500)
}
