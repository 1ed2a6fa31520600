/** A request of Node.js as a Request, with its bytes: those that are still to come, or those that somebody has kept. */
import type { IncomingMessage } from 'node:http'
import { addressOf } from './address.js'
import { rememberFlow, type Flow } from './body.js'

export interface Arrived {
  readonly incoming: IncomingMessage
  /** The whole path, where the framework has cut something off the request's own. */
  readonly path: string | undefined
  /** Where the framework keeps what it has read: the request itself, but for Fastify and Koa. */
  readonly kept: object
  /** Aborted when the client is gone. */
  readonly signal: AbortSignal
}

/** Undefined if it cannot be one. */
export async function toRequest({ incoming, path, kept, signal }: Arrived): Promise<Request | undefined> {
  const { method = 'GET', rawHeaders } = incoming
  const hasBody = method !== 'GET' && method !== 'HEAD'
  const address = addressOf(incoming, path)
  if (address === undefined) return undefined
  try {
    const headers = new Headers()
    for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
      const name = rawHeaders[at]!
      // Pseudo-headers of HTTP/2.
      if (!name.startsWith(':')) headers.append(name, rawHeaders[at + 1]!)
    }
    const read = incoming.readableDidRead || incoming.readableEnded
    const stream = hasBody && !read ? streamOf(incoming) : undefined
    const body = !hasBody ? null : read ? bytesOf(kept) : stream!.body
    const request = new Request(address, { method, headers, body: body ?? null, signal, duplex: 'half' })
    // A stream costs a promise for each piece. A framework that has read from it, or copied the request, needs it.
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

/**
 * The bytes of a body that was read already but not parsed: `express.raw()`, Nest and cloud functions keep them here. Koa's
 * parser keeps a text.
 */
function bytesOf(kept: object): Uint8Array | undefined {
  const { rawBody, body } = kept as { rawBody?: unknown; body?: unknown }
  if (rawBody instanceof Uint8Array) return rawBody
  if (typeof rawBody === 'string') return Buffer.from(rawBody)
  return body instanceof Uint8Array ? body : undefined
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
        // Its events are over: nobody would ever end this stream.
        if (incoming.readableEnded || incoming.destroyed) {
          return controller.error(new TypeError('the body of the request has been read already, or broke off'))
        }
        const data = (chunk: Uint8Array): void => {
          controller.enqueue(chunk)
          incoming.pause()
        }
        const end = (): void => {
          if (wasReset(incoming)) return broken()
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
    const ended = (): void => (wasReset(incoming) ? broken() : end())
    incoming.on('data', take).on('end', ended).on('error', broken).on('close', broken)
    incoming.resume()
    return () => {
      incoming.off('data', take).off('end', ended).off('error', broken).off('close', broken)
      incoming.on('error', () => undefined)
      incoming.pause()
    }
  }
}

/** A stream of HTTP/2 that its client has reset without an error, in the middle of a body, ends as if that were whole. */
function wasReset(incoming: IncomingMessage): boolean {
  return (incoming as { stream?: { readonly aborted: boolean } }).stream?.aborted === true
}
