/** The options of Kafka, source or sink. */
import { DAY_MS } from '../../figures.js'
import type { Message } from '../../message.js'
import { boolean, checked, integer, invalid, name, nameOr, optional, readAll, settings } from '../../options.js'
import type { Codec } from '../codec.js'
import { checkWriting, READING, WRITING, type ReadOptions, type WriteOptions } from '../event.js'
import type { Sides } from '../sides.js'
import { checkClient, isKafkajs, type KafkaClient } from './client.js'
import type { ReceivedRecord } from './message.js'

interface Common {
  /** `new Kafka({ … })` of kafkajs, or of `KafkaJS` in @confluentinc/kafka-javascript. */
  client: KafkaClient
  /** For bodies that are not JSON. */
  codec?: Codec | undefined
}

export interface KafkaSourceOptions extends Common, ReadOptions<ReceivedRecord> {
  /** The consumer group. All instances of a service share one, and share its partitions. */
  groupId: string
  /** What to read. */
  topics: string | RegExp | readonly (string | RegExp)[]
  /** Where a group without a committed offset begins, and one whose offset is gone. Default: true, or it would miss some. */
  fromBeginning?: boolean | undefined
  /** Messages of a partition that are delivered, and committed, together. Default: 100. */
  batch?: number | undefined
  /** Partitions at a time. Default: 4. */
  concurrency?: number | undefined
  /** Further settings of the client's consumer: `{ sessionTimeout: 60_000 }`. */
  consumer?: Readonly<Record<string, unknown>> | undefined
}

export interface KafkaSinkOptions extends Common, WriteOptions {
  /** Where to: a topic for all, or one for each event. */
  topic: string | ((message: Message) => string)
  /** Lets the broker drop what the client sends again after a lost answer; not with kafkajs. Default: false. */
  idempotent?: boolean | undefined
  /** For one call of `publish`. Default: 15 000. */
  timeoutMs?: number | undefined
  /** What the sink is called in the outbox. Default: `kafka:` and the topic. */
  name?: string | undefined
  /** Further settings of the client's producer: `{ allowAutoTopicCreation: false }`. */
  producer?: Readonly<Record<string, unknown>> | undefined
}

const COMMON = { client: checked((_, given: KafkaClient) => checkClient(given)) }

export const SOURCE = {
  ...COMMON,
  ...READING<ReceivedRecord>(),
  groupId: name(),
  topics: checked((where, given: KafkaSourceOptions['topics']): readonly (string | RegExp)[] => {
    const list: readonly (string | RegExp)[] = Array.isArray(given) ? given : [given as string]
    if (list.length === 0) throw invalid(`${where} is an empty list`)
    return list.map((topic) => (topic instanceof RegExp ? topic : name().read(where, topic)))
  }),
  fromBeginning: boolean(true),
  batch: integer({ least: 1, most: 10_000, fallback: 100 }),
  concurrency: integer({ least: 1, most: 1_000, fallback: 4 }),
  consumer: settings(['groupId', 'fromBeginning', 'autoCommit', 'kafkaJS']),
}

export const SINK = {
  ...COMMON,
  ...WRITING,
  topic: nameOr<(message: Message) => string>(),
  idempotent: boolean(false),
  timeoutMs: integer({ least: 1, most: DAY_MS, fallback: 15_000 }),
  name: optional(name(), '`kafka:` and the topic'),
  producer: settings(['idempotent', 'maxInFlightRequests', 'acks', 'kafkaJS']),
}

export const SIDES: Sides = {
  takes: '{ client, groupId, topics } to receive, { client, topic } to send, or all of them',
  ...{ source: SOURCE, receives: ['groupId', 'topics'] },
  ...{ sink: SINK, publishes: ['topic'] },
}

export type ResolvedSource = ReturnType<typeof resolveSource>
export type ResolvedSink = ReturnType<typeof resolveSink>

export function resolveSource(given: KafkaSourceOptions) {
  return readAll('kafka', given, SOURCE)
}

export function resolveSink(given: KafkaSinkOptions) {
  const options = readAll('kafka', given, SINK)
  checkWriting('kafka', options)
  // It wants to repeat requests by itself then, and loses messages when it does.
  if (options.idempotent && isKafkajs(options.client)) {
    const advice = 'leave it out, for the inbox drops copies, or use the client of Confluent'
    throw invalid(`kafka: idempotent is not safe with kafkajs, which loses messages when it sends again: ${advice}`)
  }
  const { topic, name = typeof topic === 'string' ? `kafka:${topic}` : 'kafka' } = options
  return { ...options, name }
}
