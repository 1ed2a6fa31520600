/** Tells a tap what becomes of messages: those that arrive, and those that a worker has claimed. */
import type { Incoming, Outcome } from '../message.js'
import { listener, type Happening, type Listener } from '../tap.js'
import type { Claim } from './held.js'

/** The same claim, if nobody listens. */
export function tappedClaim(consumer: string, claim: Claim): Claim {
  const tell = listener()
  if (!tell) return claim
  const began = performance.now()
  return {
    ...claim,
    settled(done, late) {
      claim.settled(done, late)
      for (const { message } of done) {
        const { id, type, data, attempt } = message.message
        tell({ what: 'handled', consumer, id, type, data, attempt, ms: performance.now() - began })
      }
    },
    async fail(held, verdict) {
      const { id, type, data, attempt } = held.message
      const recorded = await claim.fail(held, verdict)
      const { failure, parked } = recorded ?? {}
      if (failure || parked) {
        const what = parked === 'dead' ? 'dead' : parked === 'quarantined' ? 'quarantined' : 'failed'
        tell({ what, consumer, id, type, data, attempt, error: failure?.message, ms: performance.now() - began })
      }
      return recorded
    },
  }
}

const ARRIVED: Readonly<Record<Exclude<Outcome['status'], 'busy' | 'skipped'>, Happening['what']>> = {
  stored: 'received',
  duplicate: 'duplicate',
  quarantined: 'quarantined',
  handled: 'handled',
  failed: 'failed',
  dead: 'dead',
}

/** The same promise, if nobody listens. */
export function tapArrivals(incoming: readonly Incoming[], work: Promise<Outcome[]>): Promise<Outcome[]> {
  const tell = listener()
  if (!tell) return work
  const began = performance.now()
  return work.then((outcomes) => {
    tellArrivals(tell, incoming, outcomes, performance.now() - began)
    return outcomes
  })
}

/** A source of the user's may hand over anything, also what throws when it is looked at. */
function shown(incoming: unknown, id: unknown): Pick<Happening, 'id' | 'type' | 'data'> {
  try {
    const { type, data } = incoming as Incoming
    return { id: String(id), type: String(type), data }
  } catch {
    return { id: 'undefined', type: 'undefined' }
  }
}

function tellArrivals(tell: Listener, incoming: readonly Incoming[], outcomes: readonly Outcome[], took: number): void {
  outcomes.forEach((outcome, at) => {
    const told = shown(incoming[at], outcome.id)
    // What never reached a consumer is in quarantine for none.
    const ends = outcome.consumers.length > 0 ? outcome.consumers : [{ consumer: undefined, ...outcome }]
    for (const { consumer, status, ...rest } of ends) {
      if (status === 'busy' || status === 'skipped') continue
      const { error, reason } = rest as { error?: { message: string }; reason?: string }
      const ms = status === 'handled' ? { ms: took } : {}
      tell({ ...told, ...ms, what: ARRIVED[status], consumer, error: error?.message ?? reason })
    }
  })
}
