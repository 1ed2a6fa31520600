/** What a source of RabbitMQ asks for when nobody says. */
import { expect, test } from 'vitest'
import { resolveSource } from '../../../src/brokers/rabbitmq/options.js'

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
