/** Kafka: the options decide whether it is a source, a sink or both, and clients of two makes fit. */
import type { Kafka } from 'kafkajs'
import { describe, expectTypeOf, test } from 'vitest'
import type { Incoming, Message, Sink, Source } from 'oncebox'
import { kafka, type KafkaClient, type ReceivedRecord } from 'oncebox/kafka'

declare const client: Kafka

describe('kafka', () => {
  test('is what its options say', () => {
    expectTypeOf(kafka({ client, groupId: 'g', topics: ['t', /^u/] })).toEqualTypeOf<Source>()
    expectTypeOf(kafka({ client, topic: 't' })).toEqualTypeOf<Sink>()
    expectTypeOf(kafka({ client, groupId: 'g', topics: 't', topic: 't' })).toEqualTypeOf<Source & Sink>()
  })

  test('takes a client of kafkajs, and one of Confluent', () => {
    expectTypeOf<Kafka>().toExtend<KafkaClient>()
    expectTypeOf<Confluent>().toExtend<KafkaClient>()
  })

  test('hands out records of the client, and messages of the box', () => {
    kafka({
      client,
      groupId: 'g',
      topics: 't',
      type: ({ topic }) => topic,
      map(record, message) {
        expectTypeOf(record).toEqualTypeOf<ReceivedRecord>()
        expectTypeOf(record.message.value).toEqualTypeOf<Buffer | null>()
        expectTypeOf(message).toEqualTypeOf<Incoming>()
        return { ...message, id: record.message.offset }
      },
    })
    kafka({
      client,
      topic(message) {
        expectTypeOf(message).toEqualTypeOf<Message>()
        return message.type
      },
    })
  })

  test('does not compile without what it needs, or with what it does not know', () => {
    // @ts-expect-error neither a source nor a sink
    kafka({ client })
    // @ts-expect-error a group reads topics
    kafka({ client, groupId: 'g' })
    // @ts-expect-error topics are read by a group
    kafka({ client, topics: 't' })
    // @ts-expect-error there is no client
    kafka({ topic: 't' })
    // @ts-expect-error a client, not its configuration
    kafka({ client: { brokers: ['localhost:9092'] }, topic: 't' })
    // @ts-expect-error an option of sources
    kafka({ client, topic: 't', batch: 10 })
    // @ts-expect-error an option of sinks
    kafka({ client, groupId: 'g', topics: 't', idempotent: true })
  })
})

/** The types of `KafkaJS.Kafka` in @confluentinc/kafka-javascript 1, as far as they matter here. */
declare class Confluent {
  constructor(config?: { kafkaJS?: { brokers: string[] } })
  producer(config?: { kafkaJS?: { idempotent?: boolean; acks?: number } }): {
    connect(): Promise<void>
    disconnect(): Promise<void>
    sendBatch(batch: { topicMessages?: { topic: string; messages: ConfluentMessage[] }[] }): Promise<object[]>
  }
  consumer(config: { kafkaJS?: { groupId: string; fromBeginning?: boolean; autoCommit?: boolean } }): {
    connect(): Promise<void>
    disconnect(): Promise<void>
    subscribe(
      subscription: { topics: (string | RegExp)[]; replace?: boolean } | { topic: string | RegExp; replace?: boolean },
    ): Promise<void>
    run(config?: {
      eachBatchAutoResolve?: boolean
      partitionsConsumedConcurrently?: number
      eachBatch?: (payload: ConfluentBatch) => Promise<void>
    }): Promise<void>
    commitOffsets(
      offsets?: { topic: string; partition: number; offset: string; metadata?: string | null }[],
    ): Promise<void>
  }
}

type ConfluentHeaders = Record<string, Buffer | string | (Buffer | string)[] | undefined>

interface ConfluentMessage {
  key?: Buffer | string | null
  value: Buffer | string | null
  partition?: number
  headers?: ConfluentHeaders
  timestamp?: string
}

interface ConfluentBatch {
  batch: {
    topic: string
    partition: number
    highWatermark: string
    messages: {
      key: Buffer | null
      value: Buffer | null
      timestamp: string
      attributes: number
      offset: string
      headers?: ConfluentHeaders
    }[]
    lastOffset(): string
  }
  resolveOffset(offset: string): void
  heartbeat(): Promise<void>
  pause(): () => void
  commitOffsetsIfNecessary(): Promise<void>
  isRunning(): boolean
  isStale(): boolean
}
