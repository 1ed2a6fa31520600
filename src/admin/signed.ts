/** Who makes a change, and why: checked before anything is changed. */
import { checkKnown, nameProblem } from '../check-options.js'
import { OnceboxError } from '../errors.js'
import type { Signed } from './types.js'

const MAX_REASON = 2_000

/** What `retry` and `discard` take besides is checked by them. */
export const SIGNED = ['by', 'reason'] as const

export function checkSigned(verb: string, options: Signed): Signed {
  if (typeof options !== 'object' || options === null) checkKnown(verb, options, SIGNED)
  const { by, reason } = options as { by?: unknown; reason?: unknown }
  const problem = by === undefined ? undefined : nameProblem(by)
  if (problem) throw new OnceboxError('OPTION_INVALID', `${verb}: by ${problem}`)
  if (reason !== undefined && typeof reason !== 'string') {
    throw new OnceboxError('OPTION_INVALID', `${verb}: reason must be a string, words for people`)
  }
  const written = reason?.slice(0, MAX_REASON).toWellFormed().replaceAll('\0', '\uFFFD')
  return { ...(by !== undefined && { by: by as string }), ...(written !== undefined && { reason: written }) }
}

/** The same for a change that takes nothing else. */
export function checkOnlySigned(verb: string, options: Signed): Signed {
  checkKnown(verb, options, SIGNED)
  return checkSigned(verb, options)
}
