/** The timeline of a message, newest first: changes of state have a silhouette, other events a dot. */
import type { Attempt, Fate, StateName } from '../../../src/dashboard/answers/index.js'
import { duration } from './format.js'

/** How often it was run. What is kept of a message that was handled is what failed before. */
export function runsOf({ state, attempts, history }: Fate): number {
  return state === 'handled' ? (history.at(-1)?.attempt ?? 0) + 1 : attempts
}

export interface Moment {
  readonly mark: StateName | 'event'
  readonly title: string
  readonly small?: string
  readonly at: string
}

type Event = Fate['timeline'][number]

export function momentsOf(fate: Fate): readonly Moment[] {
  const moments = withRunsTogether(fate).map((one) => momentOf(fate, one))
  return [...refusedOnArrival(fate), ...moments.reverse()]
}

/** What was never tried was refused when it came. */
function refusedOnArrival({ state, reason, receivedAt, timeline }: Fate): readonly Moment[] {
  if (state !== 'quarantined' || reason === undefined || timeline.some(({ what }) => what === 'failed')) return []
  return [{ mark: 'quarantined', title: 'Quarantined', small: reason, at: receivedAt }]
}

/** Attempts that failed one after another, with nothing between them. */
interface Run {
  readonly at: string
  readonly what: 'failures'
  readonly attempts: readonly Event[]
}

function withRunsTogether({ timeline, state }: Fate): readonly (Event | Run)[] {
  const ended = state === 'dead' || state === 'discarded' || state === 'quarantined'
  const lastFailed = ended ? timeline.findLastIndex(({ what }) => what === 'failed') : -1
  const grouped: (Event | Run)[] = []
  for (const [index, event] of timeline.entries()) {
    const before = grouped.at(-1)
    if (event.what !== 'failed' || index === lastFailed) grouped.push(event)
    else if (before?.what === 'failures') {
      grouped[grouped.length - 1] = { ...before, at: event.at, attempts: [...before.attempts, event] }
    } else grouped.push({ at: event.at, what: 'failures', attempts: [event] })
  }
  return grouped
}

function momentOf(fate: Fate, event: Event | Run): Moment {
  const { at } = event
  if (event.what === 'failures') return failures(fate, event)
  switch (event.what) {
    case 'sent':
      return { mark: 'event', title: 'Sent', ...(fate.source !== '' && { small: `by ${fate.source}` }), at }
    case 'received':
      return { mark: 'pending', title: 'Received', ...(fate.consumer !== '' && { small: `for ${fate.consumer}` }), at }
    case 'failed':
      return last(fate, event)
    case 'effect-called':
      return { mark: 'event', title: `Effect called: ${event.effect}`, small: 'its intent was recorded before', at }
    case 'effect-done':
      return { mark: 'event', title: `Effect on record: ${event.effect}`, at }
    case 'handled':
      return { mark: 'handled', title: 'Handled', small: `${duration(since(fate, at))} after it was received`, at }
    case 'due':
      return { mark: 'pending', title: 'Next try', at }
  }
}

/** The attempt after which there was no other. */
function last(fate: Fate, event: Event): Moment {
  const attempt = fate.history.find((one) => one.attempt === event.attempt)
  const words: Readonly<Record<string, string>> = { dead: 'Dead', discarded: 'Failed', quarantined: 'Quarantined' }
  const mark = fate.state === 'discarded' ? 'dead' : fate.state
  return {
    mark,
    title: words[fate.state] ?? 'Failed',
    small: [attempt?.error.name ?? fate.failure?.name ?? 'no further attempt', ...how(attempt)].join(', '),
    at: event.at,
  }
}

function failures(fate: Fate, { attempts, at }: Run): Moment {
  const known = attempts.flatMap(({ attempt }) => fate.history.find((one) => one.attempt === attempt) ?? [])
  const names = [...new Set(known.map(({ error }) => error.name))]
  const times = attempts.map((one) => Date.parse(one.at))
  const waits = times.slice(1).map((time, index) => time - times[index]!)
  const small = [
    ...(names.length > 0 ? [names.join(', ')] : []),
    ...(waits.length > 0 ? [spread(waits)] : []),
    ...(known.length === 1 ? how(known[0]) : []),
  ].join(', ')
  const title = attempts.length === 1 ? `Attempt ${attempts[0]!.attempt} failed` : `${attempts.length} attempts failed`
  return { mark: 'pending', title, ...(small !== '' && { small }), at }
}

function spread(waits: readonly number[]): string {
  const [least, most] = [duration(Math.min(...waits)), duration(Math.max(...waits))]
  return least === most ? `${least} apart` : `${least} to ${most} apart`
}

function how(attempt: Attempt | undefined): string[] {
  const { ms, worker } = (attempt ?? {}) as { ms?: number; worker?: string }
  return [...(ms === undefined ? [] : [`after ${duration(ms)}`]), ...(worker === undefined ? [] : [worker])]
}

function since({ receivedAt }: Fate, at: string): number {
  return Math.max(0, Date.parse(at) - Date.parse(receivedAt))
}
