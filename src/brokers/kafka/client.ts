/**
 * The client is the user's: kafkajs, or the `KafkaJS` namespace of Confluent's client, which has the same shape.
 *
 * Where they differ is all here, and in kafkajs.ts and confluent.ts. Confluent's takes its settings in a block called
 * `kafkaJS`, wants for a consumer or a producer what kafkajs wants for a call, has a callback instead of events (`on` and
 * `events` are there, and throw), keeps a lost connection to itself, calls a batch stale once its partition is paused, and
 * forgets what of a batch is resolved after it was given back.
 */
import { OnceboxError } from '../../errors.js'

/** `new Kafka({ … })` of kafkajs, or of `KafkaJS` in @confluentinc/kafka-javascript. */
export interface KafkaClient {
  consumer(config: object): KafkaConsumer
  producer(config: object): KafkaProducer
  /** Asked what the topics of a source have lost, if it is there. */
  admin?(): KafkaAdmin
}

export interface KafkaAdmin {
  connect(): Promise<void>
  disconnect(): Promise<void>
  listTopics(): Promise<string[]>
  fetchOffsets(of: {
    groupId: string
    topics: string[]
  }): Promise<{ topic: string; partitions: { partition: number; offset: string }[] }[]>
  fetchTopicOffsets(topic: string): Promise<{ partition: number; low: string; high: string }[]>
  describeConfigs?(of: {
    resources: { type: number; name: string; configNames?: string[] }[]
    includeSynonyms: boolean
  }): Promise<{ resources: { resourceName: string; configEntries: { configName: string; configValue: string }[] }[] }>
}

export interface KafkaConsumer {
  connect(): Promise<void>
  disconnect(): Promise<void>
  subscribe(subscription: { topics: (string | RegExp)[] }): Promise<void>
  run(config: { eachBatch: (payload: KafkaBatch) => Promise<void> }): Promise<void>
  commitOffsets(offsets: Position[]): Promise<void>
}

export interface Position {
  readonly topic: string
  readonly partition: number
  readonly offset: string
}

/** Of the partition. */
export function nameOf({ topic, partition }: Omit<Position, 'offset'>): string {
  return `${topic}:${partition}`
}

/** Partitions of a topic. */
export interface Assigned {
  readonly topic: string
  readonly partitions: readonly number[]
}

export interface KafkaProducer {
  connect(): Promise<void>
  disconnect(): Promise<void>
  sendBatch(batch: { topicMessages: { topic: string; messages: KafkaRecord[] }[] }): Promise<unknown>
}

/** What `eachBatch` is given: messages of one partition, in order. */
export interface KafkaBatch {
  readonly batch: {
    readonly topic: string
    readonly partition: number
    readonly messages: readonly KafkaMessage[]
    lastOffset(): string
  }
  resolveOffset(offset: string): void
  heartbeat(): Promise<void>
  pause(): () => void
  isRunning(): boolean
  isStale(): boolean
}

/** A message as the client hands it out. */
export interface KafkaMessage {
  readonly key: Buffer | string | null
  readonly value: Buffer | null
  readonly timestamp: string
  readonly offset: string
  readonly headers?: KafkaHeaders | undefined
}

/** A message as the client takes it. */
export interface KafkaRecord {
  key?: string
  value: Buffer
  headers: Record<string, string>
}

/** A header that was written twice has several values. */
export type KafkaHeaders = Readonly<Record<string, Buffer | string | (Buffer | string)[] | undefined>>

export interface ProducerSettings {
  readonly idempotent: boolean
  readonly timeoutMs: number
  readonly producer: Readonly<Record<string, unknown>>
}

/**
 * kafkajs must repeat nothing by itself. It deals the messages out to brokers anew, but does not ask a broker again that has
 * answered before: what has moved to that one is sent nowhere, and the call resolves. We repeat the request as a whole.
 */
const NO_RETRIES = { retries: 0 }

/** How long librdkafka hopes that a topic which is not there will be. It is 30 s by default, longer than we wait for it. */
const PROPAGATION = 'topic.metadata.propagation.max.ms'
const MISSING_MS = 1_000

export function checkClient(client: unknown): KafkaClient {
  const { consumer, producer } = (client ?? {}) as Partial<KafkaClient>
  if (typeof consumer === 'function' && typeof producer === 'function') return client as KafkaClient
  const advice = 'npm install kafkajs (or @confluentinc/kafka-javascript), and pass new Kafka({ … })'
  throw new OnceboxError('OPTION_INVALID', `kafka: client must have consumer() and producer(); ${advice}`)
}

export function createProducer(client: KafkaClient, settings: ProducerSettings): KafkaProducer {
  const { idempotent, timeoutMs } = settings
  // A second request on its way could overtake the first, when that is sent again.
  const own = { idempotent, maxInFlightRequests: 1 }
  if (isKafkajs(client)) {
    const retry = { ...(settings.producer['retry'] as object | undefined), ...NO_RETRIES }
    return client.producer({ ...settings.producer, ...own, retry })
  }
  const further = {
    timeout: timeoutMs,
    [PROPAGATION]: Math.min(MISSING_MS, Math.ceil(timeoutMs / 10)),
    ...settings.producer,
  }
  return client.producer(inBlock(further, { ...own, acks: -1 }))
}

export interface ForTopic {
  topic: string
  messages: KafkaRecord[]
}

/** All in-sync replicas have it when this resolves. */
export async function send(
  client: KafkaClient,
  producer: KafkaProducer,
  topicMessages: ForTopic[],
  timeoutMs: number,
): Promise<void> {
  if (isKafkajs(client)) await producer.sendBatch({ topicMessages, ...{ acks: -1, timeout: timeoutMs } })
  // It writes into what it is given, and would not take that a second time.
  else await producer.sendBatch({ topicMessages: topicMessages.map(copyOf) })
}

function copyOf({ topic, messages }: ForTopic): ForTopic {
  return { topic, messages: messages.map((message) => ({ ...message })) }
}

export function isKafkajs(client: KafkaClient): boolean {
  return typeof (client as { logger?: unknown }).logger === 'function'
}

/** Settings of librdkafka, which have dots in their names, go beside the block. */
export function inBlock(given: Readonly<Record<string, unknown>>, own: object): object {
  const beside = Object.entries(given).filter(([name]) => name.includes('.'))
  const within = Object.entries(given).filter(([name]) => !name.includes('.'))
  return { ...Object.fromEntries(beside), kafkaJS: { ...Object.fromEntries(within), ...own } }
}
