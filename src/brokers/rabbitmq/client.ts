/** What is used of amqplib, the user's own, and how a connection to the broker begins and ends. */
import { sleep, within } from '../../backoff.js'
import { OnceboxError } from '../../errors.js'
import type { Connecting } from './options.js'

/** A message as amqplib hands it out. */
export interface RabbitMessage {
  readonly content: Uint8Array
  readonly fields: {
    readonly deliveryTag: number
    readonly redelivered: boolean
    readonly exchange: string
    readonly routingKey: string
  }
  readonly properties: {
    readonly headers?: Readonly<Record<string, unknown>> | undefined
    readonly contentType?: unknown
    readonly messageId?: unknown
    readonly correlationId?: unknown
    readonly type?: unknown
    readonly timestamp?: unknown
  }
}

/** What an amqplib channel can do, as far as it is needed. */
export interface RabbitChannel {
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- events carry whatever they carry
  on(event: string, listener: (...details: any[]) => void): unknown
  prefetch(count: number): Promise<unknown>
  assertQueue(queue: string, options?: object): Promise<unknown>
  assertExchange(exchange: string, type: string, options?: object): Promise<unknown>
  bindQueue(queue: string, exchange: string, pattern: string): Promise<unknown>
  consume(queue: string, onMessage: (message: RabbitMessage | null) => void): Promise<{ consumerTag: string }>
  cancel(consumerTag: string): Promise<unknown>
  ack(message: RabbitMessage, allUpTo?: boolean): void
  nack(message: RabbitMessage, allUpTo?: boolean, requeue?: boolean): void
  close(): Promise<void>
}

export interface RabbitConfirmChannel extends RabbitChannel {
  publish(
    exchange: string,
    routingKey: string,
    content: Buffer,
    options: object,
    confirmed: (error: unknown) => void,
  ): boolean
}

/** What `amqplib.connect` resolves to. */
export interface RabbitConnection {
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- events carry whatever they carry
  on(event: string, listener: (...details: any[]) => void): unknown
  createChannel(): Promise<RabbitChannel>
  createConfirmChannel(): Promise<RabbitConfirmChannel>
  close(): Promise<void>
}

/** A connection with one channel. */
export interface Session<C extends RabbitChannel> {
  readonly channel: C
  /** Of the broker, if the client passes it on. */
  readonly version: string | undefined
  /** Resolves when the channel or the connection is gone, with the reason. */
  readonly lost: Promise<unknown>
  /** Why it is gone; undefined while it is not. */
  readonly problem: unknown
  /** Why the broker reads nothing of what is published: it is short of memory or disk. Undefined while it does. */
  readonly blocked: string | undefined
  /** It cannot be used any more, and this is why. */
  fail(problem: unknown): void
  /** The same, at once: what the broker has not read by now it is not to read any more. */
  abandon(problem: unknown): void
  /** Resolves in bounded time. What was sent before has then been read by the broker, if it is there. */
  close(): Promise<void>
}

/** How long a broker may take to say goodbye. */
const CLOSE_MS = 5_000

export function openSource(options: Connecting): Promise<Session<RabbitChannel>> {
  return open(options, (connection) => connection.createChannel(), explainUndecodable)
}

export function openSink(options: Connecting): Promise<Session<RabbitConfirmChannel>> {
  return open(options, (connection) => connection.createConfirmChannel())
}

async function open<C extends RabbitChannel>(
  options: Connecting,
  createChannel: (connection: RabbitConnection) => Promise<C>,
  explain = (problem: unknown): unknown => problem,
): Promise<Session<C>> {
  const connection = await connectToAny(options)
  let problem: unknown
  let settle: (problem: unknown) => void = () => undefined
  const lost = new Promise<unknown>((resolve) => (settle = resolve))
  const fail = (why: unknown): void => settle((problem ??= explain(why) ?? new Error('the connection was closed')))
  connection.on('error', fail)
  connection.on('close', fail)
  let blocked: string | undefined
  connection.on('blocked', (reason: unknown) => (blocked = String(reason)))
  connection.on('unblocked', () => (blocked = undefined))

  let closing: Promise<void> | undefined
  const closeConnection = async (): Promise<void> => {
    fail(new OnceboxError('STOPPED', 'the connection to RabbitMQ was closed'))
    const closed = connection.close().catch(() => undefined)
    await sleep(CLOSE_MS, closed)
    destroy(connection)
  }
  try {
    const channel = await inTime(options, createChannel(connection), lost)
    channel.on('error', fail)
    channel.on('close', () => fail(new Error('the channel was closed')))
    return {
      channel,
      version: versionOf(connection),
      lost,
      get problem() {
        return problem
      },
      get blocked() {
        return blocked
      },
      fail,
      abandon(why) {
        fail(why)
        // There is nobody to say goodbye to; amqplib hears of an error, and ends its heartbeats.
        closing ??= Promise.resolve()
        destroy(connection, new Error('the connection to RabbitMQ was given up'))
      },
      close() {
        closing ??= (async () => {
          // The answer to the end of a channel comes after the broker has read all that was sent on it.
          if (problem === undefined)
            await sleep(
              CLOSE_MS,
              channel.close().catch(() => undefined),
            )
          await closeConnection()
        })()
        return closing
      },
    }
  } catch (error) {
    await closeConnection()
    throw problem instanceof OnceboxError ? error : (problem ?? error)
  }
}

/** amqplib gives up its connection at headers that it cannot decode, before anybody is told whose they are. */
function explainUndecodable(problem: unknown): unknown {
  const what = undecodable(problem)
  if (what === undefined) return problem
  const how = 'by Get messages of the management plugin, or all with it by rabbitmqctl purge_queue'
  const advice = `nothing behind it is delivered until it is removed: stop the consumers, and take it out ${how}`
  return new Error(`a message at the head of the queue has ${what}; ${advice}`, { cause: problem })
}

/** What is nested it decodes by calling itself; and of the types that brokers and other clients know it lacks some. */
function undecodable(problem: unknown): string | undefined {
  if (problem instanceof RangeError && problem.message.includes('call stack'))
    return 'headers nested too deep for amqplib to decode'
  if (problem instanceof TypeError && problem.message.startsWith('Unexpected type tag'))
    return `a header of a type that amqplib cannot decode (${problem.message})`
  return undefined
}

/** The first node that answers. */
async function connectToAny(options: Connecting): Promise<RabbitConnection> {
  const connect = options.connect ?? (await loadClient(options))
  let problem: unknown
  for (const url of options.urls) {
    const connecting = connect(url)
    try {
      return await inTime(options, connecting)
    } catch (error) {
      problem = error
      // It may come after all, and nobody waits for it any more.
      connecting.then(discard, () => undefined)
    }
  }
  throw problem
}

async function loadClient({ timeoutMs }: Connecting): Promise<(url: string) => Promise<RabbitConnection>> {
  try {
    const { connect } = await import('amqplib')
    return (url) => connect(url, { timeout: timeoutMs, noDelay: true, keepAlive: true })
  } catch (error) {
    throw new OnceboxError('OPTION_INVALID', 'rabbitmq needs its client: npm install amqplib', { cause: error })
  }
}

/** What the broker answers, unless it takes too long or is lost before. */
export function inTime<T>({ timeoutMs }: Connecting, answer: Promise<T>, lost?: Promise<unknown>): Promise<T> {
  const gone = lost?.then((problem) => {
    throw problem
  })
  const first = gone ? Promise.race([answer, gone]) : answer
  return within(timeoutMs, first, () => new Error(`RabbitMQ did not answer in ${timeoutMs} ms`))
}

function discard(connection: RabbitConnection): void {
  connection.on('error', () => undefined)
  connection.close().catch(() => undefined)
}

function versionOf(connection: RabbitConnection): string | undefined {
  const { serverProperties } =
    (connection as { connection?: { serverProperties?: { version?: unknown } } }).connection ?? {}
  return typeof serverProperties?.version === 'string' ? serverProperties.version : undefined
}

/** amqplib ends its half of a socket and waits; a peer that is gone without a word would keep it open for minutes. */
function destroy(connection: RabbitConnection, why?: Error): void {
  const { stream } = (connection as { connection?: { stream?: { destroy?: (why?: Error) => void } } }).connection ?? {}
  stream?.destroy?.(why)
}
