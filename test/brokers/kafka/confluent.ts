/**
 * kafkajs in the shape of Confluent's client, which cannot be installed everywhere: settings in a block, per consumer and
 * producer instead of per call, events that throw and a callback for rebalances, no logger, a `commitOffsetsIfNecessary`
 * without arguments, a pause that makes the batch stale, and a seek back to what was not resolved when a batch was given
 * back. What Confluent's refuses is refused here. It shows that the adapter speaks that dialect, and nothing about
 * Confluent's client itself.
 */
import assert from 'node:assert/strict'
import type {
  ConsumerConfig,
  ConsumerRunConfig,
  EachBatchPayload,
  Kafka,
  Message,
  ProducerConfig,
  TopicMessages,
  TopicPartitionOffset,
} from 'kafkajs'
import type { KafkaClient } from 'oncebox/kafka'

interface Block {
  kafkaJS: ConsumerConfig & ProducerConfig & { fromBeginning?: boolean; autoCommit?: boolean; acks?: number }
}

type Rebalance = (what: { code: number }, of: { topic: string; partition: number }[]) => Promise<void>
type EachBatch = NonNullable<ConsumerRunConfig['eachBatch']>

const ASSIGN_PARTITIONS = -175
/** Of the protocol, and of librdkafka. */
const UNKNOWN_TOPIC = 3
const LOCAL_UNKNOWN_TOPIC = -188

function notImplemented(): never {
  throw new Error('Not implemented')
}

async function giveOut(
  { commitOffsetsIfNecessary: _, ...payload }: EachBatchPayload,
  eachBatch: EachBatch,
  seek: (to: TopicPartitionOffset) => void,
): Promise<void> {
  const { topic, partition, messages } = payload.batch
  const lastOffset = messages.at(-1)!.offset
  let isStale = false
  let next = messages[0]!.offset
  const own = {
    ...payload,
    isStale: () => isStale,
    pause() {
      isStale = true
      return payload.pause()
    },
    resolveOffset(offset: string) {
      next = String(BigInt(offset) + 1n)
      payload.resolveOffset(offset)
    },
  }
  await eachBatch(own as EachBatchPayload).catch(() => undefined)
  if (BigInt(next) <= BigInt(lastOffset)) seek({ topic, partition, offset: next })
}

export function inConfluentShape(client: Kafka): KafkaClient {
  return {
    consumer(config) {
      const { fromBeginning, autoCommit, ...settings } = blockOf(config)
      const { rebalance_cb: rebalance } = config as { rebalance_cb?: Rebalance }
      const consumer = client.consumer(settings)
      consumer.on(consumer.events.GROUP_JOIN, ({ payload: { memberAssignment } }) => {
        const assigned = Object.entries(memberAssignment).flatMap(([topic, partitions]) =>
          partitions.map((partition) => ({ topic, partition })),
        )
        void rebalance?.({ code: ASSIGN_PARTITIONS }, assigned)
      })
      const shape = {
        connect: () => consumer.connect(),
        disconnect: () => consumer.disconnect(),
        subscribe(subscription: object & { topics: (string | RegExp)[] }) {
          assert.ok(!('fromBeginning' in subscription))
          return consumer.subscribe({ ...subscription, fromBeginning: fromBeginning ?? false })
        },
        run(given: object) {
          assert.ok(!('autoCommit' in given))
          const { eachBatch, ...rest } = given as ConsumerRunConfig
          const seek = (to: TopicPartitionOffset): void => consumer.seek(to)
          return consumer.run({
            ...rest,
            autoCommit: autoCommit ?? true,
            eachBatch: (payload) => giveOut(payload, eachBatch!, seek),
          })
        },
        commitOffsets: (offsets: TopicPartitionOffset[]) => consumer.commitOffsets(offsets),
        seek: (to: TopicPartitionOffset) => consumer.seek(to),
        on: notImplemented,
        get events() {
          return notImplemented()
        },
      }
      return shape
    },
    producer(config) {
      const { acks, ...settings } = blockOf(config)
      assert.equal(acks, -1)
      const producer = client.producer(settings)
      return {
        connect: () => producer.connect(),
        disconnect: () => producer.disconnect(),
        async sendBatch(batch: { topicMessages: TopicMessages[] }) {
          assert.deepEqual(Object.keys(batch), ['topicMessages'])
          const copies = batch.topicMessages.map(({ topic, messages }) => ({ topic, messages: messages.map(written) }))
          return producer
            .sendBatch({ topicMessages: copies })
            .catch((error: { code?: unknown; cause?: { code?: unknown } }) => {
              const isMissing = [error.code, error.cause?.code].includes(UNKNOWN_TOPIC)
              throw isMissing ? Object.assign(new Error('Local: Unknown topic'), { code: LOCAL_UNKNOWN_TOPIC }) : error
            })
        },
      }
    },
  }
}

/** Confluent's writes its own form of the headers into what it is given, and does not take that form. */
function written(message: Message): Message {
  const copy = { ...message }
  const headers = Object.entries(message.headers ?? {})
  for (const [, value] of headers) {
    if (typeof value !== 'string' && !Buffer.isBuffer(value)) throw new Error('Header value must be a string or buffer')
  }
  Object.assign(message, { headers: headers.map(([name, value]) => ({ [name]: value })) })
  return copy
}

/** Anything beside the block that is no setting of librdkafka is an error. */
function blockOf(config: object): Block['kafkaJS'] {
  const { kafkaJS, ...beside } = config as Block
  assert.ok(kafkaJS)
  assert.ok(Object.keys(beside).every((name) => name.includes('.') || name === 'rebalance_cb'))
  return kafkaJS
}
