/** Who makes a change, and why: checked before anything is changed. */
import { checked, invalid, name, optional, resolve } from '../options.js'
import type { Signed } from './types.js'

const MAX_REASON = 2_000

/** What each change takes; many take more, each in its own declaration. */
export const SIGNED = {
  by: optional(name()),
  reason: optional(
    checked((where, given: string) => {
      if (typeof given !== 'string') throw invalid(`${where} must be a string, words for people`)
      return given.slice(0, MAX_REASON).toWellFormed().replaceAll('\0', '\uFFFD')
    }),
  ),
}

/** For a change that takes nothing else. */
export function checkSigned(
  verb: string,
  options: Signed,
): { readonly by?: string | undefined; readonly reason?: string | undefined } {
  return resolve(verb, options, SIGNED)
}
