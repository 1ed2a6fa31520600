/** A consumer of kafkajs. */
import type { Assigned, KafkaBatch, KafkaClient, KafkaConsumer } from './client.js'
import type { ConsumerEvents, ConsumerSettings } from './consumer.js'

/** The part of kafkajs that Confluent's client does not have, or only in name. */
interface KafkajsConsumer extends KafkaConsumer {
  readonly events: { readonly CRASH: string; readonly GROUP_JOIN: string }
  on(event: string, listener: (event: { payload?: KafkajsEvent }) => void): unknown
  pause(partitions: readonly Assigned[]): void
  paused(): readonly Assigned[]
  resume(partitions: readonly Assigned[]): void
}

interface KafkajsEvent {
  readonly error?: unknown
  readonly memberAssignment?: Readonly<Record<string, readonly number[]>>
}

interface KafkajsBatch {
  commitOffsetsIfNecessary(offsets: {
    topics: { topic: string; partitions: { partition: number; offset: string }[] }[]
  }): Promise<void>
}

/**
 * A lost broker is tried for a few seconds. After that we hear of it, say so, and go on trying ourselves. The long poll
 * is short, for kafkajs sends no heartbeat and does not stop while it lasts.
 */
const CONSUMER_RETRY = { initialRetryTime: 100, maxRetryTime: 1_000, retries: 5 }
const POLL_MS = 500

/** Connects, subscribes and joins the group; rejects if that fails. */
export async function openKafkajs(
  client: KafkaClient,
  settings: ConsumerSettings,
  events: ConsumerEvents,
): Promise<KafkaConsumer> {
  const { groupId, fromBeginning, concurrency } = settings
  const config = { maxWaitTimeInMs: POLL_MS, ...settings.consumer, groupId, retry: consumerRetry(settings) }
  const consumer = client.consumer(config) as KafkajsConsumer
  const hold = new Hold(consumer)
  const crash: { error?: unknown } = {}
  let begun = Promise.resolve()
  const run = {
    eachBatch: (payload: KafkaBatch) => events.eachBatch(hold.heeded(payload), (next) => commitBatch(payload, next)),
    eachBatchAutoResolve: false,
    partitionsConsumedConcurrently: concurrency,
    autoCommit: false,
  }
  try {
    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
      const assigned = assignedOf(payload)
      const join = (): Promise<void> => events.joined(assigned, (positions) => consumer.commitOffsets(positions))
      // With its first fetch it would go on where it wants to, and commit that over an offset that is gone.
      // When it is resumed it may be gone.
      begun = hold.during(assigned, join).catch(() => undefined)
    })
    consumer.on(consumer.events.CRASH, ({ payload }) => {
      crash.error = payload?.error ?? new Error('the consumer crashed')
      events.crashed(crash.error)
    })
    await consumer.connect()
    await consumer.subscribe({ topics: [...settings.topics], ...{ fromBeginning } })
    await consumer.run(run)
    await begun
  } catch (error) {
    await consumer.disconnect().catch(() => undefined)
    throw error
  }
  // One that could not join says so by an event alone.
  if (crash.error !== undefined) throw crash.error
  return consumer
}

function assignedOf({ memberAssignment = {} }: KafkajsEvent = {}): Assigned[] {
  return Object.entries(memberAssignment).map(([topic, partitions]) => ({ topic, partitions }))
}

/** Lets nothing be fetched of partitions while something is done; then of those that nobody else has paused. */
class Hold {
  readonly #consumer: KafkajsConsumer
  #held: Assigned[] = []
  #last = 0
  #isOn = false

  constructor(consumer: KafkajsConsumer) {
    this.#consumer = consumer
  }

  async during(assigned: readonly Assigned[], work: () => Promise<void>): Promise<void> {
    const own = ++this.#last
    this.#isOn = true
    const paused = new Map(this.#consumer.paused().map(({ topic, partitions }) => [topic, new Set(partitions)]))
    const free = assigned.map(({ topic, partitions }) => ({
      topic,
      partitions: partitions.filter((partition) => !paused.get(topic)?.has(partition)),
    }))
    this.#consumer.pause(free)
    this.#held.push(...free)
    await work()
    if (own !== this.#last) return
    this.#isOn = false
    this.#consumer.resume(this.#held.splice(0))
  }

  /** Whoever has paused a partition before, and resumes it meanwhile, does so with all the others. */
  heeded(payload: KafkaBatch): KafkaBatch {
    const { topic, partition } = payload.batch
    const pause = (): (() => void) => {
      const resume = payload.pause()
      return () => {
        if (this.#isOn) this.#held.push({ topic, partitions: [partition] })
        else resume()
      }
    }
    return { ...payload, pause }
  }
}

/** `commitOffsets` of kafkajs does nothing, and says nothing, once the consumer is being stopped. */
function commitBatch(payload: KafkaBatch, next: string): Promise<void> {
  const { topic, partition } = payload.batch
  const partitions = [{ partition, offset: next }]
  return (payload as KafkaBatch & KafkajsBatch).commitOffsetsIfNecessary({ topics: [{ topic, partitions }] })
}

/** It would restart after some errors and stay silent after others; we restart it after all of them. */
function consumerRetry({ consumer }: ConsumerSettings): object {
  return {
    ...CONSUMER_RETRY,
    ...(consumer['retry'] as object | undefined),
    restartOnFailure: () => Promise.resolve(false),
  }
}
