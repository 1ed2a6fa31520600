/** The options of Kafka, source or sink: type, default and check in one place, resolved once. */
import { checkInteger, checkKnown, nameProblem } from '../../check-options.js'
import { OnceboxError } from '../../errors.js'
import type { Message } from '../../message.js'
import type { Codec } from '../codec.js'
import { checkEventOptions, type ReadOptions, type WriteOptions } from '../event.js'
import { checkClient, type ConsumerSettings, type KafkaClient, type ProducerSettings } from './client.js'
import type { ReceivedRecord } from './message.js'

interface Common {
  /** `new Kafka({ … })` of kafkajs, or of `KafkaJS` in @confluentinc/kafka-javascript. */
  client: KafkaClient
  /** For bodies that are not JSON. */
  codec?: Codec
}

export interface KafkaSourceOptions extends Common, ReadOptions<ReceivedRecord> {
  /** The consumer group. All instances of a service share one, and share its partitions. */
  groupId: string
  /** What to read. */
  topics: string | RegExp | readonly (string | RegExp)[]
  /** Where a group without a committed offset begins, and one whose offset is gone. Default: true, or it would miss some. */
  fromBeginning?: boolean
  /** Messages of a partition that are delivered, and committed, together. Default: 100. */
  batch?: number
  /** Partitions at a time. Default: 4. */
  concurrency?: number
  /** Further settings of the client's consumer: `{ sessionTimeout: 60_000 }`. */
  consumer?: Readonly<Record<string, unknown>>
}

export interface KafkaSinkOptions extends Common, WriteOptions {
  /** Where to: a topic for all, or one for each event. */
  topic: string | ((message: Message) => string)
  /** Lets the broker drop what the client sends again after a lost answer. Default: false. */
  idempotent?: boolean
  /** For one call of `publish`. Default: 15 000. */
  timeoutMs?: number
  /** What the sink is called in the outbox. Default: `kafka:` and the topic. */
  name?: string
  /** Further settings of the client's producer: `{ allowAutoTopicCreation: false }`. */
  producer?: Readonly<Record<string, unknown>>
}

export interface ResolvedSource extends ConsumerSettings, ReadOptions<ReceivedRecord> {
  readonly client: KafkaClient
  readonly batch: number
}

export interface ResolvedSink extends ProducerSettings, WriteOptions {
  readonly client: KafkaClient
  readonly topic: KafkaSinkOptions['topic']
  readonly name: string
}

const DAY = 86_400_000
const COMMON = ['client', 'codec']
const SOURCE = ['groupId', 'topics', 'fromBeginning', 'batch', 'concurrency', 'consumer', 'source', 'type', 'map']
const SINK = ['topic', 'mode', 'idempotent', 'timeoutMs', 'name', 'producer']

export function checkOptions(given: object): void {
  const isSource = 'groupId' in given || 'topics' in given
  const isSink = 'topic' in given
  if (!isSource && !isSink) throw invalid('give { groupId, topics } to receive, { topic } to send, or all three')
  const what =
    isSource && isSink
      ? 'kafka'
      : isSource
        ? 'kafka without a topic, which is a source,'
        : 'kafka with a topic alone, which is a sink,'
  checkKnown(what, given, [...COMMON, ...(isSource ? SOURCE : []), ...(isSink ? SINK : [])])
}

export function resolveSource(given: KafkaSourceOptions): ResolvedSource {
  const { source, type, codec, map } = given
  const read = { ...(source !== undefined && { source }), ...(type !== undefined && { type }) }
  const options = { ...read, ...(codec !== undefined && { codec }), ...(map !== undefined && { map }) }
  checkEventOptions('kafka', options)
  return {
    ...options,
    client: checkClient(given.client),
    groupId: checkName('groupId', given.groupId),
    topics: checkTopics(given.topics),
    fromBeginning: checkBoolean('fromBeginning', given.fromBeginning ?? true),
    batch: checkInteger('kafka: batch', given.batch ?? 100, 1, 10_000),
    concurrency: checkInteger('kafka: concurrency', given.concurrency ?? 4, 1, 1_000),
    consumer: checkSettings('consumer', given.consumer, ['groupId', 'fromBeginning', 'autoCommit', 'kafkaJS']),
  }
}

export function resolveSink(given: KafkaSinkOptions): ResolvedSink {
  const { mode, codec } = given
  const options = { ...(mode !== undefined && { mode }), ...(codec !== undefined && { codec }) }
  checkEventOptions('kafka', options)
  return {
    ...options,
    client: checkClient(given.client),
    topic: typeof given.topic === 'function' ? given.topic : checkName('topic', given.topic),
    idempotent: checkBoolean('idempotent', given.idempotent ?? false),
    timeoutMs: checkInteger('kafka: timeoutMs', given.timeoutMs ?? 15_000, 1, DAY),
    name: checkName('name', given.name ?? (typeof given.topic === 'string' ? `kafka:${given.topic}` : 'kafka')),
    producer: checkSettings('producer', given.producer, ['idempotent', 'maxInFlightRequests', 'acks', 'kafkaJS']),
  }
}

function checkTopics(topics: unknown): readonly (string | RegExp)[] {
  const list: readonly unknown[] = Array.isArray(topics) ? topics : [topics]
  if (list.length === 0) throw invalid('topics is an empty list')
  return list.map((topic) => (topic instanceof RegExp ? topic : checkName('topics', topic)))
}

function checkName(option: string, value: unknown): string {
  const problem = nameProblem(value)
  if (problem) throw invalid(`${option} ${problem}`)
  return value as string
}

function checkBoolean(option: string, value: unknown): boolean {
  if (typeof value !== 'boolean') throw invalid(`${option} must be true or false; got ${String(value)}`)
  return value
}

function checkSettings(
  option: string,
  given: Readonly<Record<string, unknown>> = {},
  ours: readonly string[],
): Readonly<Record<string, unknown>> {
  if (typeof given !== 'object' || given === null) throw invalid(`${option} must be an object of settings`)
  const taken = ours.find((name) => name in given)
  if (taken) throw invalid(`${option}: ${taken} is set by oncebox; see the options beside it`)
  return given
}

function invalid(what: string): OnceboxError {
  return new OnceboxError('OPTION_INVALID', `kafka: ${what}`)
}
