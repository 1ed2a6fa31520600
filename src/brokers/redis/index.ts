/**
 * Redis Streams.
 *
 *     box.from(redis({ url, stream: 'orders', group: 'billing' }))
 *     box.to(redis({ url, to: 'orders' }))
 *
 * With a `group` it is a source, with `to` a sink, with both both.
 */
import type { Sink } from '../sink.js'
import type { Source } from '../source.js'
import { sidesOf } from '../sides.js'
import { resolveSink, resolveSource, SIDES, type RedisSinkOptions, type RedisSourceOptions } from './options.js'
import { createSink } from './sink.js'
import { createSource } from './source.js'

export type { RedisEntry, RedisSinkOptions, RedisSourceOptions } from './options.js'

export function redis(options: RedisSourceOptions & RedisSinkOptions): Source & Sink
export function redis(options: RedisSourceOptions & { to?: undefined }): Source
export function redis(options: RedisSinkOptions & { group?: undefined }): Sink
export function redis(options: Partial<RedisSourceOptions & RedisSinkOptions>): Source | Sink {
  const { isSource, isSink } = sidesOf('redis', options, SIDES)
  return {
    ...(isSource && createSource(resolveSource(options as RedisSourceOptions))),
    ...(isSink && createSink(resolveSink(options as RedisSinkOptions))),
  } as Source | Sink
}
