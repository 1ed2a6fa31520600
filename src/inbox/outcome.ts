/** Outcomes: one per consumer, summed up to one per message. */
import type { ConsumerOutcome, Failure, Outcome, QuarantineReason } from '../message.js'

const ORDER = ['failed', 'busy', 'quarantined', 'dead', 'handled', 'stored', 'duplicate'] as const

/** The status of a message is the first present in ORDER; its details are those of the consumer it comes from. */
export function sumUp(id: string | undefined, consumers: readonly Ackable[]): Outcome {
  if (consumers.length === 0) return { id, ack: true, status: 'skipped', consumers: [] }
  const ack = consumers.every((one) => one.ack !== false)
  const outcomes = consumers.map((one) => one.outcome)
  const { consumer: _, retryAt: __, ...details } = decisive(outcomes) as ConsumerOutcome & { retryAt?: Date }
  const retryAt = ack ? undefined : latestOf(consumers)
  return { id, ack, ...(retryAt && { retryAt }), consumers: outcomes, ...details }
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
    for (const status of ORDER) {
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

export function quarantinedOutcome(id: string | undefined, reason: QuarantineReason, consumer?: string): Outcome {
  const consumers: ConsumerOutcome[] = consumer === undefined ? [] : [{ consumer, status: 'quarantined', reason }]
  return { id, ack: true, status: 'quarantined', reason, consumers }
}

export function parseFailure(error: string | null | undefined): Failure {
  if (!error) return { name: 'Error', message: 'unknown' }
  return JSON.parse(error) as Failure
}

/** A stored result: absent stays absent. */
export function parseResult(result: unknown): unknown {
  return typeof result === 'string' ? (JSON.parse(result) as unknown) : undefined
}

/** It cannot run now: a copy of it is in flight, or the box stops. */
export function busy(consumer: string): Ackable {
  return { outcome: { consumer, status: 'busy' }, ack: false }
}
