/**
 * JetStream as a source: a durable pull consumer, shared by as many processes as you like.
 *
 *     fetch ahead → deliver what is there → acknowledge after the commit
 *
 * What is held here is kept from being delivered elsewhere by `working`, however long the box takes. What may not be
 * acknowledged yet stays here too, in its place, and is delivered again when its time has come: given back, it would
 * come after what follows it in its key, and count as a delivery, of which a consumer may allow only so many.
 */
import type { Consumer, JsMsg } from '@nats-io/jetstream'
import { backoffMs, sleep } from '../../backoff.js'
import type { Incoming, Outcome } from '../../message.js'
import { firstInOrder, takeInOrder } from '../in-order.js'
import { awayMs, failedAgainAfterMs } from '../redelivery.js'
import { createRunner, type Ends, type Report, type Run } from '../run.js'
import type { Source } from '../source.js'
import { connect, findConsumer, type Connection, type FoundConsumer } from './client.js'
import { readMessage } from './event.js'
import { watchDrops } from './drops.js'
import { createGap } from './gap.js'
import type { ResolvedSource } from './options.js'
import { createSignal } from './signal.js'
import { sayWarnings } from './warnings.js'

/** A request for messages ends after so long, and is made anew. The server sends heartbeats in between. */
const FETCH_MS = 10_000
/** `working` is sent so many times within the time that the consumer waits for an acknowledgement. */
const BEATS = 3
/** While so many wait for their time, or so much, nothing more is fetched. */
const MOST_WAITING = 10_000
const MOST_BYTES = 64 * 1024 * 1024
/** For the server to look at the requests that it has, before anything is given back. */
const FORGET_MS = 2_000

/** A message that is held here: `raw` is its latest delivery by the server. */
interface Held {
  raw: JsMsg
  readonly incoming: Incoming
  /** Not to be delivered before, by `performance.now()`; undefined if it was not yet. */
  dueAt: number | undefined
  /** How often it failed here. */
  failures: number
}

export function createSource(options: ResolvedSource): Source {
  return createRunner(`nats:${options.stream}/${options.consumer}`, (box) => begin(options, box))
}

async function begin(options: ResolvedSource, { deliver, report, warn }: Ends): Promise<Run> {
  const sayAll = sayOnce(report)
  /** When messages may have been left behind, here or by the process before, by `performance.now()`. */
  let cutAt: number | undefined = performance.now()
  let isFetching = false
  const tell: Report = (problem) => {
    if (problem !== undefined && isFetching) {
      cutAt = performance.now()
      // Else the client would go on with it, past what was lost.
      closeFetch()
    }
    sayAll(problem)
  }
  let closeFetch = (): void => undefined
  const open = async (): Promise<Connection> => {
    const opened = await connect(options, tell)
    watchDrops(opened, options, report)
    return opened
  }
  let connection = await open()
  let found: FoundConsumer | undefined
  try {
    found = await findConsumer(connection, options)
  } catch (error) {
    await connection.close()
    throw error
  }
  let { place } = found
  void sayWarnings(connection, options, { found, warn })

  /** To be delivered, in the order of the stream; and all that is neither acknowledged nor given back. */
  let waiting: Held[] = []
  let behindGap: Held[] = []
  const held = new Set<Held>()
  const bySequence = new Map<number, Held>()
  let heldBytes = 0
  let pausedUntil = 0
  let stopping = false
  let stop = (): void => undefined
  const stopped = new Promise<void>((resolve) => (stop = resolve))
  const arrival = createSignal()
  const room = createSignal()

  /** The server delivers again what it has heard nothing of, when the connection was lost: it keeps its place here. */
  const add = (raw: JsMsg): void => {
    const known = bySequence.get(raw.seq)
    const isKnown = known?.raw.timestampNanos === raw.timestampNanos
    if (isKnown) known.raw = raw
    else {
      const one = { raw, incoming: readMessage(raw, options), dueAt: undefined, failures: 0 }
      ;(gap.isOpen ? behindGap : waiting).push(one)
      held.add(one)
      bySequence.set(raw.seq, one)
      heldBytes += raw.data.length
    }
    gap.came(raw, isKnown)
  }

  const keyOf = ({ incoming }: Held): string | undefined => incoming.key
  const take = (most: number): ReturnType<typeof takeInOrder<Held>> => {
    const now = performance.now()
    return takeInOrder(waiting, now < pausedUntil ? 0 : most, { keyOf, isDue: ({ dueAt = 0 }) => dueAt <= now })
  }
  /** How long until something is due. */
  const idleMs = (): number => {
    const due = firstInOrder(waiting, { keyOf }).reduce((least, { dueAt = 0 }) => Math.min(least, dueAt), Infinity)
    return Math.max(1, Math.min(FETCH_MS, Math.max(due, pausedUntil) - performance.now()))
  }
  const hasEnough = (): boolean =>
    isFull() || (!gap.isOpen && (take(1).taken.length > 0 || performance.now() < pausedUntil))
  const isFull = (): boolean => {
    const count = waiting.length + behindGap.length
    const isOurs = count >= MOST_WAITING || heldBytes >= MOST_BYTES
    if (!isOurs && count < (found?.mostPending ?? Infinity)) return false
    if (waiting.some(({ failures }) => failures > 0)) {
      const limit = isOurs ? 'as many as are held here' : 'as many as max_ack_pending of the consumer allows'
      const advice = `${isOurs ? 'use' : 'raise it, or use'} a stored consumer, or retryBy: 'box'`
      warn(`nothing more is fetched while messages wait for their retry, ${limit}; ${advice}`)
    }
    return true
  }

  /** One request: messages come in as there are some, until it is satisfied or has expired. */
  const fetchOnce = async (consumer: Consumer): Promise<void> => {
    isFetching = true
    try {
      const messages = await consumer.fetch({ max_messages: options.batch, expires: FETCH_MS })
      closeFetch = () => void messages.close()
      // The stop, or the loss of the connection, may have come in between.
      if (stopping || cutAt !== undefined) closeFetch()
      for await (const message of messages) {
        add(message)
        arrival.give()
      }
    } finally {
      isFetching = false
    }
  }

  const pull = async (): Promise<void> => {
    for (let failures = 0; !stopping;) {
      try {
        if (connection.isClosed) {
          connection = await open()
          found = undefined
        }
        found ??= await findConsumer(connection, options, place)
        place = found.place
        if (connection.isUp) tell()
        if (cutAt !== undefined) await gap.look(found, cutAt)
        cutAt = undefined
        await fetchOnce(found.consumer)
        failures = 0
        while (!stopping && hasEnough()) await room.taken(FETCH_MS)
      } catch (error) {
        if (stopping) return
        // The consumer may be gone, so it is looked for again.
        found = undefined
        tell(error)
        await sleep(backoffMs(failures++, 250, 10_000), stopped)
      }
    }
  }

  const settle = (one: Held, how: (message: JsMsg) => void): void => {
    held.delete(one)
    heldBytes -= one.raw.data.length
    if (bySequence.get(one.raw.seq) === one) bySequence.delete(one.raw.seq)
    try {
      how(one.raw)
    } catch {
      // The connection is closed. The server will deliver it again, and the box knows it.
    }
  }

  const putBack = (some: readonly Held[]): void => {
    const places = new Map([...held].map((one, place) => [one, place]))
    waiting = [...some, ...waiting].sort((a, b) => places.get(a)! - places.get(b)!)
  }

  let isDelivering = false
  const gap = createGap({
    count: () => held.size,
    isAtRest: () => !isDelivering,
    onClose() {
      const inOrder = [...held].sort((a, b) => a.raw.seq - b.raw.seq)
      held.clear()
      for (const one of inOrder) held.add(one)
      putBack(behindGap)
      behindGap = []
      arrival.give()
    },
  })

  let rejections = 0
  const deliverBatch = async (batch: readonly Held[]): Promise<void> => {
    let outcomes: readonly Outcome[]
    try {
      outcomes = await deliver(batch.map(({ incoming }) => incoming))
    } catch {
      // The box cannot take anything now, and has told its hooks why. All of it stays as it was, in its place.
      pausedUntil = performance.now() + awayMs(rejections++)
      for (const one of batch) one.dueAt = pausedUntil
      return putBack(batch)
    }
    rejections = 0
    const again: Held[] = []
    batch.forEach((one, at) => {
      const outcome = outcomes[at]!
      if (outcome.ack) return settle(one, (message) => message.ack())
      one.dueAt = performance.now() + failedAgainAfterMs(outcome, one.failures)
      if (outcome.status === 'failed') one.failures++
      again.push(one)
    })
    if (again.length > 0) putBack(again)
  }

  const work = async (): Promise<void> => {
    while (!stopping) {
      const { taken, rest } = take(options.batch)
      waiting = rest
      room.give()
      isDelivering = taken.length > 0
      if (isDelivering) await deliverBatch(taken)
      else await arrival.taken(idleMs())
    }
  }

  /** In the order of the stream, and all of a key after the time of its first: else what follows it would come before it. */
  const giveBack = (): void => {
    const now = performance.now()
    const firsts = new Map<string, Held>()
    for (const one of waiting) {
      const key = keyOf(one)
      if (key !== undefined && !firsts.has(key)) firsts.set(key, one)
      const { dueAt = 0 } = key === undefined ? one : firsts.get(key)!
      settle(one, (message) => message.nak(dueAt > now ? Math.ceil(dueAt - now) : undefined))
    }
  }
  /**
   * A server that has not seen yet that our last request is closed takes what is given back for that, and then gives it to
   * nobody for `ack_wait`. It sees it when it is asked how many requests wait.
   */
  const forgetFetch = async (): Promise<void> => {
    if (connection.isUp && found)
      await sleep(
        FORGET_MS,
        connection.untilLost(found.consumer.info()).catch(() => undefined),
      )
  }

  const beat = (): void => {
    for (const { raw } of held) {
      try {
        raw.working()
      } catch {
        // The connection is closed.
      }
    }
    timer = setTimeout(beat, Math.max(10, (found?.ackWaitMs ?? 1_000) / BEATS))
  }
  let timer = setTimeout(beat, Math.max(10, found.ackWaitMs / BEATS))

  const pulling = pull()
  const working = work()
  return {
    async end() {
      stopping = true
      stop()
      closeFetch()
      arrival.give()
      room.give()
      await Promise.all([working, pulling])
      clearTimeout(timer)
      gap.close()
      if (waiting.length > 0) await forgetFetch()
      giveBack()
      await connection.close()
    },
  }
}

/** Reports every problem, but the return only after one. */
function sayOnce(report: Report): Report {
  let troubled = false
  return (problem) => {
    if (problem === undefined && !troubled) return
    troubled = problem !== undefined
    report(problem)
  }
}
