/**
 * What one channel has handed out: gathered into batches, delivered, acknowledged.
 *
 * What the box does not take yet (its outcome says so, or the database is away) stays with us, unacknowledged, and is
 * delivered again after a moment. To give it back to the broker would count as a delivery, of which a quorum queue
 * allows 20 by default before it drops a message: an outage of the database must not use them up.
 */
import { backoffMs } from '../../backoff.js'
import type { Outcome } from '../../message.js'
import { firstInOrder, takeInOrder } from '../in-order.js'
import { redeliverAfterMs } from '../redelivery.js'
import type { Deliver } from '../source.js'
import type { RabbitChannel, RabbitMessage, Session } from './client.js'
import type { Comeback, Placed } from './comeback.js'
import { toMessage } from './event.js'
import type { ResolvedSource } from './options.js'
import { Unacknowledged } from './unacknowledged.js'
import type { Held } from './windows.js'

interface Delivery extends Placed {
  readonly raw: RabbitMessage
  /** How often the box did not take it. */
  returns: number
  /** Not to be delivered before, by `performance.now()`. */
  dueAt: number
}

export interface Consumption {
  add(raw: RabbitMessage): void
  /** What is not acknowledged: of a channel that is lost, what comes again. */
  open(): Iterable<Placed>
  /** Delivers nothing more. Resolves when what is in flight is acknowledged. */
  finish(): Promise<void>
}

/**
 * Between two deliveries of what was not taken, unless its handler asked for a time. The broker takes back what is not
 * acknowledged in 30 minutes.
 */
const AGAIN_MS = { first: 250, most: 60_000 }
/** The database is away. */
const AWAY_MS = { first: 100, most: 5_000 }

/**
 * Of a source, from channel to channel. What a lost channel had in flight comes again on the next one, and is not delivered
 * while the box is still busy with it: it would be told so, and wait for longer each time.
 */
export interface Lanes {
  readonly inFlight: Set<string>
  readonly comeback: Comeback
  /** Looks for what can be delivered now, on the channel of the moment. */
  look(): void
}

export interface Box {
  readonly deliver: Deliver
  readonly lanes: Lanes
  /** Told what waits here, so that the broker hands out others. */
  makeRoom(held: Held): void
}

export function consume(
  session: Session<RabbitChannel>,
  options: ResolvedSource,
  { deliver, lanes, makeRoom }: Box,
): Consumption {
  /** In the order of the queue. */
  let waiting: Delivery[] = []
  const unacknowledged = new Unacknowledged<Delivery>(session)
  const { inFlight: keys, comeback } = lanes
  const inFlight = new Set<Promise<void>>()
  let away = 0
  let pausedUntil = 0
  let timer: NodeJS.Timeout | undefined
  let finished = false

  const goesOn = (): boolean => !finished && session.problem === undefined

  const keyOf = ({ incoming }: Delivery): string | undefined => incoming.key
  const isInFlight = (key: string): boolean => keys.has(key)

  /** Looks again when something will be due. */
  const schedule = (now: number): void => {
    clearTimeout(timer)
    timer = undefined
    if (!goesOn() || waiting.length === 0 || inFlight.size >= options.concurrency) return
    const due = firstInOrder(waiting, { keyOf, isInFlight }).reduce(
      (least, one) => Math.min(least, Math.max(one.dueAt, comeback.waitsUntil(one))),
      Infinity,
    )
    // What waits behind something in flight is looked at when that ends.
    if (due < Infinity) timer = setTimeout(pump, Math.max(1, due - now, pausedUntil - now))
  }

  const pump = (): void => {
    const now = performance.now()
    while (goesOn() && now >= pausedUntil && inFlight.size < options.concurrency) {
      const batch = take(now)
      if (batch.length === 0) break
      const run = deliverBatch(batch).finally(() => {
        inFlight.delete(run)
        for (const { incoming } of batch) if (incoming.key !== undefined) keys.delete(incoming.key)
        lanes.look()
      })
      inFlight.add(run)
    }
    schedule(now)
    if (goesOn()) makeRoom({ ...held(now), all: () => unacknowledged.size })
  }

  const held = (now: number): Omit<Held, 'all'> => {
    const waits = (one: Delivery): boolean => (one.returns > 0 && one.dueAt > now) || comeback.waitsUntil(one) > 0
    return heldOf(waiting, options.prefetch, waits)
  }

  const take = (now: number): Delivery[] => {
    const isFull = waiting.length >= options.batch
    const { taken, rest } = takeInOrder(waiting, options.batch, {
      keyOf,
      isDue: (one) => (one.dueAt <= now || (isFull && one.returns === 0)) && comeback.waitsUntil(one) === 0,
      isInFlight,
    })
    if (taken.length === 0) return taken
    waiting = rest
    for (const { incoming } of taken) if (incoming.key !== undefined) keys.add(incoming.key)
    return taken
  }

  const deliverBatch = async (batch: readonly Delivery[]): Promise<void> => {
    let outcomes: readonly Outcome[]
    try {
      outcomes = await deliver(batch.map(({ incoming }) => incoming))
    } catch {
      // The box has reported it. All of it stays as it was, in its place.
      pausedUntil = performance.now() + backoffMs(away++, AWAY_MS.first, AWAY_MS.most)
      putBack(batch)
      return
    }
    away = 0
    if (session.problem !== undefined) return
    const taken: Delivery[] = []
    const rejected: Delivery[] = []
    const returned: Delivery[] = []
    const heldBack = new Set<string>()
    batch.forEach((delivery, at) => {
      const outcome = outcomes[at]
      if (outcome?.ack !== true) {
        delivery.dueAt = performance.now() + againMs(delivery, outcome, heldBack)
        returned.push(delivery)
      } else (options.deadLetter && outcome.status === 'quarantined' ? rejected : taken).push(delivery)
    })
    unacknowledged.settle(taken, rejected)
    putBack(returned)
  }

  const putBack = (batch: readonly Delivery[]): void => {
    if (batch.length === 0) return
    waiting = [...waiting, ...batch].sort((a, b) => a.place - b.place)
  }

  lanes.look = pump

  return {
    add(raw) {
      if (!goesOn()) return
      const incoming = toMessage(raw, options)
      const isAwaiting = comeback.isOpen
      const place = comeback.place(incoming, raw.fields.redelivered)
      const delivery = { raw, incoming, place, returns: 0, dueAt: performance.now() + options.lingerMs }
      unacknowledged.add(delivery)
      if (isAwaiting) putBack([delivery])
      else waiting.push(delivery)
      if (waiting.length >= options.batch) pump()
      else if (timer === undefined || isAwaiting) schedule(performance.now())
    },
    open: () => unacknowledged.all(),
    async finish() {
      finished = true
      clearTimeout(timer)
      while (inFlight.size > 0) await Promise.all(inFlight)
    },
  }
}

/** What was held back by an earlier one of its key goes with that one, and is not at fault. */
function againMs(delivery: Delivery, outcome: Outcome | undefined, heldBack: Set<string>): number {
  const { key } = delivery.incoming
  const isBehind = key !== undefined && heldBack.has(key)
  if (key !== undefined) heldBack.add(key)
  if (outcome?.retryAt) delivery.returns++
  else if (!isBehind) return backoffMs(delivery.returns++, AGAIN_MS.first, AGAIN_MS.most)
  return outcome?.retryAt ? redeliverAfterMs(outcome) : 0
}

/** What cannot go on yet, and what is behind it in its key. Fewer than half a window hold up nothing. */
function heldOf(waiting: readonly Delivery[], prefetch: number, waits: (one: Delivery) => boolean): Omit<Held, 'all'> {
  let messages = 0
  let bytes = 0
  const stuck = new Set<string>()
  if (waiting.length * 2 > prefetch) {
    for (const one of waiting) {
      const { key } = one.incoming
      if (!(key !== undefined && stuck.has(key)) && !waits(one)) continue
      if (key !== undefined) stuck.add(key)
      messages++
      bytes += one.raw.content.length
    }
  }
  return { messages, bytes }
}
