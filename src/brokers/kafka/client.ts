/**
 * The client is the user's: kafkajs, or the `KafkaJS` namespace of Confluent's client, which has the same shape.
 *
 * Where they differ is all here. Confluent's takes its settings in a block called `kafkaJS`, wants for a consumer or a
 * producer what kafkajs wants for a call, has no events, and keeps a lost connection to itself.
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
  commitOffsets(offsets: { topic: string; partition: number; offset: string }[]): Promise<void>
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

/** The part of kafkajs that Confluent's client does not have. */
interface KafkajsConsumer {
  readonly events: { readonly CRASH: string; readonly GROUP_JOIN: string }
  on(event: string, listener: (event: { payload?: { error?: unknown } }) => void): unknown
}

interface KafkajsBatch {
  commitOffsetsIfNecessary(offsets: {
    topics: { topic: string; partitions: { partition: number; offset: string }[] }[]
  }): Promise<void>
}

export interface ConsumerSettings {
  readonly groupId: string
  readonly topics: readonly (string | RegExp)[]
  readonly fromBeginning: boolean
  readonly concurrency: number
  readonly consumer: Readonly<Record<string, unknown>>
}

export interface ConsumerEvents {
  /**
   * Messages of one partition. Everything before the offset that is committed must be done with. The client has other
   * partitions to see to, and should not be kept for longer than `patienceMs`.
   */
  eachBatch(payload: KafkaBatch, commit: (next: string) => Promise<void>, patienceMs: number): Promise<void>
  /** Partitions were assigned anew. */
  joined(): void
  /** The consumer has given up, and has disconnected. */
  crashed(error: unknown): void
}

export interface ProducerSettings {
  readonly idempotent: boolean
  readonly timeoutMs: number
  readonly producer: Readonly<Record<string, unknown>>
}

/**
 * A lost broker is tried for a few seconds. After that we hear of it, say so, and go on trying ourselves. The long poll
 * is short, for kafkajs sends no heartbeat and does not stop while it lasts.
 */
const CONSUMER_RETRY = { initialRetryTime: 100, maxRetryTime: 1_000, retries: 5 }
const POLL_MS = 500
/** How long kafkajs may be kept by a partition. Confluent's client sees to each by itself. */
const PATIENCE_MS = 100
/** The relay tries again, with a backoff of its own; this is for a partition that moved to another broker. */
const PRODUCER_RETRY = { initialRetryTime: 100, maxRetryTime: 1_000, retries: 2 }

export function checkClient(client: unknown): KafkaClient {
  const { consumer, producer } = (client ?? {}) as Partial<KafkaClient>
  if (typeof consumer === 'function' && typeof producer === 'function') return client as KafkaClient
  const advice = 'npm install kafkajs (or @confluentinc/kafka-javascript), and pass new Kafka({ … })'
  throw new OnceboxError('OPTION_INVALID', `kafka: client must have consumer() and producer(); ${advice}`)
}

/** Connects, subscribes and joins the group; rejects if that fails. */
export async function openConsumer(
  client: KafkaClient,
  settings: ConsumerSettings,
  events: ConsumerEvents,
): Promise<KafkaConsumer> {
  const { groupId, fromBeginning, concurrency } = settings
  const topics = [...settings.topics]
  const consumer = isKafkajs(client)
    ? client.consumer({ maxWaitTimeInMs: POLL_MS, ...settings.consumer, groupId, retry: consumerRetry(settings) })
    : client.consumer(inBlock(settings.consumer, { groupId, fromBeginning, autoCommit: false }))
  const run = {
    eachBatch: (payload: KafkaBatch) =>
      events.eachBatch(payload, (next) => commit(consumer, payload, next), isKafkajs(client) ? PATIENCE_MS : Infinity),
    eachBatchAutoResolve: false,
    partitionsConsumedConcurrently: concurrency,
  }
  const crash: { error?: unknown } = {}
  try {
    if (hasEvents(consumer)) {
      consumer.on(consumer.events.GROUP_JOIN, () => events.joined())
      consumer.on(consumer.events.CRASH, ({ payload }) => {
        crash.error = payload?.error ?? new Error('the consumer crashed')
        events.crashed(crash.error)
      })
    }
    await consumer.connect()
    await consumer.subscribe(isKafkajs(client) ? { topics, ...{ fromBeginning } } : { topics })
    await consumer.run(isKafkajs(client) ? { ...run, ...{ autoCommit: false } } : run)
  } catch (error) {
    await consumer.disconnect().catch(() => undefined)
    throw error
  }
  // A kafkajs consumer that could not join says so by an event alone.
  if (crash.error !== undefined) throw crash.error
  return consumer
}

async function commit(consumer: KafkaConsumer, payload: KafkaBatch, next: string): Promise<void> {
  const { topic, partition } = payload.batch
  if (!hasEvents(consumer)) return consumer.commitOffsets([{ topic, partition, offset: next }])
  // In kafkajs that does nothing, and says nothing, once the consumer is being stopped.
  const partitions = [{ partition, offset: next }]
  return (payload as KafkaBatch & KafkajsBatch).commitOffsetsIfNecessary({ topics: [{ topic, partitions }] })
}

export function createProducer(client: KafkaClient, settings: ProducerSettings): KafkaProducer {
  const { idempotent, timeoutMs } = settings
  // A second request on its way could overtake the first, when that is sent again.
  const own = { idempotent, maxInFlightRequests: 1 }
  if (isKafkajs(client)) {
    const retry = { ...PRODUCER_RETRY, ...(settings.producer['retry'] as object | undefined) }
    return client.producer({ ...settings.producer, ...own, retry })
  }
  return client.producer(inBlock({ timeout: timeoutMs, ...settings.producer }, { ...own, acks: -1 }))
}

/** All in-sync replicas have it when this resolves. */
export async function send(
  client: KafkaClient,
  producer: KafkaProducer,
  topicMessages: { topic: string; messages: KafkaRecord[] }[],
  timeoutMs: number,
): Promise<void> {
  const perCall = isKafkajs(client) ? { acks: -1, timeout: timeoutMs } : {}
  await producer.sendBatch({ topicMessages, ...perCall })
}

function isKafkajs(client: KafkaClient): boolean {
  return typeof (client as { logger?: unknown }).logger === 'function'
}

function hasEvents(consumer: KafkaConsumer): consumer is KafkaConsumer & KafkajsConsumer {
  return typeof (consumer as Partial<KafkajsConsumer>).on === 'function'
}

/** It would restart after some errors and stay silent after others; we restart it after all of them. */
function consumerRetry({ consumer }: ConsumerSettings): object {
  return {
    ...CONSUMER_RETRY,
    ...(consumer['retry'] as object | undefined),
    restartOnFailure: () => Promise.resolve(false),
  }
}

/** Settings of librdkafka, which have dots in their names, go beside the block. */
function inBlock(given: Readonly<Record<string, unknown>>, own: object): object {
  const beside = Object.entries(given).filter(([name]) => name.includes('.'))
  const within = Object.entries(given).filter(([name]) => !name.includes('.'))
  return { ...Object.fromEntries(beside), kafkaJS: { ...Object.fromEntries(within), ...own } }
}
