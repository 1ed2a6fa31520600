/**
 * RabbitMQ, with amqplib as its client.
 *
 *     box.from(rabbitmq({ url, queue: 'billing' }))
 *     box.to(rabbitmq({ url, exchange: 'events' }))
 *
 * With a `queue` it is a source, with an `exchange` a sink, with both it is both.
 */
import type { Sink } from '../sink.js'
import type { Source } from '../source.js'
import { sidesOf } from '../sides.js'
import { resolveSink, resolveSource, SIDES, type RabbitSinkOptions, type RabbitSourceOptions } from './options.js'
import { createSink } from './sink.js'
import { createSource } from './source.js'

export type { RabbitChannel, RabbitConfirmChannel, RabbitConnection, RabbitMessage } from './client.js'
export type { RabbitConnectOptions, RabbitSinkOptions, RabbitSourceOptions, Topology } from './options.js'
export type { RabbitError } from './sink.js'

export function rabbitmq(options: RabbitSourceOptions & RabbitSinkOptions): Source & Sink
export function rabbitmq(options: RabbitSourceOptions & { exchange?: undefined }): Source
export function rabbitmq(options: RabbitSinkOptions & { queue?: undefined }): Sink
export function rabbitmq(options: Partial<RabbitSourceOptions & RabbitSinkOptions>): Partial<Source & Sink> {
  const { isSource, isSink } = sidesOf('rabbitmq', options, SIDES)
  return {
    ...(isSource && createSource(resolveSource(options as RabbitSourceOptions))),
    ...(isSink && createSink(resolveSink(options as RabbitSinkOptions))),
  }
}
