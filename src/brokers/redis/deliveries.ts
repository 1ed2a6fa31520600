/** Delivers what was read, and acknowledges after the commit. What may not be acknowledged waits for its time. */
import { sleep } from '../../backoff.js'
import type { OwnTurn } from '../../lifecycle.js'
import type { Outcome } from '../../message.js'
import { awayMs, failedAgainAfterMs } from '../redelivery.js'
import type { Deliver } from '../source.js'
import { readEntry } from './event.js'
import type { Group } from './group.js'
import type { ResolvedSource } from './options.js'
import type { Batch } from './reading.js'
import type { Delivery, Waiting } from './waiting.js'

export interface Deliveries {
  /** The entries that the box is handling now. */
  running(): Iterable<string>
  deliver(batch: Batch, to: Group): Promise<void>
  /** Acknowledges all that the box has taken. */
  acknowledge(to: Group): Promise<void>
}

export interface Takers {
  readonly deliver: Deliver
  readonly waiting: Waiting
  readonly turn: OwnTurn
}

export function createDeliveries(
  options: ResolvedSource,
  { deliver: deliverToBox, waiting, turn }: Takers,
): Deliveries {
  const running = new Set<string>()
  /** Taken by the box, and perhaps not acknowledged: the connection may be lost before. */
  const committed = new Set<string>()
  let rejections = 0

  const acknowledge = async (to: Group): Promise<void> => {
    await to.acknowledge([...committed])
    committed.clear()
  }

  /** Undefined if the box can take nothing now, and has told its hooks why. */
  const tryDeliver = async (deliveries: readonly Delivery[]): Promise<readonly Outcome[] | undefined> => {
    try {
      const outcomes = await deliverToBox(deliveries.map(({ incoming }) => incoming))
      rejections = 0
      return outcomes
    } catch {
      return undefined
    }
  }

  const settle = (one: Delivery, outcome: Outcome): void => {
    if (outcome.ack) committed.add(one.id)
    else {
      const failures = one.failures + (outcome.status === 'failed' ? 1 : 0)
      waiting.add({ ...one, failures }, failedAgainAfterMs(outcome, one.failures))
    }
  }

  return {
    running: () => running,
    async deliver(batch, to) {
      const deliveries = waiting.letPass(toDeliveries(batch, options))
      if (deliveries.length === 0) return
      for (const { id } of deliveries) running.add(id)
      try {
        const outcomes = await tryDeliver(deliveries)
        if (!outcomes) {
          // After the pause they come first.
          for (const one of deliveries) waiting.add(one, 0)
          return await sleep(awayMs(rejections++), turn.over)
        }
        deliveries.forEach((one, at) => settle(one, outcomes[at]!))
        await acknowledge(to)
      } finally {
        for (const { id } of deliveries) running.delete(id)
      }
    },
    acknowledge,
  }
}

function toDeliveries({ entries, redelivered, waited }: Batch, options: ResolvedSource): readonly Delivery[] {
  return entries.map((entry) => {
    const { isFresh = !redelivered, failures = 0 } = waited?.get(entry.id) ?? {}
    const incoming = readEntry(entry, !isFresh, options)
    return { id: entry.id, incoming, key: incoming.key, isFresh, failures }
  })
}
