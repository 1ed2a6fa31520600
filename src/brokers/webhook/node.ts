/** node:http, and what is built on it: Express, Fastify, Next.js pages. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { rememberFlow, type Flow } from './body.js'

/** After an answer that did not wait for the whole body, so long is the rest of it thrown away. */
const LINGER_MS = 2_000

/** A listener for `http.createServer`, or a route handler. The body must not have been parsed before. */
export function toNodeListener(webhook: {
  fetch(request: Request): Promise<Response>
}): (request: IncomingMessage, response: ServerResponse) => void {
  return (incoming, outgoing) => {
    // The sender may be gone when it is answered.
    outgoing.on('error', () => undefined)
    serve(webhook, incoming, outgoing).catch(() => outgoing.destroy())
  }
}

async function serve(
  webhook: { fetch(request: Request): Promise<Response> },
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const request = await toRequest(incoming)
  const response = request ? await webhook.fetch(request) : refuse(incoming)
  const body = Buffer.from(await response.arrayBuffer())
  outgoing.statusCode = response.status
  for (const [name, value] of response.headers) outgoing.setHeader(name, value)
  outgoing.end(incoming.method === 'HEAD' ? undefined : body)
  if (!incoming.complete) throwAwayTheRest(incoming)
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

/** Undefined if it cannot be one. */
async function toRequest(incoming: IncomingMessage): Promise<Request | undefined> {
  const { method = 'GET', rawHeaders } = incoming
  const hasBody = method !== 'GET' && method !== 'HEAD'
  try {
    const headers = new Headers()
    for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
      const name = rawHeaders[at]!
      // Pseudo-headers of HTTP/2.
      if (!name.startsWith(':')) headers.append(name, rawHeaders[at + 1]!)
    }
    const read = incoming.readableDidRead || incoming.readableEnded
    const stream = hasBody && !read ? streamOf(incoming) : undefined
    const body = !hasBody ? null : read ? bytesOf(incoming) : stream!.body
    const request = new Request('http://localhost/', { method, headers, body: body ?? null, duplex: 'half' })
    // A stream costs a promise for each piece. Whoever has read from it, or copied the request, needs it.
    if (stream) {
      rememberFlow(request, () => (request.body === stream.body && !stream.began ? flowFrom(incoming) : undefined))
    }
    if (body !== undefined) return request
    // Somebody else has the body. `fetch` says what to do about that, if it sees that it is used up.
    const used = new Request(request, { body: '' })
    await used.text()
    return used
  } catch {
    return undefined
  }
}

/** The bytes of a body that was read already but not parsed: `express.raw()` and cloud functions keep them here. */
function bytesOf(incoming: IncomingMessage): Uint8Array | undefined {
  const { rawBody, body } = incoming as { rawBody?: unknown; body?: unknown }
  return rawBody instanceof Uint8Array ? rawBody : body instanceof Uint8Array ? body : undefined
}

/** Read as it is asked for. Cancelling stops reading, and leaves the connection open for the answer. */
function streamOf(incoming: IncomingMessage): { readonly body: ReadableStream<Uint8Array>; readonly began: boolean } {
  let detach = (): void => undefined
  const state = { began: false }
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        if (state.began) return void incoming.resume()
        state.began = true
        const data = (chunk: Uint8Array): void => {
          controller.enqueue(chunk)
          incoming.pause()
        }
        const end = (): void => {
          detach()
          controller.close()
        }
        const broken = (): void => {
          detach()
          controller.error(new Error('the request broke off'))
        }
        detach = () => {
          incoming.off('data', data).off('end', end).off('error', broken).off('close', broken)
          incoming.on('error', () => undefined)
        }
        incoming.on('data', data).on('end', end).on('error', broken).on('close', broken)
      },
      cancel() {
        detach()
        incoming.pause()
      },
    },
    { highWaterMark: 0 },
  )
  return Object.assign(state, { body })
}

/** As fast as it comes: pieces that wait in the request would be an object each. */
function flowFrom(incoming: IncomingMessage): Flow {
  return ({ take, end, broken }) => {
    if (incoming.destroyed) {
      broken()
      return () => undefined
    }
    incoming.on('data', take).on('end', end).on('error', broken).on('close', broken)
    incoming.resume()
    return () => {
      incoming.off('data', take).off('end', end).off('error', broken).off('close', broken)
      incoming.on('error', () => undefined)
      incoming.pause()
    }
  }
}
