/**
 * JetStream as a sink: an event is published when the stream has confirmed that it is stored.
 *
 * Every event carries a `Nats-Msg-Id`, so a second copy within the stream's duplicate window is not stored again.
 */
import { within } from '../../backoff.js'
import { OnceboxError } from '../../errors.js'
import { createTurns } from '../../in-turn.js'
import type { Message } from '../../message.js'
import { createClosable, inTimeOf, later, NO_PLACE_MS, sendInLanes, type Answer } from '../send.js'
import type { PublishLimits, Sink } from '../sink.js'
import { assertStream, codeOf, connect, STREAM_NOT_FOUND, type Connection } from './client.js'
import { writeMessage } from './event.js'
import type { ResolvedSink } from './options.js'

/** The stream takes no message as large as this one. */
const TOO_LARGE_FOR_STREAM = 10_054

/** How long the server may take to say which stream takes a subject. */
const FIND_MS = 2_000
/** What the client makes of an answer that is no JSON, is no object, or names no stream. */
const NO_CONFIRMATION = ['SyntaxError', 'TypeError', 'JetStreamError']

export function createSink(options: ResolvedSink): Sink & { readonly name?: string } {
  const inTurn = createTurns()
  let connection: Connection | undefined
  let asserted = false

  const open = (): Promise<Connection> =>
    inTurn(async () => {
      if (connection?.isClosed) connection = undefined
      connection ??= await connect(options)
      if (!connection.isUp) throw new Error('the connection to NATS is lost; the client reconnects')
      if (!asserted) await connection.untilLost(assertStream(connection, options))
      asserted = true
      return connection
    })

  const send = async (via: Connection, message: Message): Promise<Answer> => {
    let write: { subject: string; body: Uint8Array; publish: Parameters<Connection['js']['publish']>[2] }
    try {
      const subject = options.subjectOf(message)
      const { headers, body, msgId } = writeMessage(message, subject, options)
      const given = via.createHeaders()
      for (const [name, value] of Object.entries(headers)) given.set(name, value)
      write = { subject, body, publish: { headers: given, msgID: msgId, timeout: options.timeoutMs } }
    } catch (error) {
      return { error, retry: false }
    }
    try {
      const { stream, seq } = await via.untilLost(via.js.publish(write.subject, write.body, write.publish))
      const isStored = typeof stream === 'string' && stream !== '' && seq > 0
      return isStored ? undefined : answeredByOthers(write.subject)
    } catch (error) {
      return judge(error, write.subject, via)
    }
  }

  /** Throws what is not the message's fault. */
  const judge = async (error: unknown, subject: string, via: Connection): Promise<Answer> => {
    const { name, message } = error as Error
    if (name === 'InvalidArgumentError' && /max_payload/.test(message)) {
      const limit = `the server takes ${via.nc.info?.max_payload} bytes; raise max_payload, or send a reference`
      return { error: new OnceboxError('MESSAGE_TOO_LARGE', limit, { cause: error }), retry: false }
    }
    if (name === 'InvalidSubjectError') return { error, retry: false }
    if (NO_CONFIRMATION.includes(name)) return answeredByOthers(subject, error)
    if (name === 'JetStreamNotEnabled' || (name === 'TimeoutError' && (await isWithoutStream(subject, via)))) {
      // Nobody answers for the subject: there is no stream, or in a cluster it has no leader at the moment.
      asserted = false
      const missing = new Error(`no stream takes ${subject}; create one, or pass assert`, { cause: error })
      return later(missing, NO_PLACE_MS)
    }
    if (name === 'JetStreamApiError') {
      // Else the stream is full, sealed, or without a leader.
      return codeOf(error) === TOO_LARGE_FOR_STREAM ? { error, retry: false } : later(error, NO_PLACE_MS)
    }
    throw error
  }

  const publish = async (batch: readonly Message[], limits?: PublishLimits): Promise<Answer[]> => {
    const via = await inTimeOf(limits, open())
    return sendInLanes(batch, options.concurrency, (message) => send(via, message), limits)
  }

  return createClosable(options.name, publish, async (finished) => {
    await finished
    await inTurn(async () => {
      const closing = connection
      connection = undefined
      await closing?.close()
    })
  })
}

/** Whoever listens to a subject gets its events as requests, and may answer before the stream does, or in its place. */
function answeredByOthers(subject: string, cause?: unknown): Answer {
  const what = `no stream answered for ${subject}, but somebody who listens to it`
  const advice = 'publish on a subject to which no service replies'
  return later(new Error(`${what}; ${advice}`, cause === undefined ? {} : { cause }), NO_PLACE_MS)
}

/** Where somebody listens to a subject, and no stream does, nobody says so. False if the server does not answer this, either. */
async function isWithoutStream(subject: string, via: Connection): Promise<boolean> {
  try {
    const finding = via.untilLost(via.jsm.streams.find(subject))
    await within(FIND_MS, finding, () => new Error(`NATS did not answer in ${FIND_MS} ms`))
    return false
  } catch (error) {
    return codeOf(error) === STREAM_NOT_FOUND
  }
}
