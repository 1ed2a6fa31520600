/** Delivers what is held, and acknowledges after the commit. What may not be acknowledged yet goes back into its place. */
import type { Outcome } from '../../message.js'
import { awayMs, failedAgainAfterMs } from '../redelivery.js'
import type { Deliver } from '../source.js'
import type { Held, Holding } from './holding.js'

export interface Deliveries {
  readonly isDelivering: boolean
  /** Nothing is delivered before, by `performance.now()`: the box rejected the last batch. */
  readonly pausedUntil: number
  isPaused(): boolean
  /** What is due, up to so many; nothing during a pause. */
  take(most: number): readonly Held[]
  deliver(batch: readonly Held[]): Promise<void>
}

export function createDeliveries(holding: Holding, deliverToBox: Deliver): Deliveries {
  let isDelivering = false
  let pausedUntil = 0
  let rejections = 0
  const isPaused = (): boolean => performance.now() < pausedUntil

  const settle = (batch: readonly Held[], outcomes: readonly Outcome[]): void => {
    const again: Held[] = []
    batch.forEach((one, at) => {
      const outcome = outcomes[at]!
      if (outcome.ack) return holding.settle(one, (message) => message.ack())
      one.dueAt = performance.now() + failedAgainAfterMs(outcome, one.failures)
      if (outcome.status === 'failed') one.failures++
      again.push(one)
    })
    if (again.length > 0) holding.putBack(again)
  }
  const deliverBatch = async (batch: readonly Held[]): Promise<void> => {
    let outcomes: readonly Outcome[]
    try {
      outcomes = await deliverToBox(batch.map(({ incoming }) => incoming))
    } catch {
      // The box cannot take anything now, and has told its hooks why. All of it stays as it was, in its place.
      pausedUntil = performance.now() + awayMs(rejections++)
      for (const one of batch) one.dueAt = pausedUntil
      return holding.putBack(batch)
    }
    rejections = 0
    settle(batch, outcomes)
  }

  return {
    get isDelivering() {
      return isDelivering
    },
    get pausedUntil() {
      return pausedUntil
    },
    isPaused,
    take: (most) => (isPaused() ? [] : holding.take(most)),
    async deliver(batch) {
      isDelivering = true
      await deliverBatch(batch)
      isDelivering = false
    },
  }
}
