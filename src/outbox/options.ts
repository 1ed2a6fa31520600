/** A sink's options: type, default and check in one place, resolved once. */
import type { Sink } from '../brokers/sink.js'
import { checkInteger, checkKnown, nameProblem, nearest } from '../check-options.js'
import { OnceboxError } from '../errors.js'
import type { Logger } from '../handler.js'
import { resolveRetry, type Retry, type RetryPolicy } from '../inbox/options.js'
import type { MessageMap, Name } from '../message.js'

export interface SinkOptions<M extends MessageMap> {
  /** What the sink is called in the tables and by the admin. Default: the `name` of the sink. */
  name?: string
  /** Publish only these types. Default: all. */
  types?: readonly Name<M>[]
  /** For events that the sink refuses. Merged over the defaults; or a function of (error, attempt) → delay or null. */
  retry?: RetryPolicy
  /** Most events in one call of `publish`. */
  batch?: number
  /** How long published events are kept. By default they are deleted. */
  keepMs?: number
  /** How long a relay's lease lasts without a sign of life. */
  leaseMs?: number
  /** How long one call of `publish` may take. After that the destination counts as down, and the batch is tried again. */
  publishTimeoutMs?: number
}

export interface ResolvedSinkOptions {
  /** null: all. */
  readonly types: readonly string[] | null
  readonly retry: Retry
  readonly batch: number
  readonly keepMs: number
  readonly leaseMs: number
  readonly publishTimeoutMs: number
}

/** A sink, as it was attached to the box. */
export interface Attached {
  readonly name: string
  readonly sink: Sink
  readonly options: ResolvedSinkOptions
}

const DAY = 86_400_000

export function resolveSinkOptions<M extends MessageMap>(
  name: string,
  given: SinkOptions<M> = {},
  known: readonly string[],
  log?: Logger,
): ResolvedSinkOptions {
  const where = `sink ${name}`
  checkKnown(where, given, ['name', 'types', 'retry', 'batch', 'keepMs', 'leaseMs', 'publishTimeoutMs'])
  return {
    types: given.types === undefined ? null : checkTypes(where, given.types, known),
    retry: resolveRetry(where, given.retry, log),
    batch: checkInteger(`${where}: batch`, given.batch ?? 500, 1, 10_000),
    keepMs: checkInteger(`${where}: keepMs`, given.keepMs ?? 0, 0, 36_500 * DAY),
    leaseMs: checkInteger(`${where}: leaseMs`, given.leaseMs ?? 10_000, 100, DAY),
    publishTimeoutMs: checkInteger(`${where}: publishTimeoutMs`, given.publishTimeoutMs ?? 60_000, 100, DAY),
  }
}

function checkTypes(where: string, given: readonly string[], known: readonly string[]): readonly string[] {
  const types: readonly string[] = Array.isArray(given) ? (given as readonly string[]) : []
  if (types.length === 0) {
    throw new OnceboxError('OPTION_INVALID', `${where}: types must be a list of message types; leave it out for all`)
  }
  for (const type of types) {
    const problem = nameProblem(type)
    if (problem) throw new OnceboxError('OPTION_INVALID', `${where}: a type ${problem}`)
    if (known.length === 0 || known.includes(type)) continue
    const near = nearest(type, known)
    const hint = near ? `did you mean ${near}?` : 'add it to defineMessages'
    throw new OnceboxError('MESSAGE_TYPE_UNKNOWN', `${where} wants ${JSON.stringify(type)}, which is no type; ${hint}`)
  }
  return [...new Set(types)]
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
    throw new OnceboxError('OPTION_INVALID', 'a sink has two methods, publish and close')
  }
  const own = (sink as { name?: unknown }).name
  const name = given ?? (typeof own === 'string' && own !== '' ? own : UNNAMED)
  const problem = nameProblem(name, 200)
  if (problem) throw new OnceboxError('OPTION_INVALID', `a sink's name ${problem}`)
  if (!taken.includes(name)) return name
  const which = name === UNNAMED ? 'another sink has no name either' : `there is a sink ${name} already`
  throw new OnceboxError('OPTION_INVALID', `${which}; give each its own: box.to(sink, { name: 'billing' })`)
}
