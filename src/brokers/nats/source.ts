/**
 * JetStream as a source: a durable pull consumer, shared by as many processes as you like.
 *
 *     fetch ahead → deliver what is there → acknowledge after the commit
 *
 * What is held here is kept from being delivered elsewhere by `working`, however long the box takes. What may not be
 * acknowledged is given back with a delay.
 */
import type { Consumer, JsMsg } from '@nats-io/jetstream'
import { backoffMs, sleep } from '../../backoff.js'
import type { Outcome } from '../../message.js'
import { redeliverAfterMs } from '../redelivery.js'
import { createRunner, type Report, type Run } from '../run.js'
import type { Deliver, Source } from '../source.js'
import { connect, findConsumer } from './client.js'
import { readMessage } from './event.js'
import type { ResolvedSource } from './options.js'

/** A request for messages ends after so long, and is made anew. The server sends heartbeats in between. */
const FETCH_MS = 10_000
/** `working` is sent so many times within the time that the consumer waits for an acknowledgement. */
const BEATS = 3

export function createSource(options: ResolvedSource): Source {
  return createRunner((deliver, report) => begin(options, deliver, report))
}

async function begin(options: ResolvedSource, deliver: Deliver, report: Report): Promise<Run> {
  const tell = sayOnce(report)
  let connection = await connect(options, tell)
  let found: Awaited<ReturnType<typeof findConsumer>> | undefined
  try {
    found = await findConsumer(connection, options)
  } catch (error) {
    await connection.close()
    throw error
  }

  /** Fetched, and not delivered yet; and all that is neither acknowledged nor given back. */
  const fetched: JsMsg[] = []
  const held = new Set<JsMsg>()
  let stopping = false
  let stop = (): void => undefined
  const stopped = new Promise<void>((resolve) => (stop = resolve))
  let closeFetch = (): void => undefined
  const arrival = createSignal()
  const room = createSignal()

  /** One request: messages come in as there are some, until it is satisfied or has expired. */
  const fetchOnce = async (consumer: Consumer): Promise<void> => {
    const messages = await consumer.fetch({ max_messages: options.batch, expires: FETCH_MS })
    closeFetch = () => void messages.close()
    // The stop may have come in between.
    if (stopping) closeFetch()
    for await (const message of messages) {
      fetched.push(message)
      held.add(message)
      arrival.give()
    }
  }

  const pull = async (): Promise<void> => {
    for (let failures = 0; !stopping;) {
      try {
        if (connection.isClosed) {
          connection = await connect(options, tell)
          found = undefined
        }
        found ??= await findConsumer(connection, options)
        if (connection.isUp) tell()
        await fetchOnce(found.consumer)
        failures = 0
        while (fetched.length > 0 && !stopping) await room.taken()
      } catch (error) {
        if (stopping) return
        // The consumer may be gone, so it is looked for again.
        found = undefined
        tell(error)
        await sleep(backoffMs(failures++, 250, 10_000), stopped)
      }
    }
  }

  const settle = (message: JsMsg, how: (message: JsMsg) => void): void => {
    held.delete(message)
    try {
      how(message)
    } catch {
      // The connection is closed. The server will deliver it again, and the box knows it.
    }
  }

  let rejections = 0
  const deliverBatch = async (batch: readonly JsMsg[]): Promise<void> => {
    let outcomes: readonly Outcome[]
    try {
      outcomes = await deliver(batch.map((message) => readMessage(message, options)))
    } catch {
      // The box cannot take anything now, and has told its hooks why.
      const delayMs = backoffMs(rejections++, 500, 30_000)
      for (const message of batch) settle(message, (one) => one.nak(delayMs))
      await sleep(delayMs, stopped)
      return
    }
    rejections = 0
    batch.forEach((message, at) => {
      const outcome = outcomes[at]!
      settle(message, (one) => (outcome.ack ? one.ack() : one.nak(redeliverAfterMs(outcome))))
    })
  }

  const work = async (): Promise<void> => {
    while (!stopping) {
      const batch = fetched.splice(0, options.batch)
      room.give()
      if (batch.length > 0) await deliverBatch(batch)
      else await arrival.taken()
    }
  }

  const beat = (): void => {
    for (const message of held) {
      try {
        message.working()
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
      for (const message of fetched) settle(message, (one) => one.nak())
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

/** One waits until another gives; what was given before is not lost. */
function createSignal(): { give(): void; taken(): Promise<void> } {
  let given = false
  let wake: (() => void) | undefined
  return {
    give() {
      given = true
      wake?.()
    },
    async taken() {
      if (!given) await new Promise<void>((resolve) => (wake = resolve))
      given = false
      wake = undefined
    },
  }
}
