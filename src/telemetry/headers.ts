/** Trace context in the headers of messages. Anybody may have written them: what is no trace context is none, and no error. */
import { activeContext, extractFrom, registered, ROOT, spanIn, type OtelContext } from './otel.js'

export type Headers = Readonly<Record<string, string>>

/** The headers of W3C Trace Context and W3C Baggage. */
const TRACE_HEADERS = ['traceparent', 'tracestate', 'baggage'] as const

/** W3C Baggage has no more. Longer values are not read, and are not handed on. */
const MAX_LENGTH = 8_192

/** Of version 00 nothing may follow. */
const TRACEPARENT = /^(?!ff|00-.{53})[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-|$)/

/** The id of the trace that a message belongs to, for log lines; undefined if its headers name none. */
export function traceIdOf(headers: Headers): string | undefined {
  const parent = Object.hasOwn(headers, 'traceparent') ? headers['traceparent']! : ''
  return parent.length > MAX_LENGTH ? undefined : TRACEPARENT.exec(parent)?.[1]
}

/** W3C allows nothing else in any of the three, and so do the headers of HTTP, which they may end up in. */
const PRINTABLE = /^[ -~]+$/

/** What of a message's headers goes on with what it causes, where no span is active. Whether it is a trace its readers judge. */
export function handedOn(headers: Headers): Record<string, string> {
  const kept: Record<string, string> = {}
  for (const name of TRACE_HEADERS) {
    const value = Object.hasOwn(headers, name) ? headers[name]! : ''
    if (value.length <= MAX_LENGTH && PRINTABLE.test(value)) kept[name] = value
  }
  return kept
}

/** The headers of a message with the trace that it arrived in, unless it came with one. */
export function withTrace(own: Headers | undefined, trace: Headers): Headers {
  const hasOwn = own && Object.keys(trace).some((name) => name !== 'baggage' && Object.hasOwn(own, name))
  return hasOwn ? own : { ...trace, ...own }
}

/** The context that a message came with, as the application's propagator reads it. */
export function contextIn(message: { readonly headers?: unknown }): OtelContext {
  try {
    const { headers } = message
    return typeof headers === 'object' && headers !== null && hasAny(headers)
      ? extractFrom(headers as Headers, READ)
      : ROOT
  } catch {
    // It is no message, or cannot be looked at. Whoever takes it says so.
    return ROOT
  }
}

/** Without any there is nothing to ask the propagator for. */
function hasAny(headers: object): boolean {
  for (const name in headers) if (Object.hasOwn(headers, name)) return true
  return false
}

const READ = {
  get(headers: Headers, name: string): string | undefined {
    const value = Object.hasOwn(headers, name) ? headers[name] : undefined
    return typeof value !== 'string' || value.length > MAX_LENGTH ? undefined : value
  },
  keys: (headers: Headers): string[] => Object.keys(headers),
}

/** The active context as headers; undefined if no span is active. */
export function activeHeaders(): Headers | undefined {
  const active = activeContext()
  if (!spanIn(active)) return undefined
  const headers: Record<string, string> = {}
  try {
    registered().propagation?.inject(active, headers, WRITE)
  } catch {
    return undefined
  }
  return Object.keys(headers).length > 0 ? headers : undefined
}

const WRITE = {
  set(headers: Record<string, string>, name: string, value: string): void {
    const text = String(value)
    if (text.length <= MAX_LENGTH && text.isWellFormed() && !text.includes('\0')) headers[name] = text
  },
}
