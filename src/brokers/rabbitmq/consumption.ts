/**
 * What one channel has handed out: gathered into batches, delivered, acknowledged.
 *
 * What the box does not take yet (its outcome says so, or the database is away) stays with us, unacknowledged, and is
 * delivered again after a moment. To give it back to the broker would count as a delivery, of which a quorum queue
 * allows 20 by default before it drops a message: an outage of the database must not use them up.
 */
import { backoffMs } from '../../backoff.js'
import type { Outcome } from '../../message.js'
import { redeliverAfterMs } from '../redelivery.js'
import type { Deliver } from '../source.js'
import type { RabbitChannel, RabbitMessage, Session } from './client.js'
import type { Comeback, Placed } from './comeback.js'
import { toMessage } from './event.js'
import type { ResolvedSource } from './options.js'
import { Unacknowledged } from './unacknowledged.js'
import { Waiting, type Delivery } from './waiting.js'
import type { Held } from './windows.js'

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
  const { comeback } = lanes
  const waiting = new Waiting(options, lanes.inFlight, comeback)
  const unacknowledged = new Unacknowledged<Delivery>(session)
  const inFlight = new Set<Promise<void>>()
  /** Deliveries in a row that the box did not answer. */
  let away = 0
  let pausedUntil = 0
  let timer: NodeJS.Timeout | undefined
  let finished = false

  const goesOn = (): boolean => !finished && session.problem === undefined

  /** Looks again when something will be due. */
  const schedule = (now: number): void => {
    clearTimeout(timer)
    timer = undefined
    if (!goesOn() || waiting.isEmpty || inFlight.size >= options.concurrency) return
    const due = waiting.nextDue()
    // What waits behind something in flight is looked at when that ends.
    if (due < Infinity) timer = setTimeout(pump, Math.max(1, due - now, pausedUntil - now))
  }

  const pump = (): void => {
    const now = performance.now()
    while (goesOn() && now >= pausedUntil && inFlight.size < options.concurrency) {
      const batch = waiting.take(now)
      if (batch.length === 0) break
      const run = deliverBatch(batch).finally(() => {
        inFlight.delete(run)
        waiting.letGo(batch)
        lanes.look()
      })
      inFlight.add(run)
    }
    schedule(now)
    if (goesOn()) makeRoom({ ...waiting.held(now), all: () => unacknowledged.size })
  }

  const deliverBatch = async (batch: readonly Delivery[]): Promise<void> => {
    let outcomes: readonly Outcome[]
    try {
      outcomes = await deliver(batch.map(({ incoming }) => incoming))
    } catch {
      // The box has reported it. All of it stays as it was, in its place.
      pausedUntil = performance.now() + backoffMs(away++, AWAY_MS.first, AWAY_MS.most)
      return waiting.putBack(batch)
    }
    away = 0
    if (session.problem !== undefined) return
    const { taken, rejected, returned } = judge(batch, outcomes, options)
    unacknowledged.settle(taken, rejected)
    waiting.putBack(returned)
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
      if (isAwaiting) waiting.putBack([delivery])
      else waiting.add(delivery)
      if (waiting.isFull) pump()
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

/** What becomes of a batch. */
interface Judged {
  readonly taken: Delivery[]
  /** For the dead letters of the queue. */
  readonly rejected: Delivery[]
  /** Delivered again, each at a time of its own. */
  readonly returned: Delivery[]
}

function judge(batch: readonly Delivery[], outcomes: readonly Outcome[], { deadLetter }: ResolvedSource): Judged {
  const judged: Judged = { taken: [], rejected: [], returned: [] }
  const heldBack = new Set<string>()
  batch.forEach((delivery, at) => {
    const outcome = outcomes[at]
    if (outcome?.ack !== true) {
      delivery.dueAt = performance.now() + againMs(delivery, outcome, heldBack)
      judged.returned.push(delivery)
    } else if (deadLetter && outcome.status === 'quarantined') judged.rejected.push(delivery)
    else judged.taken.push(delivery)
  })
  return judged
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
