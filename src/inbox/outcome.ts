/** Outcomes: one per consumer, summed up to one per message; and the results of handlers, as they are stored. */
import { OnceboxError } from '../errors.js'
import type { ConsumerOutcome, Failure, Outcome, QuarantineReason } from '../message.js'
import { withoutAnswer } from './answers.js'
import type { Recorded } from './held.js'
import { retryTime } from './verdict.js'

const BY_WEIGHT = ['failed', 'busy', 'quarantined', 'dead', 'handled', 'stored', 'duplicate'] as const

/** The status of a message is the first present in BY_WEIGHT; its details are those of the consumer it comes from. */
export function sumUp(id: string | undefined, consumers: readonly Ackable[]): Outcome {
  if (consumers.length === 0) return { id, ack: true, status: 'skipped', consumers: [] }
  const ack = consumers.every((one) => one.ack !== false)
  const outcomes = consumers.map((one) => one.outcome)
  const { consumer: _, retryAt: __, ...details } = decisive(outcomes) as ConsumerOutcome & { retryAt?: Date }
  const retryAt = ack ? undefined : latestOf(consumers)
  return { id, ack, ...(retryAt && { retryAt }), consumers: outcomes, ...details }
}

/** Of a message that is new to all of its consumers: what `sumUp` says of it, for the thousands of which it is true. */
export function storedOutcome(id: string, consumers: readonly string[]): Outcome {
  const outcomes = consumers.map((consumer): ConsumerOutcome => ({ consumer, status: 'stored' }))
  return { id, ack: true, consumers: outcomes, status: 'stored' }
}

/** Of those that need it delivered again: what the box retries by itself has a time, too, and waits for nobody. */
function latestOf(consumers: readonly Ackable[]): Date | undefined {
  let latest: Date | undefined
  for (const { ack, outcome } of consumers) {
    if (ack !== false || outcome.status !== 'failed' || outcome.retryAt === undefined) continue
    if (latest === undefined || outcome.retryAt > latest) latest = outcome.retryAt
  }
  return latest
}

function decisive(outcomes: readonly ConsumerOutcome[]): ConsumerOutcome {
  if (outcomes.length > 1) {
    for (const status of BY_WEIGHT) {
      const found = outcomes.find((outcome) => outcome.status === status)
      if (found) return found
    }
  }
  return outcomes[0]!
}

/** A consumer's outcome, and whether its part of the message is safe. */
export interface Ackable {
  readonly outcome: ConsumerOutcome
  readonly ack?: boolean
}

/** Of a message that reached no consumer. */
export function quarantinedOutcome(
  id: string | undefined,
  { reason, detail }: { readonly reason: QuarantineReason; readonly detail: string },
): Outcome {
  return { id, ack: true, status: 'quarantined', reason, detail, consumers: [] }
}

export function parseFailure(error: string | null | undefined): Failure {
  if (!error) return { name: 'Error', message: 'unknown' }
  return JSON.parse(error) as Failure
}

/**
 * What shows that the handler has not done its work, and would be a message that is handled if it were taken for a result: an error,
 * which was meant to be thrown, and what has not run yet.
 */
export function refuseUndone(result: unknown): void {
  if (typeof result !== 'object' || result === null) return
  if (result instanceof Error) {
    throw new OnceboxError('RESULT_INVALID', `the handler returned a ${result.name}; throw it`, { cause: result })
  }
  const undone = undoneIn(result)
  if (undone !== undefined) throw new OnceboxError('RESULT_INVALID', `the handler returned ${undone}`)
}

function undoneIn(result: object): string | undefined {
  if (GENERATORS.includes(Object.prototype.toString.call(result))) {
    return 'a generator, of which nothing has run: write the handler as an async function'
  }
  const { subscribe, pipe } = result as { subscribe?: unknown; pipe?: unknown }
  if (typeof subscribe !== 'function' || typeof pipe !== 'function') return undefined
  return 'an observable, to which nobody subscribes: return lastValueFrom(…) of it'
}

const GENERATORS = ['[object Generator]', '[object AsyncGenerator]']

/** The JSON text of what a handler has returned; undefined if that is no result. */
export function toResult(returned: unknown): string | undefined {
  const result = withoutAnswer(returned)
  if (result === undefined) return undefined
  try {
    return JSON.stringify(result)
  } catch (error) {
    throw new OnceboxError('RESULT_INVALID', 'the result cannot be written as JSON; return plain data, or nothing', {
      cause: error,
    })
  }
}

/** What a caller gets back: the same on the first run and for a duplicate. */
export function fromResult(text: string | null | undefined): unknown {
  return text === undefined || text === null ? undefined : (JSON.parse(text) as unknown)
}

/** A handler has returned, and all that belongs to it has committed. */
export function handled(consumer: string, result: string | undefined): Ackable {
  return { outcome: { consumer, status: 'handled', result: fromResult(result) } }
}

/** What is answered of a message that failed on arrival. */
export function failed(consumer: string, recorded: Recorded): Ackable {
  const { parked, reason, retryBy } = recorded
  if (parked === 'quarantined') return quarantined(consumer, reason ?? 'effect-unknown')
  const error = recorded.failure ?? recorded.asked
  // Rows that it needs are held by others, and nobody was asked to wait.
  if (!error) return busy(consumer)
  if (parked === 'dead') return { outcome: { consumer, status: 'dead', error } }
  const retryAt = retryTime(recorded)
  return { outcome: { consumer, status: 'failed', error, ...(retryAt && { retryAt }) }, ack: retryBy === 'box' }
}

/** `detail`: why, where that was found out just now. */
export function quarantined(consumer: string, reason: QuarantineReason, detail?: string): Ackable {
  return { outcome: { consumer, status: 'quarantined', reason, ...(detail !== undefined && { detail }) } }
}

/** It cannot run now: a copy of it is in flight, or the box stops. */
export function busy(consumer: string): Ackable {
  return { outcome: { consumer, status: 'busy' }, ack: false }
}
