/**
 * Errors that oncebox throws, and the two that a handler may throw to steer its message.
 * All are recognised by a brand rather than `instanceof`, so two copies of the package in one process agree.
 */
import { inspect } from 'node:util'
import { isBranded, sharedByCopies } from './copies.js'

/** Every code, with what it means. The docs have one entry per code. */
export type OnceboxErrorCode =
  | 'BUSY'
  | 'CLAIM_LOST'
  | 'COMMIT_UNCERTAIN'
  | 'CONSUMER_EXISTS'
  | 'CONSUMER_HAS_MESSAGES'
  | 'CONSUMER_IN_USE'
  | 'CONSUMER_UNKNOWN'
  | 'CURSOR_INVALID'
  | 'ENGINE_UNSUPPORTED'
  | 'FILTER_INVALID'
  | 'GROUP_ABANDONED'
  | 'HANDLER_COMMITTED'
  | 'HANDLER_MISSING'
  | 'HANDLER_TIMEOUT'
  | 'IDENTITY_UNKNOWN'
  | 'MESSAGE_INVALID'
  | 'MESSAGE_TOO_LARGE'
  | 'MESSAGE_TYPE_UNKNOWN'
  | 'NOT_FOUND'
  | 'OPTION_INVALID'
  | 'PUBLISH_TIMEOUT'
  | 'RESULT_INVALID'
  | 'RIGHTS_MISSING'
  | 'ROLLED_BACK'
  | 'SCHEMA_LOCKED'
  | 'SCHEMA_NEWER'
  | 'SCHEMA_OUTDATED'
  | 'SEARCH_PATH_UNSAFE'
  | 'SEQUENCE_BEHIND'
  | 'SESSION_CHANGED'
  | 'SESSION_ENDED'
  | 'SINK_IN_USE'
  | 'STOPPED'
  | 'TRANSACTION_ABORTED'
  | 'TRANSACTION_CLOSED'
  | 'TRANSACTION_REQUIRED'
  | 'UNAWAITED_CALL'
  | 'UNAWAITED_QUERY'
  | 'WORKER_DIED'

const ONCEBOX_ERROR = Symbol.for('oncebox.error')
const REJECT = Symbol.for('oncebox.reject')
const RETRY_LATER = Symbol.for('oncebox.retry-later')

/** The one error class. Look at `code`; the message says what to do about it. */
export class OnceboxError extends Error {
  override readonly name = 'OnceboxError'
  readonly code: OnceboxErrorCode
  readonly [ONCEBOX_ERROR] = true

  constructor(code: OnceboxErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.code = code
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return isBranded(value, ONCEBOX_ERROR)
  }
}

/** Errors that the box itself has made. A handler may throw one with any code, and must not pass for the box. */
const own = sharedByCopies('own-errors', () => new WeakSet<object>())

/** An error by which the box decides what becomes of a message. */
export function ownError(...given: ConstructorParameters<typeof OnceboxError>): OnceboxError {
  const error = new OnceboxError(...given)
  own.add(error)
  return error
}

/** True for what `ownError` made, and for nothing that looks like it. */
export function isOwnError(error: unknown, code: OnceboxErrorCode): boolean {
  return typeof error === 'object' && error !== null && own.has(error) && (error as OnceboxError).code === code
}

/** True for what ends the run of a group whose messages have not failed: they run again at once, each alone. */
export function isAbandonment(error: unknown): error is OnceboxError {
  return error instanceof OnceboxError && error.code === 'GROUP_ABANDONED'
}

/** Thrown by a handler: dead-letter this message now, without further attempts. */
export class Reject extends Error {
  override readonly name = 'Reject'
  readonly [REJECT] = true

  constructor(reason: string, options?: { cause?: unknown }) {
    super(reason, options)
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return isBranded(value, REJECT)
  }
}

/** Thrown by a handler: run this message again later, without burning an attempt. */
export class RetryLater extends Error {
  override readonly name = 'RetryLater'
  readonly when: { readonly afterMs: number } | { readonly at: Date }
  readonly [RETRY_LATER] = true

  constructor(when: { afterMs: number } | { at: Date }) {
    checkWhen(when)
    super('at' in when ? `retry at ${when.at.toISOString()}` : `retry after ${when.afterMs} ms`)
    this.when = when
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return isBranded(value, RETRY_LATER)
  }
}

/** `new RetryLater(5000)` in plain JavaScript is refused here, and not later by its consequences. */
function checkWhen(when: unknown): void {
  const given = (typeof when === 'object' && when !== null ? when : {}) as { afterMs?: unknown; at?: unknown }
  const valid =
    'at' in given
      ? given.at instanceof Date && !Number.isNaN(given.at.getTime())
      : typeof given.afterMs === 'number' && !Number.isNaN(given.afterMs)
  if (valid) return
  const advice = 'new RetryLater({ afterMs: 5_000 }), or { at: a valid Date }'
  throw new OnceboxError('OPTION_INVALID', `RetryLater takes an object: ${advice}; got ${inspect(when, { depth: 0 })}`)
}
