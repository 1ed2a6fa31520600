/**
 * The bulk dialog's states. `counting`: the server counts. `confirm`: the reader chooses how many, how fast and why. `starting`: it
 * was confirmed. `following`: a job is shown, running or ended. `nothing`: no message matches. `refused`: it cannot be counted.
 *
 * What is shown is what the server said: a count that has changed meanwhile goes back to `confirm` with the new one.
 */
import type { Counted, Job, ProblemAnswer } from '../../../src/dashboard/answers/index.js'

export type Verb = Job['verb']
export type Amount = number | 'all'
/** Messages in a second. */
export type Pace = number | 'unlimited'

export interface Choice {
  readonly amount: Amount
  readonly pace: Pace
  readonly reason: string
}

export type BulkState =
  | { readonly step: 'counting' }
  | { readonly step: 'nothing' }
  | { readonly step: 'refused'; readonly message: string }
  | {
      readonly step: 'confirm' | 'starting'
      readonly counted: Counted
      readonly choice: Choice
      /** What there was when the reader confirmed, if that has changed. */
      readonly before?: number
      /** Why the server did not begin. */
      readonly message?: string
    }
  | { readonly step: 'following'; readonly id: string }

export interface Limits {
  /** Above so many a rate is needed. */
  readonly rateAbove: number
  readonly mostPerSecond: number
}

export const PACES: readonly number[] = [1, 10, 50, 200]
const USUAL_PACE = 50
const AMOUNTS: readonly number[] = [1, 10, 100]

/** Only 1 · 10 · 100 · All: those that are fewer than all. */
export function amountsOf(count: number): readonly Amount[] {
  return [...AMOUNTS.filter((amount) => amount < count), 'all']
}

/** No limit is not offered for more than the server would take without one. */
export function pacesOf(messages: number, { rateAbove, mostPerSecond }: Limits): readonly Pace[] {
  return [...PACES, messages > rateAbove ? mostPerSecond : 'unlimited']
}

export function messagesOf({ count }: Counted, { amount }: Choice): number {
  return amount === 'all' ? count : Math.min(amount, count)
}

/** The server has counted. */
export function counted(answer: Counted): BulkState {
  if (answer.count === 0) return { step: 'nothing' }
  return { step: 'confirm', counted: answer, choice: { amount: 'all', pace: USUAL_PACE, reason: '' } }
}

/** Counted again, since the count was too old: what the reader chose stays chosen. */
export function recounted(before: BulkState, now: BulkState, limits: Limits): BulkState {
  if (before.step !== 'confirm' || now.step !== 'confirm') return now
  const { amount, ...rest } = before.choice
  const fits = amountsOf(now.counted.count).includes(amount)
  const changed = before.counted.count !== now.counted.count
  const shown: BulkState = changed ? { ...now, before: before.counted.count } : now
  return chosen(shown, { ...rest, amount: fits ? amount : 'all' }, limits)
}

/** The reader has chosen: an amount, a pace, or a reason. What the new amount does not allow gives way. */
export function chosen(state: BulkState, change: Partial<Choice>, limits: Limits): BulkState {
  if (state.step !== 'confirm') return state
  const choice = { ...state.choice, ...change }
  const paces = pacesOf(messagesOf(state.counted, choice), limits)
  const pace = paces.includes(choice.pace) ? choice.pace : paces.at(-1)!
  return { ...state, choice: { ...choice, pace } }
}

export function starting(state: BulkState): BulkState {
  if (state.step !== 'confirm') return state
  const { counted, choice } = state
  return { step: 'starting', counted, choice }
}

/** It did not begin. A count that has changed is shown, and has to be confirmed again. */
export function notStarted(state: BulkState, error: ProblemAnswer['error']): BulkState {
  if (state.step !== 'starting') return state
  const { counted, choice } = state
  if (error.code === 'NOTHING_MATCHES') return { step: 'nothing' }
  if (error.code !== 'COUNT_CHANGED' || !error.counted)
    return { step: 'confirm', counted, choice, message: error.message }
  if (error.counted.count === 0) return { step: 'nothing' }
  const amounts = amountsOf(error.counted.count)
  const amount = amounts.includes(choice.amount) ? choice.amount : 'all'
  return { step: 'confirm', counted: error.counted, choice: { ...choice, amount }, before: counted.count }
}

/** What the server is asked for. */
export function orderOf(
  counted: Counted,
  choice: Choice,
): { confirmation: string; limit?: number; perSecond?: number; reason?: string } {
  const { amount, pace } = choice
  const reason = choice.reason.trim()
  return {
    confirmation: counted.confirmation,
    ...(amount !== 'all' && { limit: amount }),
    ...(pace !== 'unlimited' && { perSecond: pace }),
    ...(reason !== '' && { reason }),
  }
}

/** Of all that a job was given: what has become of them. They add up to `total`. */
export interface Progress {
  readonly total: number
  readonly handled: number
  readonly failedAgain: number
  /** Retried, and not run yet; or discarded. */
  readonly changed: number
  /** Left alone: somebody else has changed them meanwhile. */
  readonly skipped: number
  readonly untouched: number
}

export function progressOf({ verb, total, done, skipped, handled, failedAgain }: Job): Progress {
  const ran = verb === 'retry' ? Math.min(done, handled + failedAgain) : 0
  const failed = Math.min(failedAgain, ran)
  return {
    total: Math.max(total, done + skipped),
    handled: ran - failed,
    failedAgain: failed,
    changed: done - ran,
    skipped,
    untouched: Math.max(0, total - done - skipped),
  }
}

/** How long the rest takes at its rate; undefined without one. */
export function leftMs({ perSecond, total, done, skipped }: Job): number | undefined {
  return perSecond === undefined ? undefined : (Math.max(0, total - done - skipped) / perSecond) * 1_000
}
