/** The options of RabbitMQ, source, sink or both: type, default and check in one place, resolved once. */
import { checkFunction, checkInteger, checkKnown, checkOneOf, nameProblem } from '../../check-options.js'
import { OnceboxError } from '../../errors.js'
import type { Message } from '../../message.js'
import { checkEventOptions, type ReadOptions, type WriteOptions } from '../event.js'
import type { RabbitConnection, RabbitMessage } from './client.js'

export interface RabbitConnectOptions {
  /** `amqp://user:password@host:5672/vhost`, or `amqps:`; of a cluster several, which are tried in turn. */
  url: string | readonly string[]
  /** Creates what is missing of the topology: a durable queue, a durable exchange, bindings. Default: false. */
  assert?: boolean | Topology
  /** How long the broker may take to connect, and to confirm what was published. Default: 15 000. */
  timeoutMs?: number
  /** A connection that has been silent for twice as long is given up. Default: 10 000. */
  heartbeatMs?: number
  /** For client certificates and the like: `(url) => amqplib.connect(url, { ca })`. */
  connect?: (url: string) => Promise<RabbitConnection>
}

export interface Topology {
  /** The type of the queue. Default: 'quorum', which survives the loss of a node. */
  type?: 'quorum' | 'classic'
  /** Where the broker moves what is rejected or has been delivered too often. */
  deadLetterExchange?: string
  /** Further arguments of the queue, such as `{ 'x-delivery-limit': 50 }`. */
  arguments?: Readonly<Record<string, unknown>>
  /** The type of the exchange. Default: 'topic'. */
  exchangeType?: 'topic' | 'direct' | 'fanout' | 'headers'
  /** What the queue gets: patterns of routing keys by exchange. */
  bindings?: Readonly<Record<string, string | readonly string[]>>
}

export interface RabbitSourceOptions extends RabbitConnectOptions, ReadOptions<RabbitMessage> {
  /** The queue to consume. */
  queue: string
  /** How many messages the broker hands out before they are acknowledged. Default: 256. */
  prefetch?: number
  /** Messages that may wait here for their retry, beside as many as `prefetch` that do not. Default: 5 000. */
  hold?: number
  /** The largest batch. Default: 64. */
  batchSize?: number
  /** How long a batch waits to become full. Default: 5. */
  lingerMs?: number
  /** Batches in flight at a time; messages of one key are in one of them only. Default: 4. */
  concurrency?: number
  /** Rejects what the box has put into quarantine, so that the broker moves it to the dead-letter exchange. Default: false. */
  deadLetter?: boolean
}

export interface RabbitSinkOptions extends RabbitConnectOptions, WriteOptions {
  /** The exchange to publish to; '' is the default one, which routes to the queue of the name of the routing key. */
  exchange: string
  /** Or how to find it. Default: the type of the message. */
  routingKey?: string | ((message: Message) => string)
  /** An event that no queue takes is an error, and tried again. Default: true. */
  mandatory?: boolean
  /** What the sink is called in the outbox. Default: `rabbitmq:` and the exchange. */
  name?: string
}

/** Of both, with every default in place. */
export interface Resolved {
  readonly urls: readonly string[]
  readonly topology: Topology | undefined
  readonly timeoutMs: number
  readonly connect: RabbitConnectOptions['connect']
}

export interface ResolvedSource extends Resolved {
  readonly queue: string
  readonly prefetch: number
  readonly hold: number
  readonly batchSize: number
  readonly lingerMs: number
  readonly concurrency: number
  readonly deadLetter: boolean
  readonly read: ReadOptions<RabbitMessage>
}

export interface ResolvedSink extends Resolved {
  readonly exchange: string
  readonly routingKey: (message: Message) => string
  readonly mandatory: boolean
  readonly name: string
  readonly write: WriteOptions
}

const CONNECT = ['url', 'assert', 'timeoutMs', 'heartbeatMs', 'connect']
const SOURCE = [
  ...['queue', 'prefetch', 'hold', 'batchSize', 'lingerMs', 'concurrency', 'deadLetter'],
  ...['source', 'type', 'codec', 'map'],
]
const SINK = ['exchange', 'routingKey', 'mandatory', 'name', 'mode', 'codec']
const TOPOLOGY = ['type', 'deadLetterExchange', 'arguments', 'exchangeType', 'bindings']
const DAY = 86_400_000

/** Says which options there are, given what it is to be. */
export function checkOptions(given: Partial<RabbitSourceOptions & RabbitSinkOptions>): void {
  const isSource = given.queue !== undefined
  const isSink = given.exchange !== undefined
  if (!isSource && !isSink) throw invalid('takes { queue } to consume, { exchange } to publish, or both')
  const where = isSource && isSink ? 'rabbitmq' : isSource ? 'rabbitmq with a queue alone' : 'rabbitmq without a queue'
  checkKnown(where, given, [...CONNECT, ...(isSource ? SOURCE : []), ...(isSink ? SINK : [])])
  checkEventOptions('rabbitmq', given)
}

export function resolveSource(given: RabbitSourceOptions): ResolvedSource {
  checkShort('queue', given.queue)
  const prefetch = checkInteger('rabbitmq: prefetch', given.prefetch ?? 256, 1, 65_535)
  const { source, type, codec, map } = given
  return {
    ...resolve(given),
    queue: given.queue,
    prefetch,
    hold: checkInteger('rabbitmq: hold', given.hold ?? 5_000, 0, 1_000_000),
    batchSize: checkInteger('rabbitmq: batchSize', given.batchSize ?? Math.min(64, prefetch), 1, prefetch),
    lingerMs: checkInteger('rabbitmq: lingerMs', given.lingerMs ?? 5, 0, 60_000),
    concurrency: checkInteger('rabbitmq: concurrency', given.concurrency ?? 4, 1, 1_000),
    deadLetter: checkBoolean('deadLetter', given.deadLetter ?? false),
    read: { source, type, codec, map },
  }
}

export function resolveSink(given: RabbitSinkOptions): ResolvedSink {
  if (given.exchange !== '') checkShort('exchange', given.exchange)
  if (given.name !== undefined) checkShort('name', given.name)
  const { routingKey, mode, codec } = given
  if (typeof routingKey !== 'string') checkFunction('rabbitmq: routingKey', routingKey)
  return {
    ...resolve(given),
    exchange: given.exchange,
    routingKey: typeof routingKey === 'function' ? routingKey : (message) => routingKey ?? message.type,
    mandatory: checkBoolean('mandatory', given.mandatory ?? true),
    name: given.name ?? `rabbitmq:${given.exchange}`,
    write: { mode, codec },
  }
}

function resolve(given: RabbitConnectOptions): Resolved {
  const heartbeatMs = checkInteger('rabbitmq: heartbeatMs', given.heartbeatMs ?? 10_000, 0, 65_535_000)
  const urls = typeof given.url === 'string' ? [given.url] : given.url
  if (!Array.isArray(urls) || urls.length === 0) throw invalid('url must be a URL, or a list of them')
  return {
    urls: (urls as readonly string[]).map((url) => withHeartbeat(url, heartbeatMs)),
    topology: topologyOf(given.assert ?? false),
    timeoutMs: checkInteger('rabbitmq: timeoutMs', given.timeoutMs ?? 15_000, 1, DAY),
    connect: checkFunction('rabbitmq: connect', given.connect),
  }
}

function topologyOf(given: boolean | Topology): Topology | undefined {
  if (typeof given === 'boolean') return given ? {} : undefined
  if (typeof given !== 'object' || given === null) throw invalid('assert must be true, false or { type, … }')
  checkKnown('rabbitmq: assert', given, TOPOLOGY)
  if (given.type !== undefined) checkOneOf('rabbitmq: assert.type', given.type, ['quorum', 'classic'])
  const { exchangeType } = given
  if (exchangeType !== undefined) {
    checkOneOf('rabbitmq: assert.exchangeType', exchangeType, ['topic', 'direct', 'fanout', 'headers'])
  }
  return given
}

/** amqplib takes it, in seconds, from the URL; what the URL says already is left alone. Never shows a URL: it has a password. */
function withHeartbeat(given: string, heartbeatMs: number): string {
  let url: URL
  try {
    url = new URL(given)
  } catch {
    throw invalid('url is not a URL')
  }
  if (url.protocol !== 'amqp:' && url.protocol !== 'amqps:') throw invalid('url must begin with amqp: or amqps:')
  if (!url.searchParams.has('heartbeat')) url.searchParams.set('heartbeat', String(Math.ceil(heartbeatMs / 1_000)))
  return url.href
}

/** The protocol counts the bytes of a name in one byte. */
function checkShort(option: string, value: unknown): void {
  const problem = nameProblem(value, 255)
  if (problem) throw invalid(`${option} ${problem}`)
}

function checkBoolean(option: string, value: boolean): boolean {
  if (typeof value !== 'boolean') throw invalid(`${option} must be true or false`)
  return value
}

function invalid(what: string): OnceboxError {
  return new OnceboxError('OPTION_INVALID', `rabbitmq: ${what}`)
}
