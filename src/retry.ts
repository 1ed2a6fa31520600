/** When a failure is tried again, and when it is given up: the policy of consumers and sinks. */
import { show } from './check-options.js'
import { LONGEST_MS } from './figures.js'
import type { Logger } from './handler.js'
import { integer, invalid, nested, number, oneOf, type Option, type Resolved } from './options.js'
import { isPromise } from './promises.js'

export type RetryPolicy =
  | {
      attempts?: number | undefined
      baseMs?: number | undefined
      maxMs?: number | undefined
      jitter?: 'full' | 'none' | undefined
    }
  | ((error: unknown, attempt: number) => number | null)

/** The delay before the next attempt in ms, or null for dead. `attempt` is the number of the one that failed. */
export type Retry = (error: unknown, attempt: number) => number | null

export const POLICY = {
  attempts: integer({ least: 1, fallback: 10 }),
  baseMs: number({ least: 0, fallback: 1_000 }),
  maxMs: number({ least: 0, fallback: 3_600_000 }),
  jitter: oneOf(['full', 'none'], 'full'),
}
const POLICY_OPTION = nested(POLICY)

/** The option of those that have a policy. */
export const RETRY: Option<RetryPolicy | undefined, Resolved<typeof POLICY> | Retry> = {
  read(where, given) {
    if (typeof given === 'function') return given as Retry
    if (given === undefined || (typeof given === 'object' && given !== null)) return POLICY_OPTION.read(where, given)
    throw invalid(`${where} takes { ${Object.keys(POLICY).join(', ')} }, or a function; got ${show(given)}`)
  },
  byDefault: { words: '10 attempts, from 1 s to 1 h, full jitter' },
}

/** How often it tries at most; undefined: it decides case by case. */
export function attemptsOf(policy: Resolved<typeof POLICY> | Retry): number | undefined {
  return typeof policy === 'function' ? undefined : policy.attempts
}

/** Answers for every error: a function that gives no answer must not decide a message's fate, the default policy does. */
export function resolveRetry(where: string, policy: Resolved<typeof POLICY> | Retry, log?: Logger): Retry {
  if (typeof policy === 'function') {
    let warned = false
    return (error, attempt) => {
      const answer = ask(policy, error, attempt)
      if ('delay' in answer) return answer.delay
      if (!warned) log?.warn({ of: where, attempt }, `a retry policy ${answer.problem}; the default policy decides`)
      warned = true
      return BY_DEFAULT(error, attempt)
    }
  }
  const { attempts, baseMs, maxMs, jitter } = policy
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
  if (typeof answer === 'number' && answer >= 0) return { delay: Math.min(LONGEST_MS, answer) }
  if (typeof answer === 'number' || answer === undefined) return { problem: `returned ${answer}` }
  if (isPromise(answer)) return { problem: 'returned a promise, and nobody waits for it' }
  return { problem: `returned a ${typeof answer}, not a number or null` }
}

const BY_DEFAULT = resolveRetry('', POLICY_OPTION.read('retry', undefined))

/** For messages whose consumer has no handler in this process: a newer version may be on its way. */
export const RETRY_MISSING_HANDLER: Retry = BY_DEFAULT
