/** A consumer of Confluent's client. */
import { inBlock, type KafkaBatch, type KafkaClient, type KafkaConsumer, type Position } from './client.js'
import type { ConsumerEvents, ConsumerSettings } from './consumer.js'

/** The part of Confluent's client that is called otherwise in kafkajs. */
interface ConfluentConsumer extends KafkaConsumer {
  seek(to: Position): void
}

/** What librdkafka calls its callback with when partitions come; else they go. */
const ASSIGN_PARTITIONS = -175

/** Connects and subscribes; rejects if that fails. It joins the group by itself, later. */
export async function openConfluent(
  client: KafkaClient,
  settings: ConsumerSettings,
  events: ConsumerEvents,
): Promise<KafkaConsumer> {
  const { groupId, fromBeginning, concurrency } = settings
  const commit = (positions: Position[]): Promise<void> =>
    consumer.commitOffsets(positions).catch((error: unknown) => {
      // It joins again by itself, and by the code of the error it would be told to.
      throw new Error(`kafka: ${(error as Error).message}`)
    })
  /** Nothing is read of what is assigned before this has resolved. */
  const rebalance = async (
    what: { code?: unknown },
    of: readonly { topic: string; partition: number }[],
  ): Promise<void> => {
    if (what.code !== ASSIGN_PARTITIONS) return events.left()
    const assigned = of.map(({ topic, partition }) => ({ topic, partitions: [partition] }))
    return events.joined(assigned, commit)
  }
  const consumer = client.consumer({
    ...inBlock(settings.consumer, { groupId, fromBeginning, autoCommit: false }),
    rebalance_cb: rebalance,
  }) as ConfluentConsumer
  const eachBatch = async (payload: KafkaBatch): Promise<void> => {
    const { topic, partition } = payload.batch
    let givenBack = false
    const resolveOffset = (offset: string): void => {
      if (givenBack) consumer.seek({ topic, partition, offset: String(BigInt(offset) + 1n) })
      else payload.resolveOffset(offset)
    }
    try {
      await events.eachBatch({ ...payload, resolveOffset, isStale: () => false }, (next) =>
        commit([{ topic, partition, offset: next }]),
      )
    } finally {
      givenBack = true
    }
  }
  try {
    await consumer.connect()
    await consumer.subscribe({ topics: [...settings.topics] })
    const run = { eachBatch, eachBatchAutoResolve: false, partitionsConsumedConcurrently: concurrency }
    await consumer.run(run)
  } catch (error) {
    await consumer.disconnect().catch(() => undefined)
    throw error
  }
  return consumer
}
