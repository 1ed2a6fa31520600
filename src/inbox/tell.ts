/** Tell: what became of a message that was not handled, in the same words for every way in which it ran. */
import { aboutMessage } from '../about.js'
import { wordsOf } from '../failure.js'
import type { Entry, Retrial } from '../hooks.js'
import type { MessageMap } from '../message.js'
import { tell, type Runtime } from '../runtime.js'
import { retryTime, type Verdict } from './verdict.js'

export type Told = Omit<Entry<MessageMap>, 'state' | 'reason'>

/** It runs again: `verdict` says when, and why. */
export function tellRetry(runtime: Runtime, told: Told, verdict: Verdict, retryBy: Retrial['retryBy']): void {
  const retryAt = retryTime(verdict)
  const retryInMs = retryAt && Math.max(0, Math.round(verdict.delayMs ?? retryAt.getTime() - Date.now()))
  const about = { ...aboutOf(told), retryBy, ...(retryAt && { retryInMs }) }
  const again = retryBy === 'box' ? 'the box retries it' : 'its source delivers it again'
  if (verdict.asked) return runtime.log.info(about, `message is put off; ${again}`)
  // Nobody failed: a deadlock, or the like.
  if (verdict.failure === undefined) return runtime.log.warn(about, `message met a conflict; ${again}`)
  runtime.log.warn(about, `message failed; ${again}`)
  tell(runtime, 'failed', { ...told, state: 'pending' }, { retryBy, ...(retryAt && { retryAt }) })
}

/** It waits for a person. `fields`: those that its schema refuses. */
export function tellParked(
  runtime: Runtime,
  told: Told,
  { parked, reason }: Verdict,
  fields: readonly string[] = [],
): void {
  const state = parked === 'quarantined' ? 'quarantined' : 'dead'
  const { error, ...rest } = told
  // What a schema says may quote the message.
  const of = aboutOf(error && reason !== 'invalid' ? told : rest)
  const about = { ...of, ...(reason && { reason }), ...(fields.length > 0 && { fields }) }
  runtime.log.error(about, state === 'dead' ? 'message is dead' : 'message quarantined')
  tell(runtime, state, { ...told, state, ...(reason && { reason }) })
}

function aboutOf({ message, consumer, error }: Told): object {
  return { ...aboutMessage(message), consumer, attempt: message.attempt, ...(error && { error: wordsOf(error) }) }
}
