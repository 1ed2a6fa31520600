/** What the page of keys says. */
import type { BlockedKey } from '../../../src/dashboard/answers/index.js'
import { about, count, plural } from './format.js'

/** 8 keys are blocked */
export function keysTitle(keys: number, atLeast: boolean): string {
  const verb = keys === 1 && !atLeast ? 'key is' : 'keys are'
  return `${about(keys, { atLeast })} ${verb} blocked`
}

export function waitingOf(keys: readonly BlockedKey[]): { readonly count: number; readonly atLeast: boolean } {
  return {
    count: keys.reduce((sum, { waiting }) => sum + waiting, 0),
    atLeast: keys.some(({ atLeast }) => atLeast),
  }
}

/** 2 207 messages of ship-order wait behind 8 that stopped; other keys go on. */
export function keysSentence(keys: readonly BlockedKey[]): string {
  const { count: waiting, atLeast } = waitingOf(keys)
  const consumers = [...new Set(keys.map(({ consumer }) => consumer))]
  const of =
    consumers.length === 1
      ? ` of ${consumers[0]}`
      : consumers.length > 1
        ? ` of ${count(consumers.length)} consumers`
        : ''
  const wait =
    waiting === 0
      ? 'Nothing waits behind them yet'
      : `${atLeast ? `${about(waiting, { atLeast })} messages` : plural(waiting, 'message')}${of} ${waiting === 1 ? 'waits' : 'wait'} behind ${count(keys.length)} that stopped`
  return `${wait}; other keys go on. Retry the one in front, or discard it.`
}

/** What a retry of those in front sets free. */
export function behindWords(keys: readonly BlockedKey[]): string {
  const { count: waiting, atLeast } = waitingOf(keys)
  const one = waiting === 1 && !atLeast
  return `${about(waiting, { atLeast })} ${one ? 'message behind them follows' : 'messages behind them follow'} in order, each key on its own.`
}

/** Why the one in front stopped, as short as it goes. */
export function whyBlocked({ state, reason, error }: BlockedKey['front']): string {
  if (error) return error.message === undefined ? error.name : `${error.name}: ${error.message}`
  if (reason !== undefined) return reason
  return state === 'dead' ? 'its attempts are used up' : 'in quarantine'
}
