/**
 * Deliveries: messages that were received become batches, and each batch is settled when the box has answered.
 *
 * What is acknowledged is deleted, also behind a failed message of its group: it is committed. In a FIFO queue nothing of
 * a group is delivered while an earlier message of it is on its way, or has been given back.
 *
 * While the database is away, a delivery stays here, hidden, and goes again after a pause. Given back, it would count as
 * received, of which the redrive policy of a queue may allow only so many.
 */
import type { Outcome } from '../../message.js'
import { awayMs } from '../redelivery.js'
import type { Deliver } from '../source.js'
import type { Queue } from './client.js'
import type { Health } from './health.js'
import { delaySeconds, giveBack, remove } from './settle.js'
import type { Held, Visibility } from './visibility.js'

export interface DeliveryOptions {
  readonly batch: number
  readonly lingerMs: number
  readonly concurrency: number
  readonly fifo: boolean
}

export interface Parts {
  readonly queue: Queue
  readonly visibility: Visibility
  readonly health: Health
  readonly deliver: Deliver
  /** There may be room for more messages. */
  readonly onRoom: () => void
}

export interface Deliveries {
  add(some: readonly Held[]): void
  /** The box rejected a delivery: for a moment nothing is delivered, and nothing should be received. */
  readonly paused: boolean
  /** Gives back what was not begun, and waits for the rest. */
  stop(): Promise<void>
}

export function createDeliveries(options: DeliveryOptions, parts: Parts): Deliveries {
  const { queue, visibility, health, deliver } = parts
  const waiting: Held[] = []
  const lanes = new Set<string>()
  const running = new Set<Promise<void>>()
  let lingering: NodeJS.Timeout | undefined
  let pausing: NodeJS.Timeout | undefined
  let rejections = 0
  let stopped = false

  const pump = (): void => {
    clearTimeout(lingering)
    lingering = undefined
    while (!stopped && !pausing && running.size < options.concurrency) {
      const batch = take(waiting, options.batch, lanes, visibility)
      if (batch.length === 0) break
      const delivery = run(batch).finally(() => {
        running.delete(delivery)
        pump()
      })
      running.add(delivery)
    }
    parts.onRoom()
  }

  const pause = (): void => {
    clearTimeout(pausing)
    pausing = setTimeout(() => {
      pausing = undefined
      pump()
    }, awayMs(rejections++))
  }

  const run = async (batch: readonly Held[]): Promise<void> => {
    const outcomes = await tryDeliver(batch)
    if (!outcomes && !stopped) return putBack(batch)
    const acked = batch.filter((_, at) => outcomes?.[at]?.ack === true)
    const others = batch.flatMap((held, at) =>
      outcomes?.[at]?.ack === true ? [] : [{ held, seconds: delaySeconds(held, outcomes?.[at]) }],
    )
    if (options.fifo) others.push(...takeBehind(waiting, others))
    for (const held of [...acked, ...others.map(({ held }) => held)]) visibility.drop(held)
    const settled = await Promise.allSettled([remove(queue, acked), giveBack(queue, others)])
    for (const one of settled) if (one.status === 'rejected') health.ill(one.reason)
    free(batch)
  }

  /** Nothing of their lanes was taken meanwhile, so they come first. */
  const putBack = (batch: readonly Held[]): void => {
    waiting.unshift(...batch)
    free(batch)
  }

  const free = (batch: readonly Held[]): void => {
    for (const { lane } of batch) if (lane !== undefined) lanes.delete(lane)
  }

  const tryDeliver = async (batch: readonly Held[]): Promise<readonly Outcome[] | undefined> => {
    try {
      const outcomes = await deliver(batch.map(({ incoming }) => incoming))
      rejections = 0
      return outcomes
    } catch {
      // The box has reported it.
      pause()
      return undefined
    }
  }

  return {
    get paused() {
      return pausing !== undefined
    },
    add(some) {
      for (const held of some) visibility.add(held)
      waiting.push(...some)
      if (waiting.length >= options.batch) pump()
      else if (waiting.length > 0) lingering ??= setTimeout(pump, options.lingerMs)
    },
    async stop() {
      stopped = true
      clearTimeout(lingering)
      clearTimeout(pausing)
      const rest = waiting.splice(0)
      for (const held of rest) visibility.drop(held)
      // To others, at once.
      const given = giveBack(
        queue,
        rest.map((held) => ({ held, seconds: 0 })),
      )
      await Promise.allSettled([given, ...running])
    },
  }
}

/** The next batch, out of those that wait: nothing of a lane that is on its way. */
function take(waiting: Held[], most: number, lanes: Set<string>, visibility: Visibility): Held[] {
  const batch: Held[] = []
  const later: Held[] = []
  const fresh = new Set<string>()
  const lost = new Set<string>()
  for (const held of waiting.splice(0)) {
    const { lane } = held
    if (!visibility.isOurs(held) || (lane !== undefined && lost.has(lane))) {
      // Others have it, or will; and what is behind it must not overtake it.
      visibility.drop(held)
      if (lane !== undefined) lost.add(lane)
    } else if (batch.length === most || (lane !== undefined && lanes.has(lane))) later.push(held)
    else {
      batch.push(held)
      if (lane !== undefined) fresh.add(lane)
    }
  }
  for (const lane of fresh) lanes.add(lane)
  waiting.push(...later)
  return batch
}

/** Those that wait behind others of their group, with the same delay. */
function takeBehind(waiting: Held[], others: readonly { held: Held; seconds: number }[]): typeof others {
  const delays = new Map(others.map(({ held, seconds }) => [held.lane, seconds]))
  const behind: { held: Held; seconds: number }[] = []
  const rest = waiting.splice(0).filter((held) => {
    const seconds = delays.get(held.lane)
    if (seconds !== undefined) behind.push({ held, seconds })
    return seconds === undefined
  })
  waiting.push(...rest)
  return behind
}
