/** Settle: what a run comes to, recorded. Success in the handlers' transaction, failure in one of its own. */
import { isOwnError, ownError } from '../errors.js'
import { someCause } from '../failure.js'
import { writeOutgoing, type Outgoing } from '../outbox/send.js'
import { MISSED_ATTEMPTS, STORE_RESULTS } from '../postgres/sql/settle.js'
import { failpoint } from '../worker/failpoints.js'
import type { Claim, ClaimedMessage, OpenGroup, Verdict } from './claim.js'
import type { Worker } from './running.js'
import { slowDown } from './spins.js'
import { tellParked, tellRetry } from './tell.js'
import { isMissingHandler, verdictOf } from './verdict.js'

/** Everything that belongs to the same commit: what was sent, the results, the settlement. */
export async function settleAll(
  { runtime, consumer }: Worker,
  claim: Claim,
  done: readonly ClaimedMessage[],
  results: readonly [ClaimedMessage, string][],
  outgoing: readonly Outgoing[],
  open: OpenGroup,
  tx: unknown,
): Promise<{ result: void; settlement: Promise<unknown> }> {
  failpoint('handled', runtime.db)
  if (outgoing.length > 0) await writeOutgoing(runtime, outgoing, tx)
  if (results.length > 0) {
    const r = results.map(([{ source, id }, text]) => [source, id, text])
    await runtime.db.run(STORE_RESULTS, { c: consumer.name, r }, tx)
  }
  return { result: undefined, settlement: claim.settle(done, open, tx) }
}

export function quarantineInvalid(worker: Worker, claim: Claim, message: ClaimedMessage): Promise<void> {
  const failure = { name: 'Invalid', message: message.problem! }
  return applyVerdict(worker, claim, message, { attempts: 0, parked: 'quarantined', reason: 'invalid', failure })
}

export function missingHandler(worker: Worker, claim: Claim, message: ClaimedMessage): Promise<void> {
  const { name } = worker.consumer
  const error = ownError(
    'HANDLER_MISSING',
    `consumer ${name} has no handler for ${message.type} in this process; deploy one that has, or add it`,
  )
  return recordFailure(worker, claim, message, error, false)
}

export async function recordFailure(
  worker: Worker,
  claim: Claim,
  message: ClaimedMessage,
  error: unknown,
  counted: boolean,
): Promise<void> {
  const { retry } = worker.consumer.options
  const attempt = counted ? message.attempts : message.attempts + 1
  let verdict = verdictOf(error, attempt, retry, counted)
  if (verdict.parked === 'dead' && attempt > 1 && !isMissingHandler(error)) {
    // Attempts that found no handler were not the message's.
    const missed = await missedAttempts(worker, message)
    if (missed > 0) verdict = verdictOf(error, Math.max(1, attempt - missed), retry, counted)
  }
  await applyVerdict(worker, claim, message, verdict.asked ? slowDown(worker, message, verdict) : verdict)
}

/** How many of its attempts found no handler: they ran nothing, so nothing but a missing handler is judged by them. */
export async function missedAttempts({ runtime, consumer }: Worker, message: ClaimedMessage): Promise<number> {
  const { source, id, attempts } = message
  const rows = await runtime.db.run(MISSED_ATTEMPTS, { c: consumer.name, s: source, i: id, attempts })
  return Number(rows[0]!['missed'])
}

/** Its attempt was counted before it ran. */
export function isCounted({ attemptsBefore }: ClaimedMessage): boolean {
  return attemptsBefore !== undefined
}

/** It ran, and what failed then was not its own: it goes back for a moment, uncounted, and lets others go ahead. */
export async function putBack(claim: Claim, message: ClaimedMessage): Promise<void> {
  const delayMs = PUT_BACK_MS / 2 + (Math.random() * PUT_BACK_MS) / 2
  await claim.fail(message, { attempts: isCounted(message) ? -1 : 0, delayMs })
}

const PUT_BACK_MS = 2_000

export async function applyVerdict(
  worker: Worker,
  claim: Claim,
  message: ClaimedMessage,
  verdict: Verdict,
): Promise<void> {
  const { runtime, consumer } = worker
  if (!(await claim.fail(message, verdict))) return
  const told = {
    message: message.message,
    consumer: consumer.name,
    ...(verdict.failure && { error: verdict.failure }),
  }
  if (verdict.parked === undefined) return tellRetry(runtime, told, verdict, 'box')
  if (verdict.parked === 'failed') return tellRetry(runtime, told, verdict, 'source')
  tellParked(runtime, told, verdict)
}

/** A lost claim is no error: whoever took it runs its messages. */
export function isLost(error: unknown): boolean {
  return someCause(error, (cause) => isOwnError(cause, 'CLAIM_LOST'))
}
