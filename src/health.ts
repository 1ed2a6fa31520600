/** Health: what the database, the sources, the sinks and the consumers of a box say, summed up. */
import { plainWords } from './failure.js'
import { readHealth, type DatabaseHealth } from './inbox/health.js'
import { UNATTENDED_MS } from './inbox/idle.js'
import { fullQuarantines } from './inbox/quota.js'
import type { ConsumerWorker } from './inbox/worker.js'
import { number, optional, orInfinity, resolve } from './options.js'
import type { Runtime } from './runtime.js'

export interface Health {
  readonly ok: boolean
  /** The database answers, and takes writes. */
  readonly database: boolean
  /** Every source that is attached runs, and what it delivers is taken. */
  readonly sources: boolean
  /** The age of the oldest message or event that is due, or held by a worker. */
  readonly lagMs: number
  /** Why it is not ok, in words for people. Beside that, sources whose quarantine is full, which leave it ok. */
  readonly reasons?: readonly string[]
}

interface HealthLimits {
  maxLagMs?: number | undefined
}

const LIMITS = {
  maxLagMs: optional(orInfinity(number({ least: 0 }))),
}

interface Parts {
  readonly workers: ReadonlyMap<string, ConsumerWorker>
  /** What keeps them from their work. */
  readonly sources: { readonly problems: readonly string[] }
  readonly relays: { readonly problems: readonly string[] }
  /** It is started, or has sources: what it receives it has to write. A box that only looks may have a role that reads. */
  readonly writes: boolean
}

export async function healthOf(runtime: Runtime, parts: Parts, limits: HealthLimits = {}): Promise<Health> {
  const { workers, sources, relays, writes } = parts
  const { maxLagMs } = resolve('health', limits, LIMITS)
  const found = await readHealth(runtime, [...workers.keys()])
  const isThere = !(found instanceof Error)
  const mayWrite = isThere && (found.allowed || !writes)
  const { problems } = sources
  const reasons = [...databaseProblems(found, mayWrite), ...problems, ...relays.problems, ...workerProblems(workers)]
  if (isThere) reasons.push(...lagProblems(found, maxLagMs, workers))
  const ok = reasons.length === 0
  // For people: one sender that is not taken any more must not take the service from the others.
  if (isThere) reasons.push(...(await fullQuarantines(runtime).catch(() => [])))
  return {
    ok,
    database: isThere && found.writable && mayWrite,
    sources: problems.length === 0,
    lagMs: isThere ? found.lagMs : 0,
    ...(reasons.length > 0 && { reasons }),
  }
}

/**
 * A reason without the words of the error that it quotes. They stand behind a colon, and no reason of ours has another: whoever
 * may not see what errors say gets what is before it.
 */
export function withoutWords(reason: string): string {
  return reason.split(': ', 1)[0]!
}

function databaseProblems(found: DatabaseHealth | Error, mayWrite: boolean): string[] {
  if (found instanceof Error) return [`the database cannot be used: ${plainWords(found)}`]
  if (!found.writable) return ['the database takes no writes: it is a standby, or read-only']
  return mayWrite ? [] : ['the role may not write the tables of the box; grant it the worker of rolesSql()']
}

function workerProblems(workers: ReadonlyMap<string, ConsumerWorker>): string[] {
  const failing = [...workers].filter(([, worker]) => worker.failing)
  return failing.map(([name]) => `consumer ${name} fails every time that it looks for work; hooks.error has said why`)
}

function lagProblems(
  { lagMs, consumers }: DatabaseHealth,
  maxLagMs: number | undefined,
  workers: ReadonlyMap<string, ConsumerWorker>,
): string[] {
  if (maxLagMs !== undefined) return lagMs <= maxLagMs ? [] : [`lagMs is ${lagMs}, above maxLagMs, ${maxLagMs}`]
  // Others than the local ones may be gone for good: nobody here could do anything about them.
  const unattended = consumers.filter((one) => workers.has(one.consumer) && !one.held && one.dueMs !== null)
  return unattended
    .filter(({ dueMs }) => dueMs! > UNATTENDED_MS)
    .map(
      ({ consumer, dueMs }) =>
        `messages of consumer ${consumer} have been due for ${Math.round(dueMs! / 1_000)} s, and nothing runs it`,
    )
}
