/**
 * Webhooks: signed HTTP requests, in and out.
 *
 *     const stripe = box.from(webhook({ scheme: 'stripe', secret: process.env.STRIPE_SECRET }), { types: ['charge.succeeded'] })
 *     http.createServer(toNodeListener(stripe)).listen(3000)
 *
 *     box.to(webhook({ url: 'https://example.com/hooks', secret: process.env.HOOK_SECRET }))
 *
 * With a `url` it is a sink, else a source.
 */
import { OnceboxError } from '../../errors.js'
import type { Sink } from '../sink.js'
import { resolveSink, resolveSource, type WebhookSinkOptions, type WebhookSourceOptions } from './options.js'
import { resolveCustom, type CustomSourceOptions } from './custom.js'
import { createSink, type WebhookError } from './sink.js'
import { createSource, type WebhookSource } from './source.js'

export type { Scheme, VerifiedRequest, WebhookSinkOptions, WebhookSourceOptions } from './options.js'
export { isHmac, isSame, isTimely, type HmacOptions } from './compare.js'
export type { CustomMessage, CustomSourceOptions, Verdict } from './custom.js'
export type { WebhookError } from './sink.js'
export type { WebhookSource } from './source.js'
export { toNodeListener } from '../../http/node.js'

export function webhook(options: WebhookSinkOptions): Sink
export function webhook(options: WebhookSourceOptions | CustomSourceOptions): WebhookSource
export function webhook(
  options: WebhookSinkOptions | WebhookSourceOptions | CustomSourceOptions,
): Sink | WebhookSource {
  if (typeof options !== 'object' || options === null) {
    throw new OnceboxError(
      'OPTION_INVALID',
      'webhook takes options: { scheme, secret } to receive, { url, secret } to send',
    )
  }
  if ('verify' in options && options.verify !== undefined) return createSource(resolveCustom(options))
  return options.url === undefined
    ? createSource(resolveSource(options as WebhookSourceOptions))
    : createSink(resolveSink(options))
}

/** What an endpoint asked for in Retry-After, in milliseconds; for the `retry` option of `box.to`. */
export function retryAfterMs(error: unknown): number | undefined {
  return (error as Partial<WebhookError> | undefined)?.retryAfterMs
}
