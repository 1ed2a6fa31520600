/** RabbitMQ: the options decide whether it is a source, a sink or both. */
import { connect } from 'amqplib'
import { describe, expectTypeOf, test } from 'vitest'
import type { Incoming, Message, Sink, Source } from 'oncebox'
import { rabbitmq, type RabbitMessage } from 'oncebox/rabbitmq'

const url = 'amqp://localhost'

describe('rabbitmq', () => {
  test('is what its options say', () => {
    expectTypeOf(rabbitmq({ url, queue: 'q' })).toEqualTypeOf<Source>()
    expectTypeOf(rabbitmq({ url: [url, url], exchange: 'e' })).toEqualTypeOf<Sink>()
    expectTypeOf(rabbitmq({ url, queue: 'q', exchange: 'e' })).toEqualTypeOf<Source & Sink>()
  })

  test('hands out messages of the client, and of the box', () => {
    rabbitmq({
      url,
      queue: 'q',
      type: ({ fields }) => fields.routingKey,
      map(raw, message) {
        expectTypeOf(raw).toEqualTypeOf<RabbitMessage>()
        expectTypeOf(message).toEqualTypeOf<Incoming>()
        return { ...message, key: raw.fields.routingKey }
      },
    })
    rabbitmq({
      url,
      exchange: 'e',
      routingKey(message) {
        expectTypeOf(message).toEqualTypeOf<Message>()
        return message.type
      },
    })
  })

  test('takes the connection of amqplib', () => {
    rabbitmq({ url, queue: 'q', connect: (node) => connect(node, { timeout: 1_000 }) })
    // @ts-expect-error no connection
    rabbitmq({ url, queue: 'q', connect: () => Promise.resolve({}) })
  })

  test('does not compile without what it needs, or with what it does not know', () => {
    // @ts-expect-error neither a source nor a sink
    rabbitmq({ url })
    // @ts-expect-error there is no url
    rabbitmq({ queue: 'q' })
    // @ts-expect-error an option of sinks
    rabbitmq({ url, queue: 'q', routingKey: 'k' })
    // @ts-expect-error an option of sources
    rabbitmq({ url, exchange: 'e', prefetch: 1 })
    // @ts-expect-error there is no such type of queue
    rabbitmq({ url, queue: 'q', assert: { type: 'mirrored' } })
  })
})
