/** Process: what became of a handler's call, as its span tells it. */
import { OnceboxError, Reject, RetryLater } from '../errors.js'
import type { Message } from '../message.js'
import type { OpenSpan } from './span.js'

/** A message that runs, with the span of the last call of its handler. */
export interface Processed {
  readonly message: Message
  span?: OpenSpan | undefined
}

export function endThrown(span: OpenSpan, error: unknown): void {
  // It has not failed: it runs again at once, with the outcome of its effect.
  if (error instanceof OnceboxError && error.code === 'GROUP_ABANDONED')
    return span.end({ 'oncebox.outcome': 'effect' })
  if (error instanceof RetryLater) return span.end({ 'oncebox.outcome': 'put-off' })
  span.fail(error, { 'oncebox.outcome': error instanceof Reject ? 'rejected' : 'failed' })
}
