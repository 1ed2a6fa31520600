/** A consumer's options: type, default and check in one place, resolved once. */
import { checkFunction, checkInteger, checkKnown, checkNumber, checkOneOf } from '../check-options.js'
import { OnceboxError } from '../errors.js'
import type { Logger } from '../handler.js'
import type { MessageMap, MessageOf } from '../message.js'
import type { Isolation } from '../postgres/driver.js'

export interface ConsumerOptions<M extends MessageMap> {
  /** What a source does on arrival. `stored`: persist, ack, run later. `inline`: run, then ack. `direct`: no record. */
  mode?: 'stored' | 'inline' | 'direct'
  /** `key`: strict order per `message.key`, by order of receive commits. Not with `mode: 'inline'`. */
  order?: 'none' | 'key'
  /** With `order: 'key'`: does a dead message block its key, or is it skipped. */
  onDead?: 'block' | 'skip'
  /** Merged over the defaults; or a function of (error, attempt) → delay in ms, or null (or Infinity) for dead. */
  retry?: RetryPolicy
  /** Inline failures: redelivered by the source, or stored and retried from the box. */
  retryBy?: 'source' | 'box'
  /** Isolation level of the handler's transaction. */
  isolation?: Isolation
  /** Transactions in flight for this consumer in this process. */
  concurrency?: number
  /** Adaptive group commit: at most so many messages or milliseconds per transaction. `{ messages: 1 }` turns it off. */
  group?: { messages?: number; ms?: number }
  /** How long a claim lasts without a sign of life. */
  leaseMs?: number
  /** Deadline of one handler call. */
  timeoutMs?: number
  /** Dedup horizon: how long a handled message is remembered. */
  retainMs?: number
  /** What happens to a message that carries no time, when too-old is judged. */
  untimed?: 'accept' | 'quarantine'
  /** A business key in place of the producer's id, scoped by type automatically, ignoring `source`. */
  identity?: (message: MessageOf<M>) => string
}

export type RetryPolicy =
  | { attempts?: number; baseMs?: number; maxMs?: number; jitter?: 'full' | 'none' }
  | ((error: unknown, attempt: number) => number | null)

/** The delay before the next attempt in ms, or null for dead. `attempt` is the number of the one that failed. */
export type Retry = (error: unknown, attempt: number) => number | null

export interface ResolvedOptions {
  readonly mode: 'stored' | 'inline' | 'direct'
  readonly order: 'none' | 'key'
  readonly onDead: 'block' | 'skip'
  readonly retry: Retry
  readonly retryBy: 'source' | 'box'
  readonly isolation: Isolation
  readonly concurrency: number
  readonly group: { readonly messages: number; readonly ms: number }
  readonly leaseMs: number
  readonly timeoutMs: number
  readonly retainMs: number
  readonly untimed: 'accept' | 'quarantine'
  readonly identity: ((message: never) => string) | undefined
}

const OPTIONS = [
  'mode', 'order', 'onDead', 'retry', 'retryBy', 'isolation', 'concurrency', 'group', 'leaseMs', 'timeoutMs',
  'retainMs', 'untimed', 'identity',
] // prettier-ignore

const DAY = 86_400_000
const YEARS_100 = 36_500 * DAY

export function resolveOptions<M extends MessageMap>(
  consumer: string,
  given: ConsumerOptions<M> = {},
  log?: Logger,
): ResolvedOptions {
  const where = `consumer ${consumer}`
  checkKnown(where, given, OPTIONS)
  const mode = checkOneOf(`${where}: mode`, given.mode ?? 'stored', ['stored', 'inline', 'direct'])
  const order = checkOneOf(`${where}: order`, given.order ?? 'none', ['none', 'key'])
  if (order === 'key' && mode !== 'stored') {
    throw new OnceboxError(
      'OPTION_INVALID',
      `${where}: order 'key' needs mode 'stored', because a message that runs on arrival cannot wait for an earlier one`,
    )
  }
  const { group = {} } = given
  checkKnown(`${where}: group`, group, ['messages', 'ms'])
  const groupMs = checkNumber(`${where}: group.ms`, group.ms ?? 20, 0)
  const leaseMs = checkInteger(`${where}: leaseMs`, given.leaseMs ?? 30_000, 100, DAY)
  const timeoutMs = checkInteger(`${where}: timeoutMs`, given.timeoutMs ?? 30_000, 1, DAY)
  const isolation = checkOneOf(`${where}: isolation`, given.isolation ?? 'read committed', [
    'read committed',
    'repeatable read',
    'serializable',
  ])
  return {
    mode,
    order,
    onDead: checkOneOf(`${where}: onDead`, given.onDead ?? 'block', ['block', 'skip']),
    retry: resolveRetry(where, given.retry, log),
    retryBy: checkOneOf(`${where}: retryBy`, given.retryBy ?? (mode === 'stored' ? 'box' : 'source'), [
      'source',
      'box',
    ]),
    isolation,
    concurrency: checkInteger(`${where}: concurrency`, given.concurrency ?? 4, 1, 1_000),
    group: {
      messages: checkInteger(`${where}: group.messages`, group.messages ?? 100, 1, 10_000),
      ms: groupMs,
    },
    // Under a stronger isolation level the lease cannot be extended during a transaction, so it covers a whole one.
    leaseMs: isolation === 'read committed' ? leaseMs : leaseMs + timeoutMs + groupMs,
    timeoutMs,
    retainMs: checkInteger(`${where}: retainMs`, given.retainMs ?? 30 * DAY, 1, YEARS_100),
    untimed: checkOneOf(`${where}: untimed`, given.untimed ?? 'accept', ['accept', 'quarantine']),
    identity: checkFunction(`${where}: identity`, given.identity),
  }
}

/** Answers for every error: a function that gives no answer must not decide a message's fate, the default policy does. */
export function resolveRetry(where: string, policy: RetryPolicy = {}, log?: Logger): Retry {
  if (typeof policy === 'function') {
    const byDefault = resolveRetry(where)
    let warned = false
    return (error, attempt) => {
      const answer = ask(policy, error, attempt)
      if ('delay' in answer) return answer.delay
      if (!warned) log?.warn({ of: where, attempt }, `a retry policy ${answer.problem}; the default policy decides`)
      warned = true
      return byDefault(error, attempt)
    }
  }
  checkKnown(`${where}: retry`, policy, ['attempts', 'baseMs', 'maxMs', 'jitter'])
  const attempts = checkInteger(`${where}: retry.attempts`, policy.attempts ?? 10, 1)
  const baseMs = checkNumber(`${where}: retry.baseMs`, policy.baseMs ?? 1_000, 0)
  const maxMs = checkNumber(`${where}: retry.maxMs`, policy.maxMs ?? 3_600_000, 0)
  const jitter = checkOneOf(`${where}: retry.jitter`, policy.jitter ?? 'full', ['full', 'none'])
  return (_error, attempt) => {
    if (attempt >= attempts) return null
    const ceiling = Math.min(maxMs, baseMs * 2 ** Math.min(attempt - 1, 50))
    return jitter === 'full' ? Math.random() * ceiling : ceiling
  }
}

/** A number that is not there, such as one beyond the end of a table of delays, would be a retry at once, for ever. */
function ask(policy: Retry, error: unknown, attempt: number): { delay: number | null } | { problem: string } {
  let answer: unknown
  try {
    answer = policy(error, attempt)
  } catch {
    return { problem: 'threw' }
  }
  // Never again is what dead means, and somebody sees it.
  if (answer === null || answer === Infinity) return { delay: null }
  if (typeof answer === 'number' && answer >= 0) return { delay: Math.min(YEARS_100, answer) }
  if (typeof answer === 'number' || answer === undefined) return { problem: `returned ${answer}` }
  if (answer instanceof Promise) {
    // Its rejection would end the process.
    answer.catch(() => undefined)
    return { problem: 'returned a promise, and nobody waits for it' }
  }
  return { problem: `returned a ${typeof answer}, not a number or null` }
}

/** For messages whose consumer has no handler in this process: a newer version may be on its way. */
export const RETRY_MISSING_HANDLER: Retry = resolveRetry('missing handler')
