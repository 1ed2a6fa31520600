/**
 * JetStream as a source: a durable pull consumer, shared by as many processes as you like.
 *
 *     fetch ahead (`fetching.ts`) → hold (`holding.ts`) → deliver, and acknowledge after the commit (`deliveries.ts`)
 *
 * What is held here is kept from being delivered elsewhere by `working`, however long the box takes. What may not be
 * acknowledged yet stays here too, in its place, and is delivered again when its time has come: given back, it would
 * come after what follows it in its key, and count as a delivery, of which a consumer may allow only so many.
 */
import type { JsMsg } from '@nats-io/jetstream'
import { backoffMs, sleep } from '../../backoff.js'
import { beginTurn } from '../../lifecycle.js'
import { createRunner, type Receiver, type Run } from '../run.js'
import type { Source } from '../source.js'
import { createDeliveries } from './deliveries.js'
import { readMessage } from './event.js'
import { FETCH_MS, openFetching } from './fetching.js'
import { createGap } from './gap.js'
import { Holding } from './holding.js'
import type { ResolvedSource } from './options.js'
import { createSignal } from './signal.js'

/** `working` is sent so many times within the time that the consumer waits for an acknowledgement. */
const BEATS = 3
/** While so many wait for their time, or so much, nothing more is fetched. */
const MOST_WAITING = 10_000
const MOST_BYTES = 64 * 1024 * 1024

export function createSource(options: ResolvedSource): Source {
  return createRunner(`nats:${options.stream}/${options.consumer}`, (box) => begin(options, box))
}

async function begin(options: ResolvedSource, { deliver, report, warn }: Receiver): Promise<Run> {
  const turn = beginTurn()
  const arrival = createSignal()
  const room = createSignal()
  const holding = new Holding()
  const deliveries = createDeliveries(holding, deliver)
  const gap = createGap({
    count: () => holding.count,
    isAtRest: () => !deliveries.isDelivering,
    onClose() {
      holding.joinAside()
      arrival.give()
    },
  })
  const add = (raw: JsMsg): void => {
    const isKnown = holding.add(raw, (one) => readMessage(one, options), gap.isOpen)
    gap.came(raw, isKnown)
    arrival.give()
  }
  const fetching = await openFetching(options, { add, gap, turn, report, warn })

  const isFull = (): boolean => {
    const isOurs = holding.waitingCount >= MOST_WAITING || holding.bytes >= MOST_BYTES
    if (!isOurs && holding.waitingCount < (fetching.found?.mostPending ?? Infinity)) return false
    if (holding.hasFailed) {
      const limit = isOurs ? 'as many as are held here' : 'as many as max_ack_pending of the consumer allows'
      const advice = `${isOurs ? 'use' : 'raise it, or use'} a stored consumer, or retryBy: 'box'`
      warn(`nothing more is fetched while messages wait for their retry, ${limit}; ${advice}`)
    }
    return true
  }
  const hasEnough = (): boolean => isFull() || (!gap.isOpen && (deliveries.isPaused() || holding.hasDue()))
  const fetchAhead = async (): Promise<void> => {
    for (let failures = 0; turn.goesOn();) {
      try {
        await fetching.request()
        failures = 0
        while (turn.goesOn() && hasEnough()) await room.taken(FETCH_MS)
      } catch (error) {
        if (!turn.goesOn()) return
        fetching.failed(error)
        await sleep(backoffMs(failures++, 250, 10_000), turn.over)
      }
    }
  }

  /** How long until something is due. */
  const idleMs = (): number => {
    const dueAt = Math.max(holding.firstDueAt(), deliveries.pausedUntil)
    return Math.max(1, Math.min(FETCH_MS, dueAt - performance.now()))
  }
  const deliverDue = async (): Promise<void> => {
    while (turn.goesOn()) {
      const batch = deliveries.take(options.batch)
      room.give()
      if (batch.length > 0) await deliveries.deliver(batch)
      else await arrival.taken(idleMs())
    }
  }

  const beatMs = (): number => Math.max(10, (fetching.found?.ackWaitMs ?? 1_000) / BEATS)
  const beat = (): void => {
    holding.keep()
    timer = setTimeout(beat, beatMs())
  }
  let timer = setTimeout(beat, beatMs())

  const working = Promise.all([deliverDue(), fetchAhead()])
  return {
    async end() {
      turn.end()
      arrival.give()
      room.give()
      await fetching.cut()
      await working
      clearTimeout(timer)
      gap.close()
      if (holding.waitingCount > 0) await fetching.forget()
      holding.giveBack()
      await fetching.close()
    },
  }
}
