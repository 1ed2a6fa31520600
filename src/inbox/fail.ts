/** Fail: what an error means for its message, recorded and told, whichever way it ran. */
import { isOwnError, ownError } from '../errors.js'
import { backoffMs, sleep } from '../backoff.js'
import { causes, inAscii, someCause } from '../failure.js'
import { isConnectionLoss, isUntranslatable } from '../postgres/errors.js'
import { CLASSIFY } from '../postgres/sql/receive.js'
import { MISSED_ATTEMPTS } from '../postgres/sql/settle.js'
import { isCounted, type Held, type HeldMessage, type Recorded } from './held.js'
import type { Run, Worker } from './run.js'
import { slowDown } from './spins.js'
import { tellParked, tellRetry, type Told } from './tell.js'
import { attemptOf, isMissingHandler, verdictOf, type Verdict } from './verdict.js'

export async function recordFailure(run: Run, message: HeldMessage, error: unknown): Promise<void> {
  const { worker } = run
  const { retry } = worker.consumer.options
  let verdict = verdictOf(error, message, retry)
  if (verdict.parked === 'dead' && attemptOf(message) > 1 && !isMissingHandler(error)) {
    // Attempts that found no handler were not the message's.
    const missed = await missedAttempts(worker, message)
    if (missed > 0) verdict = verdictOf(error, message, retry, missed)
  }
  await applyVerdict(run, message, verdict.asked ? slowDown(worker, message, verdict) : verdict)
}

export function quarantineInvalid(run: Run, message: HeldMessage): Promise<void> {
  const failure = { name: 'Invalid', message: message.problem! }
  return applyVerdict(run, message, { attempts: 0, parked: 'quarantined', reason: 'invalid', failure })
}

export function missingHandler(run: Run, message: HeldMessage): Promise<void> {
  const { name } = run.worker.consumer
  const error = ownError(
    'HANDLER_MISSING',
    `consumer ${name} has no handler for ${message.type} in this process; deploy one that has, or add it`,
  )
  return recordFailure(run, message, error)
}

export async function applyVerdict({ worker, held }: Run, message: HeldMessage, verdict: Verdict): Promise<void> {
  const { runtime, consumer } = worker
  const record = () =>
    recordIn(held, message, verdict).catch(async (error: unknown) => {
      // The answer may be lost, and not the record. Nobody comes back to what waits for a person: it is told now, or never.
      if (someCause(error, isConnectionLoss) && (await isOnRecord(worker, message, verdict))) {
        await message.read?.()
        tellParked(runtime, toldOf(worker, message, verdict), verdict, message.fields)
      }
      throw error
    })
  const recorded = await runtime.traces.fail(consumer.name, message, verdict, record)
  if (!recorded) return
  worker.metrics.judged(message.type, recorded)
  await message.read?.()
  const told = toldOf(worker, message, recorded)
  if (recorded.parked === undefined) tellRetry(runtime, told, recorded, recorded.retryBy)
  else tellParked(runtime, told, recorded, message.fields)
}

/** What the encoding of the database lacks is written in ASCII: a failure that cannot be recorded would never be counted. */
async function recordIn(held: Held, message: HeldMessage, verdict: Verdict): Promise<Recorded | undefined> {
  try {
    return await held.fail(message, verdict)
  } catch (error) {
    const { failure } = verdict
    if (!isUntranslatable(error) || !failure) throw error
    return held.fail(message, { ...verdict, failure: inAscii(failure) })
  }
}

function toldOf({ consumer }: Worker, { message }: HeldMessage, { failure }: Verdict): Told {
  return { message, consumer: consumer.name, ...(failure && { error: failure }) }
}

/** Is this the verdict on record, as far as can be said while nobody else may have taken the message over? */
async function isOnRecord({ runtime, consumer }: Worker, message: HeldMessage, verdict: Verdict): Promise<boolean> {
  if (verdict.parked === undefined) return false
  const deadline = performance.now() + consumer.options.leaseMs / 2
  for (let attempt = 0; performance.now() < deadline; attempt++) {
    try {
      const [row] = await runtime.db.run(CLASSIFY, [[consumer.name, message.source, message.id, null]])
      return row?.state === verdict.parked && row.error === (verdict.failure ? JSON.stringify(verdict.failure) : null)
    } catch (error) {
      if (!someCause(error, isConnectionLoss)) return false
      await sleep(backoffMs(attempt, 50, 1_000))
    }
  }
  return false
}

/** What failed was not its own: it goes back for a moment, uncounted, and lets others go ahead. */
export async function putBack(held: Held, message: HeldMessage): Promise<void> {
  const delayMs = PUT_BACK_MS / 2 + (Math.random() * PUT_BACK_MS) / 2
  await held.fail(message, { attempts: isCounted(message) ? -1 : 0, delayMs })
}

const PUT_BACK_MS = 2_000

/** How many of its attempts found no handler: they ran nothing, so nothing but a missing handler is judged by them. */
export async function missedAttempts({ runtime, consumer }: Worker, message: HeldMessage): Promise<number> {
  const { source, id, attempts } = message
  const [row] = await runtime.db.run(MISSED_ATTEMPTS, { consumer: consumer.name, source, id, attempts })
  return Number(row!.missed)
}

/** A lost claim is no error: the worker that took it over runs its messages. */
export function isLost(error: unknown): boolean {
  for (const cause of causes(error)) if (isOwnError(cause, 'CLAIM_LOST')) return true
  return false
}
