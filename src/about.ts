/** What a log line says of a message: the ids by which people find it elsewhere, and never what is in it. */
import type { Message } from './message.js'
import { traceIdOf } from './telemetry/headers.js'

export interface About {
  readonly id: string
  readonly type: string
  readonly correlationId: string
  readonly traceId?: string
}

export function aboutMessage({ id, type, correlationId, headers }: Message): About {
  const traceId = traceIdOf(headers)
  return { id, type, correlationId, ...(traceId !== undefined && { traceId }) }
}
