/** The client: loaded when it is needed, and a connection that says whether it is up. */
import type { Consumer, ConsumerConfig, JetStreamClient, JetStreamManager } from '@nats-io/jetstream'
import type { MsgHdrs, NatsConnection } from '@nats-io/transport-node'
import { sleep } from '../../backoff.js'
import { OnceboxError } from '../../errors.js'
import { invalid } from '../../options.js'
import type { ResolvedConnection, ResolvedSource } from './options.js'

export interface Connection {
  readonly nc: NatsConnection
  readonly js: JetStreamClient
  readonly jsm: JetStreamManager
  readonly createHeaders: () => MsgHdrs
  /** False while the client reconnects. */
  readonly isUp: boolean
  /** The client has given up, or was closed. */
  readonly isClosed: boolean
  /** What the work answers, unless the connection is lost before. */
  untilLost<T>(work: Promise<T>): Promise<T>
  /** Flushes what was sent, as far as that is possible, and closes. */
  close(): Promise<void>
}

/** For a connection, and for requests to the API of JetStream. */
const CONNECT_MS = 5_000
const RECONNECT_MS = 500
const CLOSE_MS = 2_000

const CONSUMER_NOT_FOUND = 10_014
export const STREAM_NOT_FOUND = 10_059
const NAME_IN_USE = [10_058, 10_013, 10_148]

/** `tell` hears of a loss, and of the return. */
export async function connect(
  { url: servers, connection }: ResolvedConnection,
  tell: (problem?: unknown) => void = () => undefined,
): Promise<Connection> {
  const { transport, jetstream } = await loadClient()
  const nc = await transport.connect({
    timeout: CONNECT_MS,
    reconnectTimeWait: RECONNECT_MS,
    reconnectJitter: RECONNECT_MS,
    pingInterval: 10_000,
    // A stack for each request costs half of the throughput of a sink.
    noAsyncTraces: true,
    ...connection,
    servers,
    maxReconnectAttempts: -1,
  })
  let isUp = true
  let closing = false
  const waiting = new Set<(error: Error) => void>()
  const lose = (error: Error): void => {
    isUp = false
    for (const reject of [...waiting]) reject(error)
    if (!closing) tell(error)
  }
  const watch = async (): Promise<void> => {
    for await (const { type } of nc.status()) {
      if (type === 'disconnect') lose(new Error(`lost the connection to NATS at ${nc.getServer()}`))
      if (type === 'reconnect') {
        isUp = true
        tell()
      }
    }
    const error = await nc.closed()
    lose(error instanceof Error ? error : new Error('the connection to NATS is closed'))
  }
  void watch()

  const close = async (): Promise<void> => {
    closing = true
    // While the client reconnects it cannot drain.
    if (isUp)
      await sleep(
        CLOSE_MS,
        nc.drain().catch(() => undefined),
      )
    await nc.close().catch(() => undefined)
  }
  try {
    return {
      nc,
      js: jetstream.jetstream(nc),
      jsm: await jetstream.jetstreamManager(nc),
      createHeaders: () => transport.headers(),
      get isUp() {
        return isUp
      },
      get isClosed() {
        return nc.isClosed()
      },
      untilLost: (work) =>
        new Promise((resolve, reject) => {
          waiting.add(reject)
          work.then(resolve, reject).finally(() => waiting.delete(reject))
        }),
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

async function loadClient() {
  try {
    const [transport, jetstream] = await Promise.all([import('@nats-io/transport-node'), import('@nats-io/jetstream')])
    return { transport, jetstream }
  } catch (cause) {
    throw new OnceboxError(
      'OPTION_INVALID',
      'oncebox/nats needs the NATS client: npm install @nats-io/transport-node @nats-io/jetstream',
      { cause },
    )
  }
}

/** Makes sure of the stream, if that was asked for. */
export async function assertStream({ jsm }: Connection, { stream, assert }: ResolvedConnection): Promise<void> {
  if (stream === undefined || assert?.stream === undefined) return
  const config = assert.stream
  await createIfMissing(
    () => jsm.streams.info(stream),
    () => jsm.streams.add({ ...config, name: stream }),
  )
}

export interface FoundConsumer {
  readonly consumer: Consumer
  /** How long it waits for an acknowledgement: at least, and before any delivery is repeated. */
  readonly ackWaitMs: number
  readonly longestWaitMs: number
  /** So many may be unacknowledged at a time. */
  readonly mostPending: number
  readonly config: ConsumerConfig
  readonly place: Place
}

/** How far a consumer was when it was found: all up to there was acknowledged, in the stream that was made at that time. */
export interface Place {
  readonly sequence: number
  /** Undefined for a client without the right to look at the stream. */
  readonly streamCreated: Promise<string | undefined>
}

/** The consumer to pull from. If it was there before, and is made anew, it begins `before`, whatever `assert` says. */
export async function findConsumer(
  connection: Connection,
  options: ResolvedSource,
  before?: Place,
): Promise<FoundConsumer> {
  const { stream, consumer: name, assert } = options
  const { jsm, js } = connection
  await assertStream(connection, options)
  const find = () => jsm.consumers.info(stream, name)
  const create = async () => {
    const config = before ? await configFrom(before, connection, options) : assert?.consumer
    return jsm.consumers.add(stream, { ...config, durable_name: name, ack_policy: 'explicit' })
  }
  const { config, ack_floor, delivered, num_ack_pending } = await (assert?.consumer === undefined
    ? find()
    : createIfMissing(find, create))
  if (config.deliver_subject !== undefined)
    throw invalid(`nats: the consumer ${name} pushes; a source needs a pull consumer`)
  if (config.ack_policy !== 'explicit') {
    throw invalid(`nats: the consumer ${name} has ack_policy ${config.ack_policy}; a source needs explicit`)
  }
  const waits = [config.ack_wait, ...(config.backoff ?? [])].filter((one) => one !== undefined)
  const { max_ack_pending: most = -1 } = config
  // The floor of a consumer that is new is 0, wherever it begins.
  const { stream_seq: sequence } = num_ack_pending === 0 ? delivered : ack_floor
  return {
    consumer: await js.consumers.get(stream, name),
    ackWaitMs: Math.min(...waits) / 1e6,
    longestWaitMs: Math.max(...waits) / 1e6,
    mostPending: most > 0 ? most : Infinity,
    config,
    place: { sequence, streamCreated: createdAt(connection, stream) },
  }
}

/** A policy like `new` would skip what came while the consumer was gone. */
async function configFrom(
  { sequence, streamCreated }: Place,
  connection: Connection,
  { stream, assert }: ResolvedSource,
): Promise<Partial<ConsumerConfig>> {
  const { opt_start_seq: _, opt_start_time: __, ...config }: Partial<ConsumerConfig> = assert?.consumer ?? {}
  if ((config.deliver_policy ?? 'all') === 'all') return config
  const created = await createdAt(connection, stream)
  const isSame = created !== undefined && created === (await streamCreated)
  if (!isSame) return { ...config, deliver_policy: 'all' }
  return { ...config, deliver_policy: 'by_start_sequence', opt_start_seq: sequence + 1 }
}

async function createdAt({ jsm }: Connection, stream: string): Promise<string | undefined> {
  try {
    return (await jsm.streams.info(stream)).created
  } catch {
    return undefined
  }
}

async function createIfMissing<T>(find: () => Promise<T>, create: () => Promise<T>): Promise<T> {
  try {
    return await find()
  } catch (error) {
    const code = codeOf(error)
    if (code !== STREAM_NOT_FOUND && code !== CONSUMER_NOT_FOUND) throw error
  }
  try {
    return await create()
  } catch (error) {
    // Somebody else was faster.
    if (!NAME_IN_USE.includes(codeOf(error) as number)) throw error
    return find()
  }
}

export function codeOf(error: unknown): unknown {
  return (error as { code?: unknown } | undefined)?.code
}
