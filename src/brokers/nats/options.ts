/** The options of NATS, source or sink. */
import { show } from '../../check-options.js'
import type { Message } from '../../message.js'
import {
  callback,
  checked,
  integer,
  invalid,
  name,
  nested,
  optional,
  readAll,
  settings,
  type Resolved,
} from '../../options.js'
import { checkWriting, READING, WRITING, type ReadOptions, type WriteOptions } from '../event.js'
import type { Sides } from '../sides.js'

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
  connection?: Configuration | undefined
  /**
   * Creates the stream, and the consumer, if they are missing; what is there stays as it is. With JetStream's own names
   * and units: `{ stream: { subjects: ['shop.>'] }, consumer: { ack_wait: 60e9 } }`.
   */
  assert?: { readonly stream?: Configuration; readonly consumer?: Configuration } | undefined
}

export interface NatsSourceOptions extends Common, ReadOptions<NatsMessage> {
  /** Where messages are kept. */
  stream: string
  /** The durable pull consumer. All processes that share the work share its name. */
  consumer: string
  /** Messages that are handed to the box at a time, and as many are fetched ahead. Default: 100. */
  batch?: number | undefined
  /** The key of a message that has no `partitionkey`. Default: none. */
  key?: (raw: NatsMessage) => string | undefined
}

export interface NatsSinkOptions extends Common, WriteOptions {
  /** Where events go: `shop.events` for all; `shop.>` for the type in place of `>`; or a function of the event. */
  subject: string | ((message: Message) => string)
  /** The stream that `assert` creates. */
  stream?: string | undefined
  /** For one event, from its publication to its confirmation. Default: 10 000. */
  timeoutMs?: number | undefined
  /** Events on their way at a time. Events of one key go one after the other. Default: 100. */
  concurrency?: number | undefined
  /** What the sink is called in the outbox. Default: `nats:` and the subject. */
  name?: string | undefined
}

const COMMON = {
  url: checked((where, given: string | readonly string[]) => {
    const servers = typeof given === 'string' ? [given] : [...(given ?? [])]
    // The client takes any scheme, and speaks its own protocol all the same.
    const isServer = (one: unknown): boolean =>
      typeof one === 'string' && /^(nats:\/\/|tls:\/\/|(?!.*:\/\/))\S+$/i.test(one)
    if (servers.length > 0 && servers.every(isServer)) return servers
    throw invalid(`${where} must be text such as nats://localhost:4222, or a list of such`)
  }),
  connection: settings(),
  assert: optional(nested({ stream: optional(settings()), consumer: optional(settings()) }), 'nothing is made'),
}

/** Names of streams and consumers are words of subjects. */
const word = checked((where, given: string) => {
  if (typeof given === 'string' && /^[^\s.*>/\\\0]+$/.test(given)) return given
  throw invalid(`${where} must be a name without spaces, dots, slashes and wildcards; got ${show(given)}`)
})

export const SOURCE = {
  ...COMMON,
  ...READING<NatsMessage>(),
  stream: word,
  consumer: word,
  batch: integer({ least: 1, most: 10_000, fallback: 100 }),
  key: optional(callback<(raw: NatsMessage) => string | undefined>()),
}

export const SINK = {
  ...COMMON,
  ...WRITING,
  subject: checked((where, given: NatsSinkOptions['subject']) => {
    if (typeof given === 'string' || typeof given === 'function') return given
    throw invalid(`${where} must be text or a function; got ${show(given)}`)
  }),
  stream: optional(word),
  timeoutMs: integer({ least: 1, most: 3_600_000, fallback: 10_000 }),
  concurrency: integer({ least: 1, most: 10_000, fallback: 100 }),
  name: optional(name(), '`nats:` and the subject'),
}

export const SIDES: Sides = {
  takes: '{ url, stream, consumer } to receive, { url, subject } to publish, or all of them',
  ...{ source: SOURCE, receives: ['consumer'] },
  ...{ sink: SINK, publishes: ['subject'] },
}

export type ResolvedConnection = Resolved<typeof COMMON> & { readonly stream: string | undefined }
export type ResolvedSource = ReturnType<typeof resolveSource>
export type ResolvedSink = ReturnType<typeof resolveSink>

export function resolveSource(given: NatsSourceOptions) {
  return readAll('nats', given, SOURCE)
}

export function resolveSink(given: NatsSinkOptions) {
  const options = readAll('nats', given, SINK)
  checkWriting('nats', options)
  const { subject, stream, assert, name = typeof subject === 'string' ? `nats:${subject}` : 'nats' } = options
  if (assert?.stream && stream === undefined) throw invalid('nats: assert: stream needs the name of the stream')
  return { ...options, name, subjectOf: subjectOf(subject) }
}

function subjectOf(subject: NatsSinkOptions['subject']): (message: Message) => string {
  if (typeof subject === 'function') return (message) => checkSubject(subject(message))
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
      `nats: ${JSON.stringify(subject)} is no subject to publish on: words with a dot between them, no spaces or wildcards`,
    )
  }
  return subject
}
