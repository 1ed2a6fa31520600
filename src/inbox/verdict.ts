/** What a thrown error means for its message: run again, and when; or wait for a person. */
import { EffectUnknown } from '../effects/effect.js'
import { isOwnError, Reject, RetryLater } from '../errors.js'
import { toFailure } from '../failure.js'
import { CALENDAR, LONGEST_MS } from '../figures.js'
import type { Failure, QuarantineReason } from '../message.js'
import { isCounted, type HeldMessage } from './held.js'
import { isConflict } from '../postgres/errors.js'
import { RETRY_MISSING_HANDLER, type Retry } from '../retry.js'

/** What a failed message's fate is. */
export interface Verdict {
  /** Attempts to add to the count. */
  readonly attempts: number
  /** Runs again after so long, and not before this time; neither if it waits for a person. */
  readonly delayMs?: number
  readonly at?: Date
  /** The handler asked for this time itself, with these words. */
  readonly asked?: Failure
  readonly parked?: 'dead' | 'quarantined'
  readonly reason?: QuarantineReason
  /** Undefined if nobody has failed. */
  readonly failure?: Failure
}

/** `missed`: so many of its attempts have run nothing, and are not the message's. */
export function verdictOf(error: unknown, message: HeldMessage, retry: Retry, missed = 0): Verdict {
  // What was counted before it ran is not counted again, and is taken back if it does not count.
  const counted = isCounted(message)
  const uncounted = counted ? -1 : 0
  const when = timeAsked(error)
  if (when) return { attempts: uncounted, ...when, asked: toFailure(error) }
  if (isConflict(error)) return { attempts: uncounted, delayMs: 20 + Math.random() * 200 }
  const failure = failureOf(error)
  const attempts = counted ? 0 : 1
  const attempt = Math.max(1, attemptOf(message) - missed)
  if (error instanceof EffectUnknown) return { attempts, parked: 'quarantined', reason: 'effect-unknown', failure }
  if (error instanceof Reject) return { attempts, parked: 'dead', failure }
  const delayMs = (isMissingHandler(error) ? RETRY_MISSING_HANDLER : retry)(error, attempt)
  return delayMs === null ? { attempts, parked: 'dead', failure } : { attempts, delayMs, failure }
}

/** The number of the attempt that a message is at. */
export function attemptOf(message: HeldMessage): number {
  return isCounted(message) ? message.attempts : message.attempts + 1
}

/** What a RetryLater asks for. One that was made or changed by hand may ask for no time at all, and is a failure. */
function timeAsked(error: unknown): Pick<Verdict, 'at' | 'delayMs'> | undefined {
  if (!(error instanceof RetryLater)) return undefined
  try {
    const { at, afterMs } = error.when as { at?: unknown; afterMs?: unknown }
    if (at instanceof Date && !Number.isNaN(at.getTime())) return { at: onTheCalendar(at) }
    if (typeof afterMs !== 'number' || Number.isNaN(afterMs)) return undefined
    return { delayMs: Math.min(Math.max(0, afterMs), LONGEST_MS) }
  } catch {
    return undefined
  }
}

/** A failure with this code counts as an attempt that ran nothing, so that only the box may say it. */
function failureOf(error: unknown): Failure {
  const { code, ...failure } = toFailure(error)
  return code === undefined || (code === 'HANDLER_MISSING' && !isMissingHandler(error)) ? failure : { ...failure, code }
}

/** When to run it again, as its handler asked or its policy says. Without a policy (direct) it is up to the source. */
export function retryTime({ at, delayMs }: Verdict): Date | undefined {
  if (delayMs === undefined) return at
  return new Date(Math.max(at?.getTime() ?? 0, Date.now() + Math.min(delayMs, LONGEST_MS)))
}

/** PostgreSQL and JavaScript disagree on how to write other years, and a time that cannot be stored would be no delay. */
function onTheCalendar(at: Date): Date {
  return new Date(Math.min(Math.max(at.getTime(), 0), CALENDAR.last))
}

export function isMissingHandler(error: unknown): boolean {
  return isOwnError(error, 'HANDLER_MISSING')
}
