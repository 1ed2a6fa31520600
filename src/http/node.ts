/** node:http, and what is built on it: Express, Nest, and Next.js pages; routes of Fastify too. */
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { rememberMount, resolveMount, type FetchHandler, type MountOptions, type ResolvedMount } from './handler.js'
import { toRequest } from './request.js'
import { tellSafely } from './report.js'
import { OF_A_BODY, respond, setStatus } from './respond.js'

/** After an answer that did not wait for the whole body, so long is the rest of it thrown away. */
const LINGER_MS = 2_000

/** A request of Fastify, as far as it is needed; Nest hands it to controllers. */
export interface RawRequest {
  readonly raw: IncomingMessage
}

/** A reply of Fastify. */
export interface RawReply {
  readonly raw: ServerResponse
  hijack(): unknown
  getHeaders(): object
}

/**
 * A listener for `http.createServer`, a route handler of Express, or what a controller of Nest calls with its request and
 * response. The body must not have been parsed before, unless its bytes were kept. What it answers resolves when the client is
 * answered, or gone, and never rejects: pages of Next.js wait for it.
 */
export function toNodeListener(
  handler: FetchHandler,
  options?: MountOptions,
): (request: IncomingMessage | RawRequest, response: ServerResponse | RawReply) => void {
  const mount = resolveMount('toNodeListener', handler, options)
  return (request, response): unknown => {
    const incoming = 'raw' in request ? request.raw : request
    const outgoing = 'raw' in response ? takeOver(response) : response
    const { baseUrl: base = '', originalUrl: path } = request as { baseUrl?: string; originalUrl?: string }
    return serve(mount, { incoming, outgoing, path, kept: request, base, request })
  }
}

/** One request, and who has it. */
export interface Exchange {
  readonly incoming: IncomingMessage
  readonly outgoing: ServerResponse
  /** The whole path, as the framework has kept it; undefined: that of the request. */
  readonly path: string | undefined
  /** Where it keeps a body that it has read. */
  readonly kept: object
  /** What it is mounted under, as the framework says. */
  readonly base: string
  /** The framework's own. */
  readonly request: unknown
}

/** Fastify leaves the response alone from here on. What hooks have set, such as CORS, is kept. */
export function takeOver(reply: RawReply): ServerResponse {
  reply.hijack()
  for (const [name, value] of Object.entries(reply.getHeaders())) reply.raw.setHeader(name, value as string)
  return reply.raw
}

/** Resolves when the client is answered, or gone. */
export async function serve(mount: ResolvedMount, exchange: Exchange): Promise<void> {
  const { incoming, outgoing } = exchange
  const aborted = new AbortController()
  // The client may be gone when it is answered.
  outgoing.on('error', () => undefined)
  const gone = (): void => {
    // A stream of HTTP/2 that its client resets is finished too, though nobody has ended it here.
    if (!outgoing.writableEnded || !outgoing.writableFinished) aborted.abort(new Error('the client is gone'))
  }
  if (isClosed(outgoing)) gone()
  else outgoing.once('close', gone)
  const before = outgoing.getHeaders()
  try {
    await answer(mount, exchange, aborted.signal)
  } catch (error) {
    tellSafely(mount.onError, error)
    fail(exchange, before)
  }
  if (!incoming.complete) throwAwayTheRest(incoming)
}

async function answer(mount: ResolvedMount, exchange: Exchange, signal: AbortSignal): Promise<void> {
  const { incoming, outgoing, path, kept, base, request: own } = exchange
  const request = await toRequest({ incoming, path, kept, signal })
  if (request) rememberMount(request, { base: mount.base ?? base, request: own })
  const response = request ? await mount.fetch(request) : refuse(incoming)
  await respond(response, { outgoing, method: incoming.method, signal })
}

/**
 * Answers nothing of the inside, with the headers that were there before the handler was asked, such as those of CORS. What the client
 * has got a part of is cut off, so that it does not pass for whole.
 */
function fail({ incoming, outgoing }: Exchange, before: OutgoingHttpHeaders): void {
  if (outgoing.headersSent) return cutOff(incoming, outgoing)
  for (const name of outgoing.getHeaderNames()) outgoing.removeHeader(name)
  for (const [name, value] of Object.entries(before)) {
    if (value !== undefined && !OF_A_BODY.includes(name)) outgoing.setHeader(name, value)
  }
  setStatus(outgoing, 500)
  outgoing.setHeader('content-type', 'application/json')
  outgoing.end('{"error":"internal error"}')
}

interface Http2Stream {
  readonly destroyed: boolean
  close(code: number): void
}

const INTERNAL_ERROR = 2

/** So that the client notices. Where the end of the connection is the end of the body, it takes a reset. */
function cutOff({ httpVersion, socket }: IncomingMessage, outgoing: ServerResponse): void {
  const { stream } = outgoing as { stream?: Http2Stream }
  if (stream) return stream.close(INTERNAL_ERROR)
  try {
    if (httpVersion === '1.0') socket.resetAndDestroy()
  } catch {
    // It goes over TLS, or a unix socket, which know no reset.
  }
  outgoing.destroy()
}

function isClosed(outgoing: ServerResponse): boolean {
  return outgoing.destroyed || (outgoing as { stream?: Http2Stream }).stream?.destroyed === true
}

/** Of a request that the Fetch API does not know. */
function refuse({ method = '' }: IncomingMessage): Response {
  const notAllowed = ['CONNECT', 'TRACE', 'TRACK'].includes(method)
  return notAllowed
    ? new Response(null, { status: 405, headers: { allow: 'POST' } })
    : new Response(null, { status: 400 })
}

/** Closing at once would reset the connection, and the sender would not see the answer. */
function throwAwayTheRest(incoming: IncomingMessage): void {
  const timer = setTimeout(() => incoming.destroy(), LINGER_MS)
  incoming.once('close', () => clearTimeout(timer))
  incoming.once('end', () => clearTimeout(timer))
  incoming.on('error', () => undefined)
  incoming.resume()
}
