/** A sink's options. */
import type { Sink } from '../brokers/sink.js'
import type { Source } from '../brokers/source.js'
import { checkTypes, nameProblem } from '../check-options.js'
import { DAY_MS, LONGEST_MS } from '../figures.js'
import type { Logger } from '../handler.js'
import type { MessageMap, Name } from '../message.js'
import { checked, integer, invalid, name, optional, resolve } from '../options.js'
import { attemptsOf, resolveRetry, RETRY, type RetryPolicy } from '../retry.js'

export interface SinkOptions<M extends MessageMap> {
  /** What the sink is called in the tables and by the admin. Default: the `name` of the sink. */
  name?: string | undefined
  /** Publish only these types. Default: all. */
  types?: readonly Name<M>[] | undefined
  /** For events that the sink refuses. Merged over the defaults; or a function of (error, attempt) → delay or null. */
  retry?: RetryPolicy | undefined
  /** Most events in one call of `publish`. */
  batch?: number | undefined
  /** How long published events are kept. By default they are deleted. */
  keepMs?: number | undefined
  /** How long a relay's lease lasts without a sign of life. */
  leaseMs?: number | undefined
  /** How long one call of `publish` may take. After that the destination counts as down, and the batch is tried again. */
  publishTimeoutMs?: number | undefined
}

export type ResolvedSinkOptions = ReturnType<typeof resolveSinkOptions>

/** A sink, as it was attached to the box. */
export interface Attached {
  readonly name: string
  readonly sink: Sink
  readonly options: ResolvedSinkOptions
}

export const SINK = {
  name: optional(name(200), 'the `name` of the sink'),
  types: optional(
    checked((_, given: readonly string[]) => given),
    'all',
  ),
  retry: { ...RETRY, byDefault: { words: 'as for [consumers](retries-and-dead-letters.md#the-policy)' } },
  batch: integer({ least: 1, most: 10_000, fallback: 500 }),
  keepMs: integer({ least: 0, most: LONGEST_MS, fallback: 0 }),
  leaseMs: integer({ least: 100, most: DAY_MS, fallback: 10_000 }),
  publishTimeoutMs: integer({ least: 100, most: DAY_MS, fallback: 60_000 }),
}

export function resolveSinkOptions<M extends MessageMap>(
  name: string,
  given: SinkOptions<M> = {},
  known: readonly string[],
  log?: Logger,
) {
  const where = `sink ${name}`
  const { types, retry, ...options } = resolve(where, given as SinkOptions<MessageMap>, SINK)
  return {
    ...options,
    /** null: all. */
    types: types === undefined ? null : checkTypes(where, types, known, 'leave it out'),
    retry: resolveRetry(where, retry, log),
    attempts: attemptsOf(retry),
  }
}

/** What a sink is called that has no name, where it is the only one without. */
const UNNAMED = 'sink-1'

/**
 * What a sink is called in the tables, where relays of other processes find their share of its events: by the option,
 * else by its own `name`. One sink of a box may do without; a second would be known by its position, and get the
 * events of another one as soon as the order changed.
 */
export function nameOfSink(sink: Sink, given: string | undefined, taken: readonly string[]): string {
  if (typeof sink?.publish !== 'function' || typeof sink.close !== 'function') {
    const brings = typeof (sink as Partial<Source> | undefined)?.start === 'function'
    const hint = brings ? '; this one brings messages in: it is a source, for box.from' : ''
    throw invalid(`to: a sink has two methods, publish and close${hint}`)
  }
  const own = (sink as { name?: unknown }).name
  const name = given ?? (typeof own === 'string' && own !== '' ? own : UNNAMED)
  const problem = nameProblem(name, 200)
  if (problem) throw invalid(`a sink's name ${problem}`)
  if (!taken.includes(name)) return name
  const which = name === UNNAMED ? 'another sink has no name either' : `there is a sink ${name} already`
  throw invalid(`${which}; give each its own: box.to(sink, { name: 'billing' })`)
}
