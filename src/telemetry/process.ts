/** Process: one call of a handler, active while it runs, and what became of it. */
import { isAbandonment, Reject, RetryLater } from '../errors.js'
import type { Message } from '../message.js'
import { contextIn } from './headers.js'
import { KIND } from './otel.js'
import { attributes, consumedBy, originIn, originOf, type OpenSpan, type Origin, type Spans } from './span.js'

/** A message that runs, with the span of the last call of its handler. */
export interface Processed {
  readonly message: Message
  span?: OpenSpan | undefined
  /** Where it comes from, once that was read. */
  origin?: Origin | undefined
}

/** Reads where these come from: of all in one go, and not between their calls. */
export function readOrigins(held: readonly Processed[]): void {
  for (const one of held) one.origin ??= originIn(contextIn(one.message))
}

/** Its span ends with its transaction, unless it throws: see `endThrown`. */
export function beginProcess(spans: Spans, consumer: string, held: readonly Processed[]): OpenSpan | undefined {
  const { message } = held[0]!
  const isOne = held.length === 1
  const origin = isOne
    ? (held[0]!.origin ?? originIn(contextIn(message)))
    : originOf(held, (one) => contextIn(one.message))
  const span = spans.begin('process', message.type, KIND.consumer, origin)
  if (span?.isRecorded) {
    span.about = () => (isOne ? aboutOne(consumer, message) : aboutBatch(consumer, message.type, held.length))
  }
  for (const one of held) one.span = span
  return span
}

/** Written out, for there is one for every message: to put it together from parts takes several times as long. */
function aboutOne(consumer: string, { id, type, correlationId, attempt }: Message) {
  return {
    'messaging.system': 'oncebox',
    'messaging.destination.name': type,
    'messaging.operation.name': 'process',
    'messaging.operation.type': 'process',
    'messaging.consumer.group.name': consumer,
    'messaging.message.id': id,
    'messaging.message.conversation_id': correlationId,
    'oncebox.attempt': attempt,
  }
}

function aboutBatch(consumer: string, type: string, messages: number) {
  return { ...attributes('process', type), ...consumedBy(consumer), 'messaging.batch.message_count': messages }
}

/** The call has failed, or is to be made once more. */
export function endThrown(span: OpenSpan, error: unknown): void {
  // It has not failed: it runs again at once, with the outcome of its effect.
  if (isAbandonment(error)) return span.end({ 'oncebox.outcome': 'effect' })
  if (error instanceof RetryLater) return span.end({ 'oncebox.outcome': 'put-off' })
  span.fail(error, { 'oncebox.outcome': error instanceof Reject ? 'rejected' : 'failed' })
}
