/** Effect: what a handler asks for, checked, with the key and the words by which it is known. */
import { createHash } from 'node:crypto'
import { requireFunction } from '../check-options.js'
import { OnceboxError, Reject, RetryLater } from '../errors.js'
import { DAY_MS } from '../figures.js'
import type { EffectOptions } from '../handler.js'
import { callback, integer, oneOf, optional, resolve } from '../options.js'
import { isPromise } from '../promises.js'
import type { Traces } from '../telemetry/traces.js'
import type { EffectSubject } from '../postgres/sql/effects.js'

export interface WantedEffect {
  readonly name: string
  readonly run: (call: { idempotencyKey: string; signal: AbortSignal }) => unknown
  readonly options: EffectOptions
  /** The trace that it was asked for in. */
  readonly within: Traces['context']
}

/** Nobody knows whether the call happened, and its author wants a person to find out. */
export class EffectUnknown extends Error {
  override readonly name = 'EffectUnknown'
  constructor(
    readonly effect: string,
    cause?: unknown,
  ) {
    super(
      `nobody knows whether ${quoteEffect(effect)} happened; find out, and tell with admin.answer() or oncebox effects answer`,
      { cause },
    )
  }
}

/** How the error of a parked message names its effect: an answer is matched by it. */
export function quoteEffect(name: string): string {
  return `effect '${name}'`
}

/** The effect that the error of a parked message names. */
export function effectIn(message: string): string | undefined {
  return /^nobody knows whether effect '(.*)' happened; /s.exec(message)?.[1]
}

export function usedTwice(name: string): OnceboxError {
  return new OnceboxError(
    'OPTION_INVALID',
    `${quoteEffect(name)} was called twice in one run of the handler; two effects of one message need two names`,
  )
}

/** `recorded`: the effect that was called for the run before. */
export function namedAnew(name: string, recorded: string): OnceboxError {
  const text = `was called by a run of the handler that did not ask for the outcome of ${quoteEffect(recorded)}, which had just been recorded for it`
  return new OnceboxError(
    'OPTION_INVALID',
    `${quoteEffect(name)} ${text}; name effects by what stays the same from run to run`,
  )
}

/** A misspelt `onUnknown` would call again what its author wanted to be called once. */
const EFFECT = {
  onUnknown: oneOf(['retry', 'park'], 'retry'),
  isDefinite: optional(callback<(error: unknown) => boolean>()),
  timeoutMs: optional(integer({ least: 1, most: DAY_MS }), "the consumer's"),
}

export function checkEffect(where: string, run: unknown, options: EffectOptions): void {
  requireFunction(`${where}: its second argument`, run)
  resolve(where, options, EFFECT)
}

/** The same on every attempt, and different for every message, consumer and step. */
export function idempotencyKey({ consumer, source, id }: EffectSubject, name: string): string {
  return createHash('sha256')
    .update(JSON.stringify([consumer, source, id, name]))
    .digest('hex')
    .slice(0, 40)
}

/** Did the call certainly not happen? What steers a message was thrown by the caller's own code, so it knows. */
export function isDefinite(error: unknown, { isDefinite: vouches }: EffectOptions): boolean {
  if (error instanceof Reject || error instanceof RetryLater) return true
  const answer: unknown = vouches?.(error)
  // A promise is no yes, and nobody waits for it.
  return !isPromise(answer) && answer === true
}
