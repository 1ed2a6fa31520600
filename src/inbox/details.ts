/** Details: what is written down of an attempt that failed, beside what becomes of its message. */
import { fingerprintOfFailure } from '../fingerprint.js'
import type { Failure } from '../message.js'
import type { FailureDetails } from '../postgres/sql/settle.js'
import { processName } from '../process-name.js'
import type { HeldMessage } from './held.js'

export function detailsOf({ ranMs }: HeldMessage, failure: Failure | undefined): FailureDetails {
  if (!failure) return { history: false }
  return {
    error: JSON.stringify(failure),
    history: true,
    fingerprint: fingerprintOfFailure(failure),
    // Nothing ran of what has no handler, or was judged before its turn.
    ...(ranMs !== undefined && { ms: Math.round(ranMs * 10) / 10 }),
    worker: processName(),
  }
}
