/**
 * A Response, written to a response of Node.js as it comes: events and other streams reach the client piece by piece, no
 * faster than it takes them, and end when the client is gone.
 */
import type { ServerResponse } from 'node:http'

/** These are of the connection, which is not the handler's. */
const HOP_BY_HOP = ['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade']

/** Resolves when all was handed over, or the client is gone. Rejects if the body breaks off. */
export async function respond(response: Response, outgoing: ServerResponse, method = 'GET'): Promise<void> {
  outgoing.statusCode = response.status
  for (const [name, value] of response.headers) {
    if (name !== 'set-cookie' && !HOP_BY_HOP.includes(name)) outgoing.setHeader(name, value)
  }
  const cookies = response.headers.getSetCookie()
  if (cookies.length > 0) outgoing.setHeader('set-cookie', cookies)
  const body = response.body as ReadableStream<Uint8Array> | null
  if (body === null || method === 'HEAD') {
    outgoing.end()
    await body?.cancel()
    return
  }
  const reader = body.getReader()
  const cancel = (): void => void reader.cancel(new Error('the client is gone')).catch(() => undefined)
  if (outgoing.destroyed) return cancel()
  outgoing.once('close', cancel)
  try {
    await write(reader, outgoing)
  } finally {
    outgoing.off('close', cancel)
  }
}

async function write(reader: ReadableStreamDefaultReader<Uint8Array>, outgoing: ServerResponse): Promise<void> {
  const first = await soon(reader.read(), outgoing)
  if (first.done) return void outgoing.end()
  let next = reader.read()
  // What is there at once is sent at once, with its length.
  const second = await soon(next, outgoing, () => send(first.value, outgoing))
  if (second.done) return void outgoing.end(outgoing.headersSent ? undefined : first.value)
  if (!outgoing.headersSent) await send(first.value, outgoing)
  for (;;) {
    const { done, value } = await next
    if (done) return void outgoing.end()
    await send(value, outgoing)
    next = reader.read()
  }
}

/** Waits for a piece. If it does not come at once, the client gets the head, and what there is, without it. */
async function soon<T>(
  piece: Promise<T>,
  outgoing: ServerResponse,
  meanwhile: () => Promise<void> = async () => outgoing.flushHeaders(),
): Promise<T> {
  const later = new Promise<typeof LATER>((resolve) => setImmediate(resolve, LATER))
  const found = await Promise.race([piece, later])
  if (found !== LATER) return found
  if (!outgoing.destroyed) await meanwhile()
  return piece
}

const LATER = Symbol('later')

/** Waits while the client is slow. */
async function send(piece: Uint8Array, outgoing: ServerResponse): Promise<void> {
  if (outgoing.destroyed || outgoing.write(piece)) return
  await new Promise<void>((resolve) => {
    const go = (): void => {
      outgoing.off('drain', go).off('close', go)
      resolve()
    }
    outgoing.on('drain', go).on('close', go)
  })
}
