/**
 * Requests for messages, one after the other, over a connection that is opened again when the client gives it up.
 *
 *     open the connection → find the consumer → look whether messages were left behind → request → messages come
 */
import type { Consumer, JsMsg } from '@nats-io/jetstream'
import { sleep } from '../../backoff.js'
import type { OwnTurn } from '../../lifecycle.js'
import { createReports, type Receiver, type Report } from '../run.js'
import { connect, findConsumer, type Connection, type FoundConsumer } from './client.js'
import { watchDrops } from './drops.js'
import type { Gap } from './gap.js'
import type { ResolvedSource } from './options.js'
import { sayWarnings } from './warnings.js'

export interface Fetching {
  /** The consumer as it was found last; undefined while it has to be found again. */
  readonly found: FoundConsumer | undefined
  /** One request: messages come as there are some, until it is satisfied or has expired. */
  request(): Promise<void>
  /** After a request that failed: the consumer may be gone, so it is looked for again. */
  failed(error: unknown): void
  /** Ends the request that is under way, once what the server has sent for it is here: to be given back, it has to be. */
  cut(): Promise<void>
  /** Makes sure that the server gives nothing more to a request that was cut. */
  forget(): Promise<void>
  close(): Promise<void>
}

export interface Taker extends Omit<Receiver, 'deliver'> {
  add(message: JsMsg): void
  readonly gap: Gap
  readonly turn: OwnTurn
}

/** A request for messages ends after so long, and is made anew. The server sends heartbeats in between. */
export const FETCH_MS = 10_000
/** How long an answer of the server may take before a stop goes on without it. */
const ANSWER_MS = 2_000

export async function openFetching(
  options: ResolvedSource,
  { add, gap, turn, report, warn }: Taker,
): Promise<Fetching> {
  const reports = createReports(report)
  /** When messages may have been left behind, here or by the process before, by `performance.now()`. */
  let cutAt: number | undefined = performance.now()
  let isFetching = false
  let closeFetch = (): void => undefined
  const tell: Report = (problem) => {
    if (problem !== undefined && isFetching) {
      cutAt = performance.now()
      // Else the client would go on with it, past what was lost.
      closeFetch()
    }
    reports.tell(problem)
  }

  const open = async (): Promise<Connection> => {
    const opened = await connect(options, tell)
    watchDrops(opened, options, reports)
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

  const findAgain = async (): Promise<FoundConsumer> => {
    if (connection.isClosed) {
      connection = await open()
      found = undefined
    }
    found ??= await findConsumer(connection, options, place)
    place = found.place
    return found
  }
  const fetchFrom = async (consumer: Consumer): Promise<void> => {
    isFetching = true
    try {
      const messages = await consumer.fetch({ max_messages: options.batch, expires: FETCH_MS })
      closeFetch = () => void messages.close()
      // The stop, or the loss of the connection, may have come in between.
      if (!turn.goesOn() || cutAt !== undefined) closeFetch()
      for await (const message of messages) add(message)
    } finally {
      isFetching = false
    }
  }

  /** The server has answered: all that it had sent before is here. */
  const hearServer = async (): Promise<void> => {
    if (!connection.isUp || !found) return
    const heard = connection.untilLost(found.consumer.info()).catch(() => undefined)
    await sleep(ANSWER_MS, heard)
  }

  return {
    get found() {
      return found
    },
    async request() {
      const from = await findAgain()
      if (connection.isUp) tell()
      if (cutAt !== undefined) await gap.look(from, cutAt)
      cutAt = undefined
      await fetchFrom(from.consumer)
    },
    failed(error) {
      found = undefined
      // What the server has sent for the request comes to nobody any more, though the connection may stand.
      cutAt = performance.now()
      tell(error)
    },
    async cut() {
      if (isFetching) await hearServer()
      closeFetch()
    },
    /**
     * A server that has not seen yet that our last request is closed takes what is given back for that, and then gives it to
     * nobody for `ack_wait`. It sees it when it is asked how many requests wait.
     */
    forget: hearServer,
    close: () => connection.close(),
  }
}
