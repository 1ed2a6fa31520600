/**
 * How long a statement may go without an answer. Packets may vanish without either side being told; whoever waits for an
 * answer on such a connection waits for as long as TCP does, a quarter of an hour, while new connections would work.
 *
 * Short statements have a limit tied to the shortest lease in use, so that work goes on before a second lease is over.
 * Heartbeats have a third of their own lease, beside what they may wait for a lock, and so have others that wait for one
 * while a lease is kept. Anything else may take its time. What goes along with a statement has to travel first, and large
 * bodies take longer than any short statement.
 */
import type { StatementOptions } from './driver.js'
import { CLAIM, CLAIMED, DRAIN_UNTIL, EXTEND, EXTEND_ONE, NEXT_DUE } from './sql/claim.js'
import { LEFT, SEEN } from './sql/consumers.js'
import { ADOPT, ADOPT_NEW, FORGET_EFFECT, INTEND, RECORD_EFFECT, RESUME_RECORDED } from './sql/effects.js'
import { FAIL_INLINE, LOCK_TIMEOUT } from './sql/inline.js'
import { CLAIM_LANES, EXTEND_LANE, EXTEND_LANES, FAIL_LANE, READ_LANES, RELEASE_LANES } from './sql/lanes.js'
import { MOVE } from './sql/link.js'
import {
  CLAIM_SHARDS,
  COMPLETE,
  COMPLETED,
  EXTEND_SHARDS,
  FINISH_SHARED,
  READ_SHARDS,
  RELEASE_SHARDS,
} from './sql/shards.js'
import { ASSIGN, CATCH_UP, RECLAIM, REGISTER_SINKS } from './sql/sinks.js'
import { ADD_MINUTE } from './sql/minutes.js'
import { CLASSIFY, NOTIFY, RECEIVE, RECEIVE_ONE, UNPARK_FAILED } from './sql/receive.js'
import { ELECT_READER, READ_READING } from './sql/reading.js'
import { HEALTH, RENEW } from './sql/registry.js'
import { BOUND_READS, DEAF, SESSION_DEFAULTS } from './sql/session.js'
import { COUNT_ATTEMPT, FAIL, STILL_OPEN, TRANSACTION_STATUS } from './sql/settle.js'
import { travelMs } from './travel.js'

/** Sent while a handler runs, to keep its claim. */
const URGENT = new Set<string>([EXTEND, EXTEND_ONE, EXTEND_LANES, EXTEND_LANE, EXTEND_SHARDS])

/** Those of them that wait for a row that somebody has locked. */
const WAITING = new Set<string>([EXTEND_ONE, EXTEND_LANE])

const SHORT = new Set<string>([
  ...[CLAIM, CLAIMED, CLAIM_LANES, CLAIM_SHARDS, READ_LANES, READ_SHARDS, NEXT_DUE, DRAIN_UNTIL, HEALTH, RECORD_EFFECT],
  ...[RECEIVE, RECEIVE_ONE, CLASSIFY, UNPARK_FAILED, NOTIFY, COMPLETE],
  ...[FAIL, FAIL_INLINE, FAIL_LANE, COUNT_ATTEMPT, RELEASE_LANES, RELEASE_SHARDS, STILL_OPEN, TRANSACTION_STATUS],
  ...[DEAF, SESSION_DEFAULTS, READ_READING, ADD_MINUTE, SEEN, LEFT, RENEW],
  ...[COMPLETED, ADOPT, ADOPT_NEW],
  // The first of transactions of ours: a connection that has died shows there.
  ...[LOCK_TIMEOUT, ELECT_READER, BOUND_READS],
])

/**
 * Run before a relay looks, or while a lease is kept over another connection, so that nobody else could go on instead. They may
 * wait for a lane that a receiver has locked, or for the set of sinks, or have a whole batch to write, and a healthy server is
 * then silent for a while: they get so many ms more.
 */
const PATIENT = new Map<string, number>([
  ...[ASSIGN, CATCH_UP, RECLAIM, INTEND, FORGET_EFFECT, RESUME_RECORDED].map((one) => [one, 5_000] as const),
  // What the one stores for all consumers of the other box, and the other deletes, is chosen by `batch`, up to thousands.
  ...[MOVE, FINISH_SHARED].map((one) => [one, 10_000] as const),
  // As long as it waits for the set itself.
  [REGISTER_SINKS, 15_000],
])

const BEFORE_ANY_LEASE_MS = 15_000
/** Less would take a busy server for a dead one. */
const SHORTEST_MS = 2_000
const SHORTEST_PULSE_MS = 250
const LONG_MS = 15 * 60_000

/** The limit of a statement, with the time that its parameter may take. */
export function withTravel(options: StatementOptions, text: string): StatementOptions {
  const { limitMs } = options
  const ms = travelMs(text)
  return ms === 0 || limitMs === undefined ? options : { ...options, limitMs: limitMs + ms }
}

export class Limits {
  /** The limit of a short statement. */
  shortMs = BEFORE_ANY_LEASE_MS

  optionsOf(statement: string, param: unknown): StatementOptions {
    const { leaseMs, waitMs } = named(param)
    if (leaseMs !== undefined) this.shortMs = Math.max(SHORTEST_MS, Math.min(this.shortMs, leaseMs / 2))
    const pulseMs = leaseMs === undefined ? this.shortMs : Math.max(SHORTEST_PULSE_MS, leaseMs / 3)
    if (WAITING.has(statement)) return { limitMs: pulseMs + waitMs!, urgent: true, waits: true }
    if (URGENT.has(statement)) return { limitMs: pulseMs, urgent: true }
    const moreMs = PATIENT.get(statement)
    if (moreMs !== undefined) return { limitMs: this.shortMs + moreMs }
    return { limitMs: SHORT.has(statement) ? this.shortMs : LONG_MS }
  }
}

/** What statements that lease say of it in their parameters, by these names. */
function named(param: unknown): { readonly leaseMs?: number; readonly waitMs?: number } {
  const { lease, leaseMs = lease, waitMs } = (param ?? {}) as Record<string, unknown>
  return {
    ...(typeof leaseMs === 'number' && { leaseMs }),
    ...(typeof waitMs === 'number' && { waitMs }),
  }
}
