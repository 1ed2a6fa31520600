/** What logs and `health()` call the sources of the package. */
import { expect, test } from 'vitest'
import { kafka, type KafkaClient } from 'oncebox/kafka'
import { nats } from 'oncebox/nats'
import { rabbitmq } from 'oncebox/rabbitmq'
import { redis } from 'oncebox/redis'
import { sqs } from 'oncebox/sqs'

const client = { consumer: () => undefined, producer: () => undefined } as unknown as KafkaClient
const url = 'amqp://user:secret@localhost'

test.each([
  ['rabbitmq:billing', rabbitmq({ url, queue: 'billing' })],
  ['nats:shop/billing', nats({ url: 'nats://localhost', stream: 'shop', consumer: 'billing' })],
  ['redis:orders/billing', redis({ url: 'redis://localhost', stream: 'orders', group: 'billing' })],
  ['kafka:orders,/^returns/', kafka({ client, groupId: 'billing', topics: ['orders', /^returns/] })],
  ['sqs:orders', sqs({ queueUrl: 'https://sqs.eu-west-1.amazonaws.com/123456789012/orders' })],
])('a source is called after what it reads: %s', (name, source) => {
  expect(source.name).toBe(name)
})

test('what is a sink as well has the name of the sink, by which the outbox knows it', () => {
  expect(rabbitmq({ url, queue: 'billing', exchange: 'events' })).toMatchObject({ name: 'rabbitmq:events' })
})
