/** What compiles: the options decide whether it is a source or a sink. Checked by `tsc`, as part of `npm run check`. */
import { expectTypeOf, test } from 'vitest'
import type { Sink, Source } from 'oncebox'
import { webhook, type WebhookSource } from 'oncebox/webhook'

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'

test('without a url it is a source that serves requests', () => {
  const source = webhook({ scheme: 'github', secret: [secret] })
  expectTypeOf(source).toEqualTypeOf<WebhookSource>()
  expectTypeOf(source).toExtend<Source & { readonly push: true; fetch(request: Request): Promise<Response> }>()
  expectTypeOf(source).not.toExtend<Sink>()
})

test('with a url it is a sink', () => {
  expectTypeOf(webhook({ url: 'https://example.com', secret })).toEqualTypeOf<Sink>()
})

test('what is neither, or takes options of the other, does not compile', () => {
  const never = (): unknown => [
    // @ts-expect-error no scheme
    webhook({ secret }),
    // @ts-expect-error no secret
    webhook({ scheme: 'stripe' }),
    // @ts-expect-error a scheme for receiving
    webhook({ url: 'https://example.com', scheme: 'stripe', secret }),
    // @ts-expect-error an option for sending
    webhook({ scheme: 'stripe', secret, concurrency: 1 }),
  ]
  expectTypeOf(never).returns.toBeUnknown()
})
