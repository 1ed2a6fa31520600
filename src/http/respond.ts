/**
 * A Response, written to a response of Node.js as it comes: events and other streams reach the client piece by piece, no
 * faster than it takes them, and end when the client is gone.
 */
import type { ServerResponse } from 'node:http'
import { OnceboxError } from '../errors.js'
import { isResponse } from './response.js'

/** These are of the connection, which is not the handler's. */
export const HOP_BY_HOP = ['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade']

/** Of a body that is not this one: a framework, or a middleware of it, may have described its own. */
export const OF_A_BODY = [
  ...['content-length', 'content-type', 'content-encoding', 'content-language', 'content-location', 'content-range'],
  ...['content-disposition', 'content-md5', 'etag', 'last-modified'],
]

/** A stream that breaks off within this time, and before its first piece, is answered 500. */
const FIRST_PIECE_MS = 1_000

/** A response, and who waits for it. */
export interface Waiting {
  readonly outgoing: ServerResponse
  readonly method: string | undefined
  /** Aborted when the client is gone. */
  readonly signal: AbortSignal
}

/** Resolves when all was handed over, or the client is gone. Rejects if the body breaks off. */
export async function respond(response: Response, waiting: Waiting): Promise<void> {
  const { outgoing, method, signal } = waiting
  if (!isResponse(response)) throw new OnceboxError('RESULT_INVALID', 'a fetch handler answered no Response')
  setStatus(outgoing, response.status)
  // To remove what is not there would keep Node.js from setting it.
  for (const name of OF_A_BODY) if (outgoing.hasHeader(name)) outgoing.removeHeader(name)
  for (const [name, value] of response.headers) {
    if (name !== 'set-cookie' && !HOP_BY_HOP.includes(name)) {
      outgoing.setHeader(name, name === 'vary' ? varyBy(textsIn(outgoing, name), value) : value)
    }
  }
  const cookies = response.headers.getSetCookie()
  if (cookies.length > 0) outgoing.setHeader('set-cookie', [...textsIn(outgoing, 'set-cookie'), ...cookies])
  const body = response.body as ReadableStream<Uint8Array> | null
  if (body === null || method === 'HEAD') {
    outgoing.end()
    await body?.cancel()
    return
  }
  const reader = body.getReader()
  const cancel = (): void => void reader.cancel(signal.reason).catch(() => undefined)
  if (signal.aborted) return cancel()
  signal.addEventListener('abort', cancel)
  try {
    await write(reader, waiting)
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}

/** What a middleware has set before. */
function textsIn(outgoing: ServerResponse, name: string): string[] {
  return [outgoing.getHeader(name) ?? []].flat().map(String)
}

/** By all that one of them says: a cache must not give what was made for one origin to another. */
function varyBy(before: readonly string[], value: string): string {
  const names = [...before, value].flatMap((list) => list.split(',')).map((name) => name.trim())
  const isFirst = (name: string, at: number): boolean =>
    names.findIndex((other) => other.toLowerCase() === name.toLowerCase()) === at
  return names.filter((name, at) => name !== '' && isFirst(name, at)).join(', ')
}

/** With the words that belong to it, and not those of a status that was set before. */
export function setStatus(outgoing: ServerResponse, status: number): void {
  outgoing.statusCode = status
  // HTTP/2 has none, and warns of whoever sets it.
  if (!('stream' in outgoing)) outgoing.statusMessage = ''
}

async function write(reader: ReadableStreamDefaultReader<Uint8Array>, waiting: Waiting): Promise<void> {
  const { outgoing } = waiting
  // Events may be long in coming, and their client waits for the head. Of others the first piece may show a failure.
  const isEvents = /^text\/event-stream\b/i.test(String(outgoing.getHeader('content-type')))
  const first = await soon(reader.read(), waiting, {
    ms: isEvents ? 0 : FIRST_PIECE_MS,
    meanwhile: async () => outgoing.flushHeaders(),
  })
  if (first.done) return void outgoing.end()
  let next = reader.read()
  let isSent = false
  const sendFirst = async (): Promise<void> => {
    isSent = true
    await send(first.value, waiting)
  }
  const second = await soon(next, waiting, { ms: 0, meanwhile: sendFirst })
  if (second.done && !isSent) return endWith(first.value, outgoing)
  if (!isSent) await sendFirst()
  for (;;) {
    const { done, value } = await next
    if (done) return void outgoing.end()
    await send(value, waiting)
    next = reader.read()
  }
}

/** What is there at once is sent at once, with its length. */
function endWith(whole: Uint8Array, outgoing: ServerResponse): void {
  if (!outgoing.headersSent && !outgoing.hasHeader('content-length')) {
    outgoing.setHeader('content-length', whole.byteLength)
  }
  outgoing.end(whole)
}

interface Patience {
  /** 0: what does not come at once comes late. */
  readonly ms: number
  /** What the client gets if the piece comes late. */
  meanwhile(): Promise<void>
}

async function soon<T>(piece: Promise<T>, { signal }: Waiting, { ms, meanwhile }: Patience): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const later = new Promise<typeof LATER>((resolve) => {
    if (ms === 0) setImmediate(resolve, LATER)
    else timer = setTimeout(resolve, ms, LATER)
  })
  try {
    const found = await Promise.race([piece, later])
    if (found !== LATER) return found
  } finally {
    clearTimeout(timer)
  }
  if (!signal.aborted) await meanwhile()
  return piece
}

const LATER = Symbol('later')

/** Waits while the client is slow. */
async function send(piece: Uint8Array, { outgoing, signal }: Waiting): Promise<void> {
  if (signal.aborted || outgoing.write(piece)) return
  await new Promise<void>((resolve) => {
    const go = (): void => {
      outgoing.off('drain', go).off('close', go)
      resolve()
    }
    outgoing.on('drain', go).on('close', go)
  })
}
