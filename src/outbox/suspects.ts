/**
 * Suspects: events that came back with the word that the destination is down. It may be: then they wait, and nothing is
 * counted. Or an event makes the destination fail, such as one on which a receiver crashes: then others get through
 * between two failures of it, and it is counted like one that was refused.
 *
 *     unknown ── fails ──> suspect ── fails, after others were published in a later round ──> counted
 *
 * Others of the same round prove nothing: the destination may have gone away, or come back, in the middle of it.
 */
import type { Retry } from '../retry.js'
import { blame, type OutgoingEvent, type Verdicts } from './publish.js'

export interface Suspects {
  /** Moves those that are proven to be to blame to `failed`, and remembers the others. */
  judge(verdicts: Verdicts, retry: Retry): void
  /** Whether events wait, by what is known here, because the destination did not take them. */
  readonly waiting: boolean
}

/** For a while after it was due: another relay may have published it. */
const GRACE_MS = 60_000
/** Those remembered longest ago are forgotten: they are suspects anew. */
const MOST = 10_000

export function createSuspects(): Suspects {
  /** How many events had been published, all in all, after the round in which it failed. */
  const failedAt = new Map<string, number>()
  /** Until when an event counts as waiting. */
  const waitingUntil = new Map<string, number>()
  let total = 0

  const forget = ({ n }: OutgoingEvent): void => {
    failedAt.delete(n)
    waitingUntil.delete(n)
  }
  return {
    judge(verdicts, retry) {
      const before = total
      total += verdicts.published.length
      if (failedAt.size > 0 || waitingUntil.size > 0) verdicts.published.forEach(forget)
      for (const { event } of verdicts.failed) forget(event)
      for (const { event, delayMs } of verdicts.problem ? verdicts.later : []) {
        keep(waitingUntil, event.n, performance.now() + delayMs + GRACE_MS)
      }
      const others: Verdicts['suspects'] = []
      for (const suspect of verdicts.suspects.splice(0)) {
        const { event, refusal } = suspect
        const at = failedAt.get(event.n)
        if (at !== undefined && before > at) verdicts.failed.push(blame(event, refusal, retry))
        else others.push(suspect)
        if (at === undefined || before > at) keep(failedAt, event.n, total)
      }
      verdicts.suspects.push(...others)
    },
    get waiting() {
      const now = performance.now()
      for (const [n, until] of waitingUntil) if (until < now) waitingUntil.delete(n)
      return waitingUntil.size > 0
    },
  }
}

function keep(map: Map<string, number>, n: string, value: number): void {
  map.delete(n)
  map.set(n, value)
  if (map.size > MOST) map.delete(map.keys().next().value!)
}
