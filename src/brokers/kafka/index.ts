/**
 * Kafka, with the client you have: kafkajs, or the `KafkaJS` namespace of Confluent's.
 *
 *     const client = new Kafka({ brokers: ['localhost:9092'] })
 *     box.from(kafka({ client, groupId: 'billing', topics: 'orders' }))
 *     box.to(kafka({ client, topic: 'invoices' }))
 *
 * With a `groupId` and `topics` it is a source, with a `topic` a sink, with all three it is both.
 */
import type { Sink } from '../sink.js'
import type { Source } from '../source.js'
import { sidesOf } from '../sides.js'
import { resolveSink, resolveSource, SIDES, type KafkaSinkOptions, type KafkaSourceOptions } from './options.js'
import { createSink } from './sink.js'
import { createSource } from './source.js'

export type { Codec } from '../codec.js'
export type {
  KafkaBatch,
  KafkaClient,
  KafkaConsumer,
  KafkaHeaders,
  KafkaMessage,
  KafkaProducer,
  KafkaRecord,
} from './client.js'
export type { ReceivedRecord } from './message.js'
export type { KafkaSinkOptions, KafkaSourceOptions } from './options.js'

export function kafka(options: KafkaSourceOptions & KafkaSinkOptions): Source & Sink
export function kafka(options: KafkaSourceOptions & { topic?: undefined }): Source
export function kafka(options: KafkaSinkOptions & { groupId?: undefined; topics?: undefined }): Sink
export function kafka(options: KafkaSourceOptions | KafkaSinkOptions): Source | Sink {
  const { isSource, isSink } = sidesOf('kafka', options, SIDES)
  return {
    ...(isSource && createSource(resolveSource(options as KafkaSourceOptions))),
    ...(isSink && createSink(resolveSink(options as KafkaSinkOptions))),
  } as Source | Sink
}
