/**
 * kafkajs in the shape of Confluent's client, which cannot be installed everywhere: settings in a block, per consumer and
 * producer instead of per call, no events, no logger, a `commitOffsetsIfNecessary` without arguments. What Confluent's
 * refuses is refused here. It shows that the adapter speaks that dialect, and nothing about Confluent's client itself.
 */
import assert from 'node:assert/strict'
import type { ConsumerConfig, ConsumerRunConfig, EachBatchPayload, Kafka, ProducerConfig } from 'kafkajs'
import type { KafkaClient } from 'oncebox/kafka'

interface Block {
  kafkaJS: ConsumerConfig & ProducerConfig & { fromBeginning?: boolean; autoCommit?: boolean; acks?: number }
}

export function inConfluentShape(client: Kafka): KafkaClient {
  return {
    consumer(config) {
      const { fromBeginning, autoCommit, ...settings } = blockOf(config)
      const consumer = client.consumer(settings)
      return {
        connect: () => consumer.connect(),
        disconnect: () => consumer.disconnect(),
        subscribe(subscription: object & { topics: (string | RegExp)[] }) {
          assert.ok(!('fromBeginning' in subscription))
          return consumer.subscribe({ ...subscription, fromBeginning: fromBeginning ?? false })
        },
        run(given: object) {
          assert.ok(!('autoCommit' in given))
          const { eachBatch, ...rest } = given as ConsumerRunConfig
          const plain = ({ commitOffsetsIfNecessary: _, ...payload }: EachBatchPayload) =>
            eachBatch!(payload as EachBatchPayload)
          return consumer.run({ ...rest, autoCommit: autoCommit ?? true, eachBatch: plain })
        },
        commitOffsets: (offsets) => consumer.commitOffsets(offsets),
      }
    },
    producer(config) {
      const { acks, ...settings } = blockOf(config)
      assert.equal(acks, -1)
      const producer = client.producer(settings)
      return {
        connect: () => producer.connect(),
        disconnect: () => producer.disconnect(),
        sendBatch(batch: object) {
          assert.deepEqual(Object.keys(batch), ['topicMessages'])
          return producer.sendBatch(batch)
        },
      }
    },
  }
}

/** Anything beside the block that is no setting of librdkafka is an error. */
function blockOf(config: object): Block['kafkaJS'] {
  const { kafkaJS, ...beside } = config as Block
  assert.ok(kafkaJS)
  assert.ok(Object.keys(beside).every((name) => name.includes('.')))
  return kafkaJS
}
