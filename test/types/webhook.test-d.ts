/** What of the options of webhooks compiles. */
import { expectTypeOf, test } from 'vitest'
import type { Sink } from 'oncebox'
import { webhook, type WebhookSource } from 'oncebox/webhook'

test('without a url it is a source, with limits of its own', () => {
  const source = webhook({ scheme: 'github', secret: 's', maxBytes: 1, bodyTimeoutMs: 1, maxBufferedBytes: 2 })
  expectTypeOf(source).toEqualTypeOf<WebhookSource>()
  // @ts-expect-error milliseconds are a number
  webhook({ scheme: 'github', secret: 's', bodyTimeoutMs: '10s' })
  // @ts-expect-error bytes are a number
  webhook({ scheme: 'github', secret: 's', maxBufferedBytes: '64 MiB' })
  // @ts-expect-error an unknown scheme
  webhook({ scheme: 'gitlab', secret: 's' })
})

test('with a url it is a sink, which reads no bodies', () => {
  expectTypeOf(webhook({ url: 'https://example.com', secret: 's', timeoutMs: 1 })).toEqualTypeOf<Sink>()
  // @ts-expect-error for a source
  webhook({ url: 'https://example.com', secret: 's', bodyTimeoutMs: 1 })
  // @ts-expect-error for a source
  webhook({ url: 'https://example.com', secret: 's', maxBufferedBytes: 2 })
})
