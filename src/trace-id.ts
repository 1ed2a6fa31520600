/** The id of the trace that a message belongs to, for log lines: of W3C Trace Context, where its headers have one. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-|$)/

/** Anybody may have written the headers: what is no trace context is none. */
export function traceIdOf(headers: Readonly<Record<string, string>>): string | undefined {
  const parent: unknown = Object.hasOwn(headers, 'traceparent') ? headers['traceparent'] : undefined
  return typeof parent === 'string' ? TRACEPARENT.exec(parent)?.[1] : undefined
}
