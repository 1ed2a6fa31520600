/** What a thrown error means for its message: run again, and when; or wait for a person. */
import { EffectUnknown } from '../effects/journal.js'
import { OnceboxError, Reject, RetryLater } from '../errors.js'
import { toFailure } from '../failure.js'
import type { Verdict } from './claim.js'
import { RETRY_MISSING_HANDLER, type Retry } from './options.js'
import { isConflict } from './transaction.js'

/** `counted`: the attempt was counted before it ran, so nothing is added for it, or taken back if it does not count. */
export function verdictOf(error: unknown, attempt: number, retry: Retry, counted: boolean): Verdict {
  const uncounted = counted ? -1 : 0
  if (error instanceof RetryLater) {
    const { when } = error
    if ('at' in when && !Number.isNaN(when.at.getTime())) {
      return { attempts: uncounted, at: onTheCalendar(when.at), asked: true }
    }
    const delayMs = 'afterMs' in when ? Math.max(0, Number(when.afterMs) || 0) : 0
    return { attempts: uncounted, delayMs: Math.min(delayMs, LONGEST_MS), asked: true }
  }
  if (isConflict(error)) return { attempts: uncounted, delayMs: 20 + Math.random() * 200 }
  const failure = toFailure(error)
  const attempts = counted ? 0 : 1
  if (error instanceof EffectUnknown) return { attempts, parked: 'quarantined', reason: 'effect-unknown', failure }
  if (error instanceof Reject) return { attempts, parked: 'dead', failure }
  const delayMs = (isMissingHandler(error) ? RETRY_MISSING_HANDLER : retry)(error, attempt)
  return delayMs === null ? { attempts, parked: 'dead', failure } : { attempts, delayMs, failure }
}

/** When to run it again, as its handler asked or its policy says. Without a policy (direct) it is up to the source. */
export function retryTime({ at, delayMs }: Verdict): Date | undefined {
  return at ?? (delayMs === undefined ? undefined : new Date(Date.now() + Math.min(delayMs, LONGEST_MS)))
}

/** A hundred years: PostgreSQL cannot add for ever. */
const LONGEST_MS = 36_500 * 86_400_000
const END_OF_9999 = 253_402_300_799_000

/** PostgreSQL and JavaScript disagree on how to write other years, and a time that cannot be stored would be no delay. */
function onTheCalendar(at: Date): Date {
  return new Date(Math.min(Math.max(at.getTime(), 0), END_OF_9999))
}

export function isMissingHandler(error: unknown): boolean {
  return error instanceof OnceboxError && error.code === 'HANDLER_MISSING'
}
