/**
 * The first step of a message: through a front door (`receive`, `handle`) or from a source, into `inbox/deliver.ts`, and its
 * outcome back. What was stored wakes the workers.
 */
import type { Assembly } from './assembly.js'
import type { Deliver, Source } from './brokers/source.js'
import { OnceboxError } from './errors.js'
import type { FrontDoor } from './front-door.js'
import { deliver, type DeliverOptions } from './inbox/deliver.js'
import { Gathering } from './inbox/gather.js'
import { Elsewhere } from './inbox/others.js'
import { deliverWithin } from './inbox/quota.js'
import { tapArrivals } from './inbox/tapped.js'
import type { Incoming, MessageMap, Outcome } from './message.js'
import type { Origin } from './runtime.js'

export interface Arrivals {
  /** A front door, by its name; `how` says how each consumer gets what comes through it. */
  door<M extends MessageMap>(name: string, how: DeliverOptions['how']): FrontDoor<M>
  /** What a source delivers to. */
  from(source: Source, origin: Origin): Deliver
  /** Resolves when all that is on its way now has its outcome. */
  settled(): Promise<unknown>
}

export function createArrivals({ runtime, workers, running, waker, idle, advice }: Assembly): Arrivals {
  const elsewhere = new Elsewhere()
  const gathering = new Gathering(runtime)
  const underWay = new Set<Promise<unknown>>()

  const arrive = async (
    incoming: readonly Incoming[],
    how: Omit<DeliverOptions, 'consumers' | 'elsewhere' | 'gathering'>,
  ): Promise<Outcome[]> => {
    const consumers = [...workers.values()].map((worker) => worker.inline)
    const work = tapArrivals(incoming, deliver(runtime, incoming, { consumers, elsewhere, gathering, ...how }))
    underWay.add(work)
    const outcomes = await work.finally(() => underWay.delete(work))
    runtime.metrics.arrived(how.origin?.name, incoming, outcomes)
    if (outcomes.some(hasWork)) {
      runtime.traces.background(() => waker.wake())
      idle.arrived(outcomes)
    }
    return outcomes
  }

  return {
    door: <M extends MessageMap>(name: string, how: DeliverOptions['how']) =>
      (async (input: Incoming | readonly Incoming[], besides?: unknown) => {
        if (typeof besides === 'object' && besides !== null) throw tooMuch(name)
        if (Array.isArray(input)) return input.length === 0 ? [] : arrive(input as readonly Incoming[], { how })
        return (await arrive([input as Incoming], { how }))[0]!
      }) as FrontDoor<M>,
    from(source, origin) {
      const { consumers: only, unrouted } = origin
      const fingerprint = source.fingerprint?.bind(source)
      const how = { how: running.byMode, only, unrouted, fingerprint, bySource: true, origin }
      return (batch) => {
        void advice.aboutNames().catch(() => undefined)
        return deliverWithin(batch, (part) => arrive(part, how))
      }
    },
    settled: () => Promise.allSettled(underWay),
  }
}

/** A transaction before the message, or options behind it, would be passed over in silence. The index of a `map` may be. */
function tooMuch(door: string): OnceboxError {
  const advice = 'in a transaction of yours it is box.once(tx, consumer, message, work)'
  const takes = `${door} takes a message or an array of them, and nothing else`
  return new OnceboxError('MESSAGE_INVALID', `${takes}: { id, type, data }; ${advice}`)
}

/** Something was stored, or waits in the box for its next attempt. */
function hasWork({ consumers }: Outcome): boolean {
  return consumers.some(({ status }) => status === 'stored' || status === 'failed')
}
