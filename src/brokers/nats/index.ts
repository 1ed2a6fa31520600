/**
 * NATS JetStream.
 *
 *     box.from(nats({ url, stream: 'shop', consumer: 'billing' }))
 *     box.to(nats({ url, subject: 'shop.>' }))
 *
 * With a `consumer` it is a source, with a `subject` a sink, with both both.
 */
import type { Sink } from '../sink.js'
import type { Source } from '../source.js'
import { sidesOf } from '../sides.js'
import { resolveSink, resolveSource, SIDES, type NatsSinkOptions, type NatsSourceOptions } from './options.js'
import { createSink } from './sink.js'
import { createSource } from './source.js'

export type { NatsHeaders, NatsMessage, NatsSinkOptions, NatsSourceOptions } from './options.js'

export function nats(options: NatsSourceOptions & NatsSinkOptions): Source & Sink
export function nats(options: NatsSourceOptions & { subject?: undefined }): Source
export function nats(options: NatsSinkOptions & { consumer?: undefined }): Sink
export function nats(options: Partial<NatsSourceOptions & NatsSinkOptions>): Source | Sink {
  const { isSource, isSink } = sidesOf('nats', options, SIDES)
  return {
    ...(isSource && createSource(resolveSource(options as NatsSourceOptions))),
    ...(isSink && createSink(resolveSink(options as NatsSinkOptions))),
  } as Source | Sink
}
