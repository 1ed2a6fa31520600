/** The options of Redis Streams, source or sink. */
import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { DAY_MS } from '../../figures.js'
import type { Message } from '../../message.js'
import {
  boolean, checked, integer, invalid, name, nameOr, oneOf, optional, readAll, settings, type Resolved,
} from '../../options.js' // prettier-ignore
import { checkWriting, READING, WRITING, type ReadOptions, type WriteOptions } from '../event.js'
import type { Sides } from '../sides.js'

/** An entry of a stream. */
export interface RedisEntry {
  readonly stream: string
  /** Its place in the stream, `<milliseconds>-<number>`. */
  readonly id: string
  readonly fields: Readonly<Record<string, Buffer | undefined>>
}

interface Common {
  /** `redis://user:password@host:port/database`, or `rediss:` for TLS. */
  url: string
  /** Given to `createClient` of the client: `username`, `password`, `socket`, … */
  connection?: Readonly<Record<string, unknown>> | undefined
}

export interface RedisSourceOptions extends Common, ReadOptions<RedisEntry> {
  /** The key of the stream. */
  stream: string
  /** The consumer group. It is created if it is missing, and the stream with it. */
  group: string
  /** Where a group that is created begins: '0' for all that is in the stream, '$' for what comes. Default: '0'. */
  begin?: '0' | '$' | undefined
  /** The name in the group, unique for each process. Default: one that is removed when it is no longer used. */
  consumer?: string | undefined
  /** Entries that are handed to the box at a time. Default: 100. */
  batch?: number | undefined
  /** An entry that nobody has worked on for so long is taken over: its process has died. Default: 60 000. */
  minIdleMs?: number | undefined
  /** Deletes entries from the stream when they are acknowledged. Only if the group is the only one. Default: false. */
  remove?: boolean | undefined
}

export interface RedisSinkOptions extends Common, WriteOptions {
  /** The key of the stream that events go to, or a function of the event. */
  to: string | ((message: Message) => string)
  /** Trims the stream to about so many entries, whether they were consumed or not. Default: not at all. */
  maxLength?: number | undefined
  /** Trims what is older than that, whether it was consumed or not. Default: not at all. */
  maxAgeMs?: number | undefined
  /** For one event, from its publication to its confirmation. Default: 10 000. */
  timeoutMs?: number | undefined
  /** Events on their way at a time. Events of one key go one after the other. Default: 500. */
  concurrency?: number | undefined
  /** What the sink is called in the outbox. Default: `redis:` and the stream. */
  name?: string | undefined
}

/** Before the names of consumers that are made up here. */
export const OUR_PREFIX = 'oncebox:'

const COMMON = {
  url: checked((where, given: string) => {
    // It may hold a password, so it is not shown.
    if (typeof given === 'string' && /^rediss?:\/\//.test(given)) return given
    throw invalid(`${where} must be text such as redis://localhost:6379`)
  }),
  connection: settings(),
}

export const SOURCE = {
  ...COMMON,
  ...READING<RedisEntry>(),
  stream: name(),
  group: name(),
  begin: oneOf(['0', '$'], '0'),
  consumer: optional(name(), 'a name made up'),
  batch: integer({ least: 1, most: 10_000, fallback: 100 }),
  minIdleMs: integer({ least: 100, most: DAY_MS, fallback: 60_000 }),
  remove: boolean(false),
}

export const SINK = {
  ...COMMON,
  ...WRITING,
  to: nameOr<(message: Message) => string>(),
  maxLength: optional(integer({ least: 1 })),
  maxAgeMs: optional(integer({ least: 1 })),
  timeoutMs: integer({ least: 1, most: 3_600_000, fallback: 10_000 }),
  concurrency: integer({ least: 1, most: 10_000, fallback: 500 }),
  name: optional(name(), '`redis:` and the stream'),
}

export const SIDES: Sides = {
  takes: '{ url, stream, group } to receive, { url, to } to publish, or all of them',
  ...{ source: SOURCE, receives: ['group'] },
  ...{ sink: SINK, publishes: ['to'] },
}

export type ResolvedConnection = Resolved<typeof COMMON>
export type ResolvedSource = ReturnType<typeof resolveSource>
export type ResolvedSink = ReturnType<typeof resolveSink>

export function resolveSource(given: RedisSourceOptions) {
  const options = readAll('redis', given, SOURCE)
  // A name that was made up here is removed again.
  return { ...options, consumer: options.consumer ?? makeUpName(), isOurs: options.consumer === undefined }
}

export function resolveSink(given: RedisSinkOptions) {
  const options = readAll('redis', given, SINK)
  checkWriting('redis', options)
  const { to, maxLength, maxAgeMs, name = typeof to === 'string' ? `redis:${to}` : 'redis' } = options
  if (maxLength !== undefined && maxAgeMs !== undefined) {
    throw invalid('redis: maxLength and maxAgeMs exclude each other')
  }
  const streamOf = (message: Message): string => (typeof to === 'function' ? STREAM.read('redis: to', to(message)) : to)
  return { ...options, name, streamOf }
}

const STREAM = name()

function makeUpName(): string {
  return `${OUR_PREFIX}${hostname()}:${process.pid}:${randomBytes(6).toString('base64url')}`
}
