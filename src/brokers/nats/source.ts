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
import type { Outcome } from '../../message.js'
import { awayMs, failedAgainAfterMs } from '../redelivery.js'
import { createRunner, type Receiver, type Report, type Run } from '../run.js'
import type { Source } from '../source.js'
import { connect, findConsumer, type Connection, type FoundConsumer } from './client.js'
import { readMessage } from './event.js'
import { watchDrops } from './drops.js'
import { createGap } from './gap.js'
import { Holding, type Held } from './holding.js'
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

export function createSource(options: ResolvedSource): Source {
  return createRunner(`nats:${options.stream}/${options.consumer}`, (box) => begin(options, box))
}

async function begin(options: ResolvedSource, { deliver, report, warn }: Receiver): Promise<Run> {
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

  const holding = new Holding()
  let pausedUntil = 0
  let stopping = false
  let stop = (): void => undefined
  const stopped = new Promise<void>((resolve) => (stop = resolve))
  const arrival = createSignal()
  const room = createSignal()

  const add = (raw: JsMsg): void => {
    const isKnown = holding.add(raw, (one) => readMessage(one, options), gap.isOpen)
    gap.came(raw, isKnown)
  }

  const isPaused = (): boolean => performance.now() < pausedUntil
  /** How long until something is due. */
  const idleMs = (): number =>
    Math.max(1, Math.min(FETCH_MS, Math.max(holding.firstDueAt(), pausedUntil) - performance.now()))
  const hasEnough = (): boolean => isFull() || (!gap.isOpen && (isPaused() || holding.hasDue()))
  const isFull = (): boolean => {
    const isOurs = holding.waitingCount >= MOST_WAITING || holding.bytes >= MOST_BYTES
    if (!isOurs && holding.waitingCount < (found?.mostPending ?? Infinity)) return false
    if (holding.hasFailed) {
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

  let isDelivering = false
  const gap = createGap({
    count: () => holding.count,
    isAtRest: () => !isDelivering,
    onClose() {
      holding.joinAside()
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
      return holding.putBack(batch)
    }
    rejections = 0
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

  const work = async (): Promise<void> => {
    while (!stopping) {
      const taken = isPaused() ? [] : holding.take(options.batch)
      room.give()
      isDelivering = taken.length > 0
      if (isDelivering) await deliverBatch(taken)
      else await arrival.taken(idleMs())
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
    holding.keep()
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
      if (holding.waitingCount > 0) await forgetFetch()
      holding.giveBack()
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
