/** The options of NATS, source or sink: type, default and check in one place, resolved once. */
import { checkFunction, checkInteger, checkKnown, nameProblem } from '../../check-options.js'
import { OnceboxError } from '../../errors.js'
import type { Message } from '../../message.js'
import { checkEventOptions, type ReadOptions, type WriteOptions } from '../event.js'

/** A message as `@nats-io/jetstream` hands it out: what is needed of it. Its own types are called JsMsg. */
export interface NatsMessage {
  readonly subject: string
  readonly data: Uint8Array
  readonly headers?: NatsHeaders | undefined
  /** Its number in the stream. */
  readonly seq: number
  /** When the server took it. */
  readonly time: Date
  readonly timestampNanos: bigint
  readonly info: { readonly stream: string; readonly consumer: string; readonly deliveryCount: number }
  json<T>(): T
  string(): string
}

export interface NatsHeaders extends Iterable<[string, string[]]> {
  /** An empty text if there is none. */
  get(name: string): string
  has(name: string): boolean
  keys(): string[]
  values(name: string): string[]
}

type Configuration = Readonly<Record<string, unknown>>

interface Common {
  /** `nats://host:port`; of a cluster, several. */
  url: string | readonly string[]
  /** Given to `connect` of the client: `authenticator`, `tls`, `token`, `user` and `pass`, … */
  connection?: Configuration
  /**
   * Creates the stream, and the consumer, if they are missing; what is there stays as it is. With JetStream's own names
   * and units: `{ stream: { subjects: ['shop.>'] }, consumer: { ack_wait: 60e9 } }`.
   */
  assert?: { readonly stream?: Configuration; readonly consumer?: Configuration }
}

export interface NatsSourceOptions extends Common, ReadOptions<NatsMessage> {
  /** Where messages are kept. */
  stream: string
  /** The durable pull consumer. All processes that share the work share its name. */
  consumer: string
  /** Messages that are handed to the box at a time, and as many are fetched ahead. Default: 100. */
  batch?: number
  /** The key of a message that has no `partitionkey`. Default: none. */
  key?: (raw: NatsMessage) => string | undefined
}

export interface NatsSinkOptions extends Common, WriteOptions {
  /** Where events go: `shop.events` for all; `shop.>` for the type in place of `>`; or a function of the event. */
  subject: string | ((message: Message) => string)
  /** The stream that `assert` creates. */
  stream?: string
  /** For one event, from its publication to its confirmation. Default: 10 000. */
  timeoutMs?: number
  /** Events on their way at a time. Events of one key go one after the other. Default: 100. */
  concurrency?: number
  /** What the sink is called in the outbox. Default: `nats:` and the subject. */
  name?: string
}

export interface ResolvedConnection {
  readonly servers: string[]
  readonly connection: Configuration
  readonly stream: string | undefined
  readonly assert: NonNullable<Common['assert']> | undefined
}

export interface ResolvedSource extends ResolvedConnection {
  readonly stream: string
  readonly consumer: string
  readonly batch: number
  readonly key: NatsSourceOptions['key']
  readonly read: ReadOptions<NatsMessage>
}

export interface ResolvedSink extends ResolvedConnection {
  readonly subjectOf: (message: Message) => string
  readonly timeoutMs: number
  readonly concurrency: number
  readonly write: WriteOptions
  readonly name: string
}

const COMMON_OPTIONS = ['url', 'connection', 'assert', 'stream', 'codec']
const SOURCE_OPTIONS = ['consumer', 'batch', 'key', 'source', 'type', 'map']
const SINK_OPTIONS = ['subject', 'timeoutMs', 'concurrency', 'mode', 'name']

/** `consumer` makes it a source, `subject` a sink. */
export function checkOptions(given: object): { isSource: boolean; isSink: boolean } {
  if (typeof given !== 'object' || given === null) {
    throw invalid('takes options: { url, stream, consumer } to receive, { url, subject } to publish')
  }
  const { consumer, subject } = given as { consumer?: unknown; subject?: unknown }
  const isSource = consumer !== undefined
  const isSink = subject !== undefined
  if (!isSource && !isSink)
    throw invalid('needs a consumer (with its stream) to receive from, or a subject to publish on')
  checkKnown('nats', given, [
    ...COMMON_OPTIONS,
    ...(isSource || !isSink ? SOURCE_OPTIONS : []),
    ...(isSink ? SINK_OPTIONS : []),
    'consumer',
    'subject',
  ])
  return { isSource, isSink }
}

export function resolveSource(given: NatsSourceOptions): ResolvedSource {
  const { source, type, codec, map } = given
  const read = { source, type, codec, map }
  checkEventOptions('nats', read)
  return {
    ...resolveConnection(given),
    stream: checkToken('stream', given.stream),
    consumer: checkToken('consumer', given.consumer),
    batch: checkInteger('nats: batch', given.batch ?? 100, 1, 10_000),
    key: checkFunction('nats: key', given.key),
    read,
  }
}

export function resolveSink(given: NatsSinkOptions): ResolvedSink {
  const { mode, codec } = given
  const write = { mode, codec }
  checkEventOptions('nats', write)
  const problem = given.name === undefined ? undefined : nameProblem(given.name)
  if (problem) throw invalid(`name ${problem}`)
  return {
    ...resolveConnection(given),
    subjectOf: subjectOf(given.subject),
    timeoutMs: checkInteger('nats: timeoutMs', given.timeoutMs ?? 10_000, 1, 3_600_000),
    concurrency: checkInteger('nats: concurrency', given.concurrency ?? 100, 1, 10_000),
    write,
    name: given.name ?? (typeof given.subject === 'string' ? `nats:${given.subject}` : 'nats'),
  }
}

function resolveConnection({
  url,
  connection = {},
  stream,
  assert,
}: NatsSourceOptions | NatsSinkOptions): ResolvedConnection {
  const servers = typeof url === 'string' ? [url] : [...(url ?? [])]
  // The client takes any scheme, and speaks its own protocol all the same.
  const isServer = (one: unknown): boolean =>
    typeof one === 'string' && /^(nats:\/\/|tls:\/\/|(?!.*:\/\/))\S+$/i.test(one)
  if (servers.length === 0 || !servers.every(isServer)) {
    throw invalid('url must be text such as nats://localhost:4222, or a list of such')
  }
  if (stream !== undefined) checkToken('stream', stream)
  if (assert !== undefined) {
    if (typeof assert !== 'object' || assert === null) throw invalid('assert must be { stream, consumer }')
    checkKnown('nats: assert', assert, ['stream', 'consumer'])
    if (assert.stream !== undefined && stream === undefined)
      throw invalid('assert: stream needs the name of the stream')
  }
  return { servers, connection, stream, assert }
}

function subjectOf(subject: NatsSinkOptions['subject']): (message: Message) => string {
  if (typeof subject === 'function') return (message) => checkSubject(subject(message))
  if (typeof subject !== 'string') throw invalid('subject must be text or a function')
  if (subject !== '>' && !subject.endsWith('.>')) {
    checkSubject(subject)
    return () => subject
  }
  const prefix = subject.slice(0, -1)
  if (prefix !== '') checkSubject(prefix.slice(0, -1))
  return ({ type }) => checkSubject(prefix + type)
}

/** One that can be published on. */
function checkSubject(subject: unknown): string {
  if (typeof subject !== 'string' || !/^[^\s.*>\0]+(\.[^\s.*>\0]+)*$/.test(subject)) {
    throw invalid(
      `${JSON.stringify(subject)} is no subject to publish on: words with a dot between them, no spaces or wildcards`,
    )
  }
  return subject
}

/** Names of streams and consumers are words of subjects. */
function checkToken(option: string, value: unknown): string {
  if (typeof value !== 'string' || !/^[^\s.*>/\\\0]+$/.test(value)) {
    throw invalid(`${option} must be a name without spaces, dots, slashes and wildcards; got ${JSON.stringify(value)}`)
  }
  return value
}

export function invalid(what: string): OnceboxError {
  return new OnceboxError('OPTION_INVALID', `nats: ${what}`)
}
