/**
 * JetStream as a sink: an event is published when the stream has confirmed that it is stored.
 *
 * Every event carries a `Nats-Msg-Id`, so a second copy within the stream's duplicate window is not stored again.
 */
import { OnceboxError } from '../../errors.js'
import { createTurns } from '../../in-turn.js'
import type { Message } from '../../message.js'
import { createClosable, inTimeOf, later, NO_PLACE_MS, sendInLanes, type Answer } from '../send.js'
import type { PublishLimits, Sink } from '../sink.js'
import { assertStream, codeOf, connect, type Connection } from './client.js'
import { writeMessage } from './event.js'
import type { ResolvedSink } from './options.js'

/** The stream takes no message as large as this one. */
const TOO_LARGE_FOR_STREAM = 10_054

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
      await via.untilLost(via.js.publish(write.subject, write.body, write.publish))
      return undefined
    } catch (error) {
      return judge(error, write.subject, via)
    }
  }

  /** Throws what is not the message's fault. */
  const judge = (error: unknown, subject: string, via: Connection): Answer => {
    const { name, message } = error as Error
    if (name === 'InvalidArgumentError' && /max_payload/.test(message)) {
      const limit = `the server takes ${via.nc.info?.max_payload} bytes; raise max_payload, or send a reference`
      return { error: new OnceboxError('MESSAGE_TOO_LARGE', limit, { cause: error }), retry: false }
    }
    if (name === 'InvalidSubjectError') return { error, retry: false }
    if (name === 'JetStreamNotEnabled') {
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
