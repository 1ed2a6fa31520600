/**
 * Senders that sign in a way of their own: the receiver says how to verify a request, and which messages it has.
 */
import { DAY_MS, MIB } from '../../figures.js'
import type { Incoming } from '../../message.js'
import { callback, integer, invalid, name, optional, resolve } from '../../options.js'
import { finish } from './options.js'

/**
 * What a request is: messages, each with an id of the sender's; a Response, for a request that has none, such as a
 * handshake; or false: who sent it is not known. The answer then is 401.
 */
export type Verdict = false | Response | CustomMessage | readonly CustomMessage[]

/** A message without its source, which is the webhook's to say. */
export type CustomMessage = Incoming & { source?: never }

export interface CustomSourceOptions {
  /**
   * Says whether a request is the sender's, by the bytes of its body and its headers, and which messages it has. Compare
   * signatures with `isHmac` or `isSame`, which take the same time whatever they are given, and times with `isTimely`.
   */
  verify: (request: Request, body: Uint8Array) => Verdict | Promise<Verdict>
  /** The producer. Ids are unique within it. */
  source: string
  /** What is answered when all messages are safe. Default: 200 with `{ status }`. */
  accepted?: (() => Response) | undefined
  /**
   * For how long a copy of a request is good, if `verify` looks at a signed time: twice its tolerance. Consumers must
   * remember messages for longer. Default: for ever, which nobody can check.
   */
  replayMs?: number | undefined
  /** As of other webhooks. Default: 1 MiB. */
  maxBytes?: number | undefined
  /** As of other webhooks. Default: 10 000. */
  bodyTimeoutMs?: number | undefined
  /** As of other webhooks. */
  maxBufferedBytes?: number | undefined
  /** As of other webhooks; told also when `verify` throws. */
  onError?: ((error: unknown) => void) | undefined
  /** Milliseconds since 1970. Default: `Date.now`. */
  now?: (() => number) | undefined
  scheme?: undefined
  url?: undefined
}

export const CUSTOM = {
  verify: callback<CustomSourceOptions['verify']>(),
  source: name(),
  accepted: optional(callback<() => Response>(), '200 with `{ status }`'),
  replayMs: optional(integer({ least: 0, most: 2 * DAY_MS }), 'for ever, which nobody can check'),
  maxBytes: integer({ least: 1, most: 256 * MIB, fallback: MIB }),
  bodyTimeoutMs: integer({ least: 1, most: DAY_MS, fallback: 10_000 }),
  maxBufferedBytes: optional(integer({ least: 2 }), '64 MiB, or 4 × `maxBytes` if that is more'),
  onError: optional(callback<(error: unknown) => void>(), 'a process warning, without details'),
  now: optional(callback<() => number>(), '`Date.now`'),
}

export type ResolvedCustom = ReturnType<typeof resolveCustom>

export function resolveCustom({ url: _, scheme, ...given }: CustomSourceOptions) {
  if (scheme !== undefined) throw invalid('webhook: a scheme verifies by itself; give it a scheme, or verify, not both')
  const options = resolve('webhook with verify', given, CUSTOM)
  return { ...options, ...finish(options), name: `webhook:${options.source}` }
}
