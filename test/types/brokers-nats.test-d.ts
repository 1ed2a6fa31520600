/** NATS: the options decide whether it is a source, a sink or both. */
import type { JsMsg } from '@nats-io/jetstream'
import { describe, expectTypeOf, test } from 'vitest'
import type { Incoming, Message, Sink, Source } from 'oncebox'
import { nats, type NatsMessage } from 'oncebox/nats'

const url = 'nats://localhost:4222'

describe('nats', () => {
  test('is what its options say', () => {
    expectTypeOf(nats({ url, stream: 's', consumer: 'c' })).toEqualTypeOf<Source>()
    expectTypeOf(nats({ url: [url, url], subject: 's.>' })).toEqualTypeOf<Sink>()
    expectTypeOf(nats({ url, stream: 's', consumer: 'c', subject: 's.>' })).toEqualTypeOf<Source & Sink>()
  })

  test('hands out messages of the client, and of the box', () => {
    expectTypeOf<JsMsg>().toExtend<NatsMessage>()
    nats({
      url,
      stream: 's',
      consumer: 'c',
      key: (raw) => raw.headers?.get('k'),
      type: (raw) => raw.subject,
      map(raw, message) {
        expectTypeOf(raw).toEqualTypeOf<NatsMessage>()
        expectTypeOf(message).toEqualTypeOf<Incoming>()
        return { ...message, key: raw.subject }
      },
    })
    nats({
      url,
      subject(message) {
        expectTypeOf(message).toEqualTypeOf<Message>()
        return `shop.${message.type}`
      },
    })
  })

  test('takes the configuration of JetStream', () => {
    nats({ url, stream: 's', consumer: 'c', assert: { stream: { subjects: ['s.>'] }, consumer: { ack_wait: 60e9 } } })
    // @ts-expect-error there is nothing else to assert
    nats({ url, stream: 's', consumer: 'c', assert: { queue: {} } })
  })

  test('does not compile without what it needs, or with what it does not know', () => {
    // @ts-expect-error neither a source nor a sink
    nats({ url })
    // @ts-expect-error a consumer belongs to a stream
    nats({ url, consumer: 'c' })
    // @ts-expect-error there is no url
    nats({ subject: 's' })
    // @ts-expect-error an option of sources
    nats({ url, subject: 's', batch: 10 })
    // @ts-expect-error an option of sinks
    nats({ url, stream: 's', consumer: 'c', timeoutMs: 10 })
  })
})
