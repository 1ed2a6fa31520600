/** What a source of RabbitMQ asks for when nobody says. */
import { expect, test } from 'vitest'
import { resolveSource } from '../../../src/brokers/rabbitmq/options.js'
import { warningsOf } from '../../../src/brokers/rabbitmq/warnings.js'

test.each([
  [undefined, 512, 128],
  [1_024, 1_024, 256],
  [256, 256, 64],
  [100, 100, 64],
  [8, 8, 8],
])('of a prefetch of %s, %i messages are handed out, and %i go into one delivery', (given, prefetch, batch) => {
  const options = resolveSource({
    url: 'amqp://localhost',
    queue: 'q',
    ...(given !== undefined && { prefetch: given }),
  })
  expect({ prefetch: options.prefetch, batch: options.batch }).toEqual({ prefetch, batch })
})

test.each([
  ['that nobody names', 'amqp://localhost', undefined, 10_000],
  ['of an option, in whole seconds', 'amqp://localhost', 1_500, 2_000],
  ['of a URL', 'amqp://localhost?heartbeat=60', undefined, 60_000],
  ['of a URL, whatever the option says', 'amqp://localhost?heartbeat=60', 5_000, 60_000],
  ['of several URLs, the longest', ['amqp://a?heartbeat=20', 'amqp://b?heartbeat=60', 'amqp://c'], 5_000, 60_000],
])('a heartbeat %s is waited for when a connection is lost', (_, url, heartbeatMs, expected) => {
  const options = resolveSource({ url, queue: 'q', heartbeatMs })
  expect(options.heartbeatMs).toBe(expected)
  expect(warningsOf(options, undefined)).toEqual([])
})

test.each([
  ['by the option', 'amqp://localhost', 0],
  ['by a URL of several', ['amqp://a?heartbeat=0', 'amqp://b'], undefined],
])('a source without heartbeats %s warns of it', (_, url, heartbeatMs) => {
  const options = resolveSource({ url, queue: 'q', heartbeatMs })
  expect(warningsOf(options, undefined)).toEqual([expect.stringContaining('heartbeat')])
  // The broker notices a lost connection no sooner than with them.
  expect(options.heartbeatMs).toBe(10_000)
})
