/** The options of Redis Streams, source or sink: type, default and check in one place, resolved once. */
import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { checkInteger, checkKnown, nameProblem } from '../../check-options.js'
import { OnceboxError } from '../../errors.js'
import type { Message } from '../../message.js'
import { checkEventOptions, type ReadOptions, type WriteOptions } from '../event.js'

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
  connection?: Readonly<Record<string, unknown>>
}

export interface RedisSourceOptions extends Common, ReadOptions<RedisEntry> {
  /** The key of the stream. */
  stream: string
  /** The consumer group. It is created if it is missing, and the stream with it. */
  group: string
  /** Where a group that is created begins: '0' for all that is in the stream, '$' for what comes. Default: '0'. */
  begin?: '0' | '$'
  /** The name in the group, unique for each process. Default: one that is removed when it is no longer used. */
  consumer?: string
  /** Entries that are handed to the box at a time. Default: 100. */
  batch?: number
  /** An entry that nobody has worked on for so long is taken over: its process has died. Default: 60 000. */
  minIdleMs?: number
  /** Deletes entries from the stream when they are acknowledged. Only if the group is the only one. Default: false. */
  remove?: boolean
}

export interface RedisSinkOptions extends Common, WriteOptions {
  /** The key of the stream that events go to, or a function of the event. */
  to: string | ((message: Message) => string)
  /** Trims the stream to about so many entries, whether they were consumed or not. Default: not at all. */
  maxLength?: number
  /** Trims what is older than that, whether it was consumed or not. Default: not at all. */
  maxAgeMs?: number
  /** For one event, from its publication to its confirmation. Default: 10 000. */
  timeoutMs?: number
  /** Events on their way at a time. Events of one key go one after the other. Default: 500. */
  concurrency?: number
  /** What the sink is called in the outbox. Default: `redis:` and the stream. */
  name?: string
}

export interface ResolvedConnection {
  readonly url: string
  readonly connection: Readonly<Record<string, unknown>>
}

export interface ResolvedSource extends ResolvedConnection {
  readonly stream: string
  readonly group: string
  readonly begin: '0' | '$'
  readonly consumer: string
  /** The name was made up here, so it is removed again. */
  readonly isOurs: boolean
  readonly batch: number
  readonly minIdleMs: number
  readonly remove: boolean
  readonly read: ReadOptions<RedisEntry>
}

export interface ResolvedSink extends ResolvedConnection {
  readonly streamOf: (message: Message) => string
  readonly maxLength: number | undefined
  readonly maxAgeMs: number | undefined
  readonly timeoutMs: number
  readonly concurrency: number
  readonly write: WriteOptions
  readonly name: string
}

/** Before the names of consumers that are made up here. */
export const OUR_PREFIX = 'oncebox:'

const COMMON_OPTIONS = ['url', 'connection', 'codec']
const SOURCE_OPTIONS = ['stream', 'group', 'consumer', 'begin', 'batch', 'minIdleMs', 'remove', 'source', 'type', 'map']
const SINK_OPTIONS = ['to', 'maxLength', 'maxAgeMs', 'timeoutMs', 'concurrency', 'mode', 'name']

/** `group` makes it a source, `to` a sink. */
export function checkOptions(given: object): { isSource: boolean; isSink: boolean } {
  if (typeof given !== 'object' || given === null) {
    throw invalid('takes options: { url, stream, group } to receive, { url, to } to publish')
  }
  const { group, to } = given as { group?: unknown; to?: unknown }
  const isSource = group !== undefined
  const isSink = to !== undefined
  if (!isSource && !isSink) throw invalid('needs a group (and its stream) to receive from, or a stream to publish to')
  const own = [...(isSource ? SOURCE_OPTIONS : ['group']), ...(isSink ? SINK_OPTIONS : ['to'])]
  checkKnown('redis', given, [...COMMON_OPTIONS, ...own])
  return { isSource, isSink }
}

export function resolveSource(given: RedisSourceOptions): ResolvedSource {
  const { source, type, codec, map, begin = '0', consumer } = given
  const read = { source, type, codec, map }
  checkEventOptions('redis', read)
  if (begin !== '0' && begin !== '$') throw invalid(`begin must be '0' or '$'`)
  return {
    ...resolveConnection(given),
    stream: checkName('stream', given.stream),
    group: checkName('group', given.group),
    begin,
    consumer: consumer === undefined ? makeUpName() : checkName('consumer', consumer),
    isOurs: consumer === undefined,
    batch: checkInteger('redis: batch', given.batch ?? 100, 1, 10_000),
    minIdleMs: checkInteger('redis: minIdleMs', given.minIdleMs ?? 60_000, 100, 86_400_000),
    remove: given.remove ?? false,
    read,
  }
}

export function resolveSink(given: RedisSinkOptions): ResolvedSink {
  const { mode, codec, to, maxLength, maxAgeMs } = given
  const write = { mode, codec }
  checkEventOptions('redis', write)
  if (maxLength !== undefined && maxAgeMs !== undefined) throw invalid('maxLength and maxAgeMs exclude each other')
  if (typeof to !== 'function') checkName('to', to)
  return {
    ...resolveConnection(given),
    streamOf: typeof to === 'function' ? (message) => checkName('to', to(message)) : () => to,
    maxLength: maxLength === undefined ? undefined : checkInteger('redis: maxLength', maxLength, 1),
    maxAgeMs: maxAgeMs === undefined ? undefined : checkInteger('redis: maxAgeMs', maxAgeMs, 1),
    timeoutMs: checkInteger('redis: timeoutMs', given.timeoutMs ?? 10_000, 1, 3_600_000),
    concurrency: checkInteger('redis: concurrency', given.concurrency ?? 500, 1, 10_000),
    write,
    name: checkName('name', given.name ?? (typeof to === 'string' ? `redis:${to}` : 'redis')),
  }
}

function resolveConnection({ url, connection = {} }: Common): ResolvedConnection {
  if (typeof url !== 'string' || !/^rediss?:\/\//.test(url)) {
    // It may hold a password, so it is not shown.
    throw invalid('url must be text such as redis://localhost:6379')
  }
  return { url, connection }
}

function makeUpName(): string {
  return `${OUR_PREFIX}${hostname()}:${process.pid}:${randomBytes(6).toString('base64url')}`
}

function checkName(option: string, value: unknown): string {
  const problem = nameProblem(value)
  if (problem) throw invalid(`${option} ${problem}`)
  return value as string
}

function invalid(what: string): OnceboxError {
  return new OnceboxError('OPTION_INVALID', `redis: ${what}`)
}
