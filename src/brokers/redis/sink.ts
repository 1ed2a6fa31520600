/**
 * Redis Streams as a sink: an event is published when the server has answered with the id of its entry.
 *
 * Whether it survives a crash of the server is up to the server: see docs/redis.md.
 */
import { createTurns } from '../../in-turn.js'
import type { Message } from '../../message.js'
import { createClosable, down, inTimeOf, later, NO_PLACE_MS, sendInLanes, type Answer } from '../send.js'
import type { PublishLimits, Sink } from '../sink.js'
import { codeOf, connect, type Argument, type Connection } from './client.js'
import { writeFields } from './event.js'
import type { ResolvedSink } from './options.js'
import { createTrimming } from './trimming.js'

/**
 * The server takes no writes at the moment: it loads its data, has no memory left, or has become a replica. Another one
 * may have taken its place behind the same address, and a connection stays where it began: it is used no longer.
 */
const AWAY = [
  ...['LOADING', 'READONLY', 'MASTERDOWN', 'CLUSTERDOWN', 'TRYAGAIN', 'MISCONF', 'NOREPLICAS', 'BUSY', 'OOM'],
  ...['NOAUTH', 'WRONGPASS', 'MOVED', 'ASK'],
]
/** About the stream: its key holds something else, or may not be used. */
const NO_PLACE = ['WRONGTYPE', 'NOPERM']

export function createSink(options: ResolvedSink): Sink & { readonly name?: string } {
  const inTurn = createTurns()
  const trimming = createTrimming(options)
  let connection: Connection | undefined
  /** Connections to a server that takes no writes. */
  const useless = new WeakSet<Connection>()

  const open = (): Promise<Connection> =>
    inTurn(async () => {
      if (connection && !connection.isOpen) {
        connection.close()
        connection = undefined
      }
      connection ??= await connect(options)
      return connection
    })

  const send = async (via: Connection, message: Message): Promise<Answer> => {
    let stream: string
    let args: Argument[]
    try {
      stream = options.streamOf(message)
      args = ['XADD', stream, ...trimming.argumentsFor(stream), '*', ...writeFields(message, options)]
    } catch (error) {
      return { error, retry: false }
    }
    try {
      trimming.added(stream, await via.command(args, options.timeoutMs))
      return undefined
    } catch (error) {
      const code = codeOf(error)
      const isAway = code !== undefined && AWAY.includes(code)
      if (isAway) useless.add(via)
      if (code === undefined || isAway) throw error
      // Else a proxy may have said it, for which there is no list of codes.
      return NO_PLACE.includes(code) ? later(error, NO_PLACE_MS) : down(error)
    }
  }

  const publish = async (batch: readonly Message[], limits?: PublishLimits): Promise<Answer[]> => {
    const via = await inTimeOf(limits, open())
    // What has no reply by then is not waited for: sent on the same connection again, it would be there twice for sure.
    const end = (): void => via.close()
    limits?.signal.addEventListener('abort', end)
    try {
      return await sendInLanes(batch, options.concurrency, (message) => send(via, message), limits)
    } catch (error) {
      throw limits?.signal.aborted ? limits.signal.reason : error
    } finally {
      limits?.signal.removeEventListener('abort', end)
      // Not before all answers are in: what had been taken would be published again.
      if (useless.has(via)) via.close()
    }
  }

  return createClosable(options.name, publish, async (finished) => {
    await finished
    await inTurn(async () => {
      connection?.close()
      connection = undefined
    })
  })
}
