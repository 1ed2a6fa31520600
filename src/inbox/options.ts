/** A consumer's options. */
import { DAY_MS, DEFAULT_RETAIN_MS, LONGEST_MS } from '../figures.js'
import type { Logger } from '../handler.js'
import type { MessageMap, MessageOf } from '../message.js'
import { boolean, callback, integer, invalid, nested, number, oneOf, optional, resolve } from '../options.js'
import type { Isolation } from '../postgres/driver.js'
import { attemptsOf, resolveRetry, RETRY, type RetryPolicy } from '../retry.js'

export interface ConsumerOptions<M extends MessageMap> {
  /** What a source does on arrival. `stored`: persist, ack, run later. `inline`: run, then ack. `direct`: no record. */
  mode?: 'stored' | 'inline' | 'direct' | undefined
  /** `key`: strict order per `message.key`, by order of receive commits. Not with `mode: 'inline'`. */
  order?: 'none' | 'key' | undefined
  /** With `order: 'key'`: does a dead message block its key, or is it skipped. */
  onDead?: 'block' | 'skip' | undefined
  /** Merged over the defaults; or a function of (error, attempt) → delay in ms, or null (or Infinity) for dead. */
  retry?: RetryPolicy | undefined
  /** Inline failures: redelivered by the source, or stored and retried from the box. */
  retryBy?: 'source' | 'box' | undefined
  /** Isolation level of the handler's transaction. */
  isolation?: Isolation | undefined
  /** Transactions in flight for this consumer in this process. */
  concurrency?: number | undefined
  /**
   * Adaptive group commit: at most so many messages (100, or 300 side by side) or milliseconds per transaction. `{ messages: 1 }`
   * turns it off.
   */
  group?:
    | {
        messages?: number | undefined
        ms?: number | undefined
        /**
         * Handlers of one transaction run side by side, but for messages of one key. For inserts, upserts and `x = x + 1`; not for
         * handlers that read, decide and write. See docs/group-commit.md.
         */
        together?: boolean | undefined
      }
    | undefined
  /** How long a claim lasts without a sign of life. */
  leaseMs?: number | undefined
  /** Deadline of one handler call. */
  timeoutMs?: number | undefined
  /** Dedup horizon: how long a handled message is remembered. */
  retainMs?: number | undefined
  /** What happens to a message that carries no time, when too-old is judged. */
  untimed?: 'accept' | 'quarantine' | undefined
  /** A business key in place of the producer's id, scoped by type automatically, ignoring `source`. */
  identity?: ((message: MessageOf<M>) => string) | undefined
}

/** As the pages print it, too: see `options.ts`. */
export const CONSUMER = {
  mode: oneOf(['stored', 'inline', 'direct'], 'stored'),
  order: oneOf(['none', 'key'], 'none'),
  onDead: oneOf(['block', 'skip'], 'block'),
  retry: RETRY,
  retryBy: optional(oneOf(['source', 'box']), "`'box'` when stored, else `'source'`"),
  isolation: oneOf<Isolation>(['read committed', 'repeatable read', 'serializable'], 'read committed'),
  concurrency: integer({ least: 1, most: 1_000, fallback: 4 }),
  group: nested({
    messages: integer({ least: 1, most: 10_000, fallback: 100 }),
    ms: number({ least: 0, fallback: 20 }),
    together: boolean(false),
  }),
  leaseMs: integer({ least: 100, most: DAY_MS, fallback: 30_000 }),
  timeoutMs: integer({ least: 1, most: DAY_MS, fallback: 30_000 }),
  retainMs: integer({ least: 1, most: LONGEST_MS, fallback: DEFAULT_RETAIN_MS }),
  untimed: oneOf(['accept', 'quarantine'], 'accept'),
  identity: optional(callback<(message: MessageOf<MessageMap>) => string>(), "the producer's id"),
}

/** Of handlers that run side by side, a group does so many in the time of a hundred one after the other. */
const MESSAGES_TOGETHER = 300

function sized<G extends { readonly together: boolean }>(group: G): G {
  return group.together ? { ...group, messages: MESSAGES_TOGETHER } : group
}

export type ResolvedOptions = ReturnType<typeof resolveOptions>

export function resolveOptions<M extends MessageMap>(consumer: string, given: ConsumerOptions<M> = {}, log?: Logger) {
  const where = `consumer ${consumer}`
  // Which messages it gets is the compiler's to know.
  const { retry, retryBy, ...options } = resolve(where, given as unknown as ConsumerOptions<MessageMap>, CONSUMER)
  const { mode, order, isolation, leaseMs, timeoutMs } = options
  const group = given.group?.messages === undefined ? sized(options.group) : options.group
  if (order === 'key' && mode !== 'stored') {
    throw invalid(
      `${where}: order 'key' needs mode 'stored', because a message that runs on arrival cannot wait for an earlier one`,
    )
  }
  if (group.together && isolation !== 'read committed') {
    throw invalid(
      `${where}: group.together needs isolation 'read committed', because no isolation level keeps handlers of one transaction apart`,
    )
  }
  return {
    ...options,
    group,
    retry: resolveRetry(where, retry, log),
    attempts: attemptsOf(retry),
    retryBy: retryBy ?? (mode === 'stored' ? 'box' : 'source'),
    // Under a stronger isolation level the lease cannot be extended during a transaction, so it covers a whole one.
    leaseMs: isolation === 'read committed' ? leaseMs : leaseMs + timeoutMs + group.ms,
  }
}
