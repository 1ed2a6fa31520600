/** The options of RabbitMQ, source, sink or both. */
import { requireFunction, show } from '../../check-options.js'
import { DAY_MS } from '../../figures.js'
import type { Message } from '../../message.js'
import {
  boolean,
  callback,
  checked,
  integer,
  invalid,
  name,
  nested,
  oneOf,
  optional,
  readAll,
  settings,
  type Options,
  type Resolved,
} from '../../options.js'
import { checkWriting, READING, WRITING, type ReadOptions, type WriteOptions } from '../event.js'
import type { Sides } from '../sides.js'
import type { RabbitConnection, RabbitMessage } from './client.js'

export interface RabbitConnectOptions {
  /** `amqp://user:password@host:5672/vhost`, or `amqps:`; of a cluster several, which are tried in turn. */
  url: string | readonly string[]
  /** Creates what is missing of the topology: a durable queue, a durable exchange, bindings. Default: false. */
  assert?: boolean | Topology | undefined
  /** How long the broker may take to connect, and to confirm what was published. Default: 15 000. */
  timeoutMs?: number | undefined
  /** A connection that has been silent for twice as long is given up. A `heartbeat` of the URL goes first. Default: 10 000. */
  heartbeatMs?: number | undefined
  /** For client certificates and the like: `(url) => amqplib.connect(url, { ca })`. */
  connect?: ((url: string) => Promise<RabbitConnection>) | undefined
}

export interface Topology {
  /** The type of the queue. Default: 'quorum', which survives the loss of a node. */
  type?: 'quorum' | 'classic' | undefined
  /** Where the broker moves what is rejected or has been delivered too often. */
  deadLetterExchange?: string | undefined
  /** Further arguments of the queue, such as `{ 'x-delivery-limit': 50 }`. */
  arguments?: Readonly<Record<string, unknown>> | undefined
  /** The type of the exchange. Default: 'topic'. */
  exchangeType?: 'topic' | 'direct' | 'fanout' | 'headers' | undefined
  /** What the queue gets: patterns of routing keys by exchange. */
  bindings?: Readonly<Record<string, string | readonly string[]>> | undefined
}

export interface RabbitSourceOptions extends RabbitConnectOptions, ReadOptions<RabbitMessage> {
  /** The queue to consume. */
  queue: string
  /** How many messages the broker hands out before they are acknowledged. Default: 512. */
  prefetch?: number | undefined
  /** Messages that may wait here for their retry, beside as many as `prefetch` that do not. Default: 5 000. */
  hold?: number | undefined
  /** The most messages in one delivery to the box, and no more than `prefetch`. Default: a quarter of it, or 64. */
  batch?: number | undefined
  /** How long a batch waits to become full. Default: 5. */
  lingerMs?: number | undefined
  /** Batches in flight at a time; messages of one key are in one of them only. Default: 4. */
  concurrency?: number | undefined
  /** Rejects what the box has put into quarantine, so that the broker moves it to the dead-letter exchange. Default: false. */
  deadLetter?: boolean | undefined
}

export interface RabbitSinkOptions extends RabbitConnectOptions, WriteOptions {
  /** The exchange to publish to; '' is the default one, which routes to the queue of the name of the routing key. */
  exchange: string
  /** Or how to find it. Default: the type of the message. */
  routingKey?: string | ((message: Message) => string) | undefined
  /** An event that no queue takes is an error, and tried again. Default: true. */
  mandatory?: boolean | undefined
  /** What the sink is called in the outbox. Default: `rabbitmq:` and the exchange. */
  name?: string | undefined
}

/** The protocol counts the bytes of a name in one byte. */
const short = name(255)

const DEFAULT_HEARTBEAT_MS = 10_000

const CONNECT = {
  url: checked((where, given: string | readonly string[]): readonly string[] => {
    const urls: unknown = typeof given === 'string' ? [given] : given
    if (!Array.isArray(urls) || urls.length === 0) throw invalid(`${where} must be a URL, or a list of them`)
    return urls.map((url: string) => checkUrl(where, url))
  }),
  assert: optional(
    checked((where, given: boolean | Topology): Topology | undefined => {
      if (typeof given === 'boolean') return given ? {} : undefined
      if (typeof given !== 'object' || given === null) {
        throw invalid(`${where} must be true, false or { type, … }; got ${show(given)}`)
      }
      return TOPOLOGY_OPTION.read(where, given)
    }),
    '`false`',
  ),
  timeoutMs: integer({ least: 1, most: DAY_MS, fallback: 15_000 }),
  heartbeatMs: integer({ least: 0, most: 65_535_000, fallback: DEFAULT_HEARTBEAT_MS }),
  connect: optional(callback<(url: string) => Promise<RabbitConnection>>()),
}

const TOPOLOGY = {
  type: optional(oneOf(['quorum', 'classic'])),
  deadLetterExchange: optional(short),
  arguments: optional(settings()),
  exchangeType: optional(oneOf(['topic', 'direct', 'fanout', 'headers'])),
  bindings: optional(checked((_, given: NonNullable<Topology['bindings']>) => given)),
} satisfies Options<Topology>
const TOPOLOGY_OPTION = nested(TOPOLOGY)

export const SOURCE = {
  ...CONNECT,
  ...READING<RabbitMessage>(),
  queue: short,
  prefetch: integer({ least: 1, most: 65_535, fallback: 512 }),
  hold: integer({ least: 0, most: 1_000_000, fallback: 5_000 }),
  batch: optional(integer({ least: 1 }), 'a quarter of `prefetch`, or 64'),
  lingerMs: integer({ least: 0, most: 60_000, fallback: 5 }),
  concurrency: integer({ least: 1, most: 1_000, fallback: 4 }),
  deadLetter: boolean(false),
}

export const SINK = {
  ...CONNECT,
  ...WRITING,
  exchange: checked((where, given: string) => (given === '' ? '' : short.read(where, given))),
  routingKey: optional(
    checked((where, given: string | ((message: Message) => string)) => {
      if (typeof given !== 'string') requireFunction(where, given)
      return given
    }),
    'the type',
  ),
  mandatory: boolean(true),
  name: optional(short, '`rabbitmq:` and the exchange'),
}

export const SIDES: Sides = {
  takes: '{ url, queue } to consume, { url, exchange } to publish, or all of them',
  ...{ source: SOURCE, receives: ['queue'] },
  ...{ sink: SINK, publishes: ['exchange'] },
}

/** Of both. */
export type Connecting = ReturnType<typeof connecting>
export type ResolvedSource = ReturnType<typeof resolveSource>
export type ResolvedSink = ReturnType<typeof resolveSink>

export function resolveSource(given: RabbitSourceOptions) {
  const options = readAll('rabbitmq', given, SOURCE)
  const { prefetch, batch = Math.min(prefetch, Math.max(64, prefetch >> 2)) } = options
  if (batch > prefetch) throw invalid(`rabbitmq: batch must be at most prefetch, ${prefetch}; got ${batch}`)
  return { ...options, ...connecting(options), batch }
}

export function resolveSink(given: RabbitSinkOptions) {
  const options = readAll('rabbitmq', given, SINK)
  checkWriting('rabbitmq', options)
  const { exchange, routingKey, name = `rabbitmq:${exchange}` } = options
  const keyOf = (message: Message): string =>
    typeof routingKey === 'function' ? routingKey(message) : (routingKey ?? message.type)
  return { ...options, ...connecting(options), routingKey: keyOf, name }
}

function connecting({ url, assert, timeoutMs, heartbeatMs, connect }: Resolved<typeof CONNECT>) {
  const urls = url.map((one) => withHeartbeat(one, heartbeatMs))
  const heartbeats = urls.map(heartbeatMsOf)
  return {
    ...{ urls, topology: assert, timeoutMs, connect },
    // The longest of all nodes: nobody knows which one the next connection is to. Without any, the broker notices no sooner.
    heartbeatMs: Math.max(...heartbeats.map((ms) => ms || DEFAULT_HEARTBEAT_MS)),
    isWithoutHeartbeats: heartbeats.includes(0),
  }
}

/** Never shown: it has a password. */
function checkUrl(where: string, given: string): string {
  if (!URL.canParse(given)) throw invalid(`${where} is not a URL`)
  if (!/^amqps?:$/.test(new URL(given).protocol)) throw invalid(`${where} must begin with amqp: or amqps:`)
  return given
}

/** amqplib takes it, in seconds, from the URL; what the URL says already is left alone. */
function withHeartbeat(given: string, heartbeatMs: number): string {
  const url = new URL(given)
  if (!url.searchParams.has('heartbeat')) url.searchParams.set('heartbeat', String(Math.ceil(heartbeatMs / 1_000)))
  return url.href
}

function heartbeatMsOf(url: string): number {
  return (Number.parseInt(new URL(url).searchParams.get('heartbeat')!, 10) || 0) * 1_000
}
