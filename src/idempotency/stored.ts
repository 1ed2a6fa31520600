/** A response as it is stored, and given again. */
import { createIntake, flowOfStream, type Flow } from '../http/body.js'
import { HOP_BY_HOP } from '../http/respond.js'
import { OnceboxError } from '../errors.js'

/** Bytes that are no text are kept in base64. */
export interface Stored {
  readonly status: number
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly text?: string
  readonly base64?: string
}

/** Of the connection, or of the moment. */
const NOT_STORED = [...HOP_BY_HOP, 'content-length', 'date']
/** These may have no body, says the Fetch API. */
const BODILESS = [204, 205, 304]
/** The client is asked to try again, which must be able to come to something. */
const COME_BACK = [408, 425, 429]

/** Whether a response is final: stored, and its writes committed with it. */
export function isFinal(status: number): boolean {
  return status < 500 && !COME_BACK.includes(status)
}

/** Nothing is read of it once `signal` is aborted. */
export async function toStored(response: Response, maxBytes: number, signal: AbortSignal): Promise<Stored> {
  const { status } = response
  if (response.bodyUsed) throw new OnceboxError('RESULT_INVALID', 'the body of the response had been read already')
  const flow = flowOfStream(response.body as ReadableStream<Uint8Array> | null)
  const body = await createIntake({ maxBytes }).read(until(signal, flow))
  if ('problem' in body) {
    throw body.problem === 'too-large'
      ? new OnceboxError('MESSAGE_TOO_LARGE', `the response has more than ${maxBytes} bytes; raise maxResponseBytes`)
      : new OnceboxError('RESULT_INVALID', 'the body of the response broke off')
  }
  const headers = [...response.headers].filter(([name]) => !NOT_STORED.includes(name))
  return replayable({ status, headers, ...contentOf(body.bytes) })
}

/** A stream may have no end: what nobody waits for any more is cancelled. */
function until(signal: AbortSignal, flow: Flow): Flow {
  return (to) => {
    const stop = flow(to)
    if (signal.aborted) to.broken()
    else signal.addEventListener('abort', () => to.broken(), { once: true })
    return stop
  }
}

/** One that is stored and cannot be given would be answered 500 for ever: `Response.error()`, a status 1xx, a bad header. */
function replayable(stored: Stored): Stored {
  try {
    toResponse(stored)
    return stored
  } catch (error) {
    const advice = 'return one with a status of 200 to 599'
    const text = `the response, with status ${stored.status}, cannot be given to a client; ${advice}`
    throw new OnceboxError('RESULT_INVALID', text, { cause: error })
  }
}

function contentOf(bytes: Uint8Array): Pick<Stored, 'text' | 'base64'> {
  if (bytes.length === 0) return {}
  try {
    return { text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes) }
  } catch {
    return { base64: Buffer.from(bytes).toString('base64') }
  }
}

export function withoutCookies({ headers, ...rest }: Stored): Stored {
  return { ...rest, headers: headers.filter(([name]) => name !== 'set-cookie') }
}

export function toResponse({ status, headers, text, base64 }: Stored, more: Record<string, string> = {}): Response {
  const content = base64 === undefined ? text : Buffer.from(base64, 'base64')
  const body = BODILESS.includes(status) ? null : (content ?? null)
  const response = new Response(body, { status })
  // A text would bring a content type of its own.
  response.headers.delete('content-type')
  for (const [name, value] of headers) response.headers.append(name, value)
  for (const [name, value] of Object.entries(more)) response.headers.set(name, value)
  return response
}
