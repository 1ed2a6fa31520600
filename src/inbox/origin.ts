/**
 * What a source may say. A signature proves who sent a message, not that they may send it: which types a source sends, whose
 * keys it may hold up and how much it may leave in quarantine is written down where it is attached.
 */
import type { Sink } from '../brokers/sink.js'
import type { Source } from '../brokers/source.js'
import { checkTypes } from '../check-options.js'
import { DEFAULT_RETAIN_MS, LONGEST_MS, MIB } from '../figures.js'
import type { MessageMap, Name } from '../message.js'
import { checked, integer, invalid, names, nested, oneOf, optional, orInfinity, resolve } from '../options.js'
import type { Origin } from '../runtime.js'
import type { ConsumerDeclaration } from './consumer.js'

export interface FromOptions<M extends MessageMap = MessageMap> {
  /** Only these consumers get what this source brings. Default: all. */
  consumers?: readonly string[] | undefined
  /** What becomes of a message that no consumer takes. Default: 'quarantine'. */
  unrouted?: 'quarantine' | 'skip' | undefined
  /**
   * The types that it may send. Others are quarantined as `not-allowed`, until a person releases them. A push source has to
   * say: `'any'` is for a sender that you trust like yourself. Default for brokers: any.
   */
  types?: readonly Name<M>[] | 'any' | undefined
  /**
   * `source`: equal keys of two producers are two keys, so no message of one holds up the other. Default for a push source.
   * `shared`: a key is the same whoever sent it. Default for brokers.
   */
  keys?: 'source' | 'shared' | undefined
  /** How much it may have in quarantine. Beyond that, what would go there is not taken. Default for brokers: no limit. */
  quarantine?: QuarantineLimits | undefined
}

export interface QuarantineLimits {
  /** Default: 10 000. */
  maxRows?: number | undefined
  /** Of bodies and headers. Default: 256 MiB. */
  maxBytes?: number | undefined
  /** How long a message is kept that nobody looks at. Default: for ever, and 30 days for what is `not-allowed`. */
  retainMs?: number | undefined
}

/** What `from` takes: a push source has to say which types it may send. */
export type FromArguments<M extends MessageMap, S extends Source> = S extends { readonly push: true }
  ? S extends { readonly broker: true }
    ? [options?: FromOptions<M>]
    : [options: FromOptions<M> & { types: readonly Name<M>[] | 'any' }]
  : [options?: FromOptions<M>]

export const QUARANTINE = {
  maxRows: orInfinity(integer({ least: 1, fallback: 10_000 })),
  maxBytes: orInfinity(integer({ least: 1, fallback: 256 * MIB })),
  retainMs: optional(integer({ least: 1, most: LONGEST_MS }), 'for ever, and 30 days for what is `not-allowed`'),
}

export const FROM = {
  consumers: optional(names(), 'all'),
  unrouted: oneOf(['quarantine', 'skip'], 'quarantine'),
  types: optional(
    checked((_, given: readonly string[] | 'any') => given),
    'any; a push source has to say',
  ),
  keys: optional(oneOf(['source', 'shared']), "`'shared'`; of a push source `'source'`"),
  quarantine: optional(nested(QUARANTINE), 'no limit; of a push source as below'),
}

const ANY = `{ types: 'any' }`

export function resolveFrom(
  source: Source,
  given: FromOptions,
  { known, attached }: { readonly known: readonly string[]; readonly attached: readonly Origin[] },
): Origin {
  if (typeof source?.start !== 'function' || typeof source.stop !== 'function') {
    const publishes = typeof (source as Partial<Sink> | undefined)?.publish === 'function'
    const hint = publishes ? '; this one publishes (a webhook does with a url): it is a sink, for box.to' : ''
    throw invalid(`from: a source has two methods, start and stop${hint}`)
  }
  const { consumers, unrouted, types, keys, quarantine } = resolve('from', given, FROM)
  const pushed = source.push === true && source.broker !== true
  if (types === undefined && pushed) {
    throw invalid(
      `from: a push source must say which types it may send: from(source, { types: ['order.paid'] }); for all of them, ${ANY}`,
    )
  }
  const name = source.name ?? `source-${attached.length + 1}`
  if (pushed && attached.some((one) => one.name === name)) {
    const advice = 'give each webhook a source of its own, or a single webhook the secrets of both'
    throw invalid(`from: there is a push source ${name} already, and each would take the ids of the other; ${advice}`)
  }
  const quota = quarantine ?? (pushed ? FROM.quarantine.read('from: quarantine', {}) : undefined)
  return {
    name,
    account: quota && name,
    types: types === undefined || types === 'any' ? undefined : new Set(checkTypes('from', types, known, ANY)),
    keys: keys ?? (pushed ? 'source' : 'shared'),
    consumers,
    unrouted,
    quota: quota && {
      // As numbers that PostgreSQL takes.
      maxRows: Math.min(quota.maxRows, Number.MAX_SAFE_INTEGER),
      maxBytes: Math.min(quota.maxBytes, Number.MAX_SAFE_INTEGER),
      retainMs: quota.retainMs,
      notAllowedMs: quota.retainMs ?? DEFAULT_RETAIN_MS,
    },
    replayMs: source.replayMs,
    full: false,
  }
}

/** Of a message that leaves the quarantine: it may say what it said, and stays on its account. */
export function releasedFrom(account: string): Origin {
  const free = {
    types: undefined,
    keys: 'shared',
    consumers: undefined,
    unrouted: undefined,
    quota: undefined,
  } as const
  return { name: account, account, ...free, replayMs: undefined, full: false }
}

/** A lane that is not named by its key alone begins with this. */
const MARKED = '\u0001'

/**
 * The lane of a message, where it is not its key: of a key that is scoped by its source, and of a shared key that could pass
 * for one. The length says where the source ends, so no two of them look alike.
 */
export function laneOf(keys: Origin['keys'], source: string, key: string): string | undefined {
  if (keys === 'source') return `${MARKED}${source.length}:${source}${key}`
  return key.startsWith(MARKED) ? `${MARKED}${key}` : undefined
}

/** A consumer, and how long it remembers. */
export interface Remembering {
  readonly name: string
  readonly takes: (type: string) => boolean
  readonly retainMs: number
}

/** One that keeps no record remembers nothing anyway, and says so. */
export function asRemembering({ name, options, handlerOf }: ConsumerDeclaration): Remembering {
  const takes = (type: string): boolean => handlerOf(type) !== undefined
  return { name, takes, retainMs: options.mode === 'direct' ? Infinity : options.retainMs }
}

/** Throws where there is a problem. */
export function checkReplay(origin: Origin, consumer: Remembering): void {
  const problem = replayProblem(origin, consumer)
  if (problem) throw invalid(problem)
}

/**
 * A copy of a message, captured on its way, must not be good for longer than the consumer remembers the message: its handler
 * would run a second time.
 */
export function replayProblem({ name, replayMs, types, consumers }: Origin, consumer: Remembering): string | undefined {
  if (replayMs === undefined || consumer.retainMs >= replayMs) return undefined
  if (consumers !== undefined && !consumers.includes(consumer.name)) return undefined
  if (types !== undefined && ![...types].some((type) => consumer.takes(type))) return undefined
  const forgets = `consumer ${consumer.name} forgets messages after ${consumer.retainMs} ms (retainMs)`
  const window = `source ${name} takes them for ${replayMs} ms (replayMs, or twice its toleranceMs)`
  return `${forgets}, but ${window}, so a copy would run again; raise retainMs, or lower that of the source`
}
