/** Redis: the options decide whether it is a source, a sink or both. */
import { describe, expectTypeOf, test } from 'vitest'
import type { Incoming, Message, Sink, Source } from 'oncebox'
import { redis, type RedisEntry } from 'oncebox/redis'

const url = 'redis://localhost:6379'

describe('redis', () => {
  test('is what its options say', () => {
    expectTypeOf(redis({ url, stream: 's', group: 'g' })).toEqualTypeOf<Source>()
    expectTypeOf(redis({ url, to: 's' })).toEqualTypeOf<Sink>()
    expectTypeOf(redis({ url, stream: 's', group: 'g', to: 't' })).toEqualTypeOf<Source & Sink>()
  })

  test('hands out entries, and messages of the box', () => {
    redis({
      url,
      stream: 's',
      group: 'g',
      type: ({ fields }) => fields['kind']?.toString(),
      map(raw, message) {
        expectTypeOf(raw).toEqualTypeOf<RedisEntry>()
        expectTypeOf(raw.fields['order']).toEqualTypeOf<Buffer | undefined>()
        expectTypeOf(message).toEqualTypeOf<Incoming>()
        return { ...message, key: raw.id }
      },
    })
    redis({
      url,
      to(message) {
        expectTypeOf(message).toEqualTypeOf<Message>()
        return `shop:${message.type}`
      },
    })
  })

  test('does not compile without what it needs, or with what it does not know', () => {
    // @ts-expect-error neither a source nor a sink
    redis({ url })
    // @ts-expect-error a group belongs to a stream
    redis({ url, group: 'g' })
    // @ts-expect-error there is no url
    redis({ to: 's' })
    // @ts-expect-error an option of sources
    redis({ url, to: 's', batch: 10 })
    // @ts-expect-error an option of sinks
    redis({ url, stream: 's', group: 'g', maxLength: 10 })
    // @ts-expect-error a group begins at one end or the other
    redis({ url, stream: 's', group: 'g', begin: 'here' })
  })
})
