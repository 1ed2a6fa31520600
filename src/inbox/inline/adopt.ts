/**
 * Adopt: takes a message on arrival into the box, claimed by us, and runs it like a stored one; copies of it are told
 * `busy` meanwhile. So runs a message whose handler calls effects, which cannot keep its transaction, and with it its mark,
 * open during the call. And so runs one that is redelivered: its last worker may have died of it, and only a claim tells a
 * worker that died from one that was stopped or cut off.
 */
import { isConflict } from '../../postgres/errors.js'
import { randomUUID } from 'node:crypto'
import { ADOPT } from '../../postgres/sql/effects.js'
import type { Arrival } from '../arrival.js'
import { looseClaim } from '../claim.js'
import { isLost } from '../fail.js'
import { hold, runNext } from '../group.js'
import { setAttempts, watched, type HeldMessage } from '../held.js'
import { failed, handled, type Ackable } from '../outcome.js'
import type { Worker } from '../run.js'
import { arrivalRow } from './mark.js'

/** How long to wait for the mark of a copy in flight. */
const LOCK_WAIT = '5ms'

/** Answers undefined if somebody else has it, or had it before it was through. */
export async function runAdopted(worker: Worker, arrival: Arrival): Promise<Ackable | undefined> {
  const { runtime, consumer } = worker
  const token = randomUUID()
  const row = await adopt(worker, arrival, token)
  if (row === undefined) return undefined
  const message: HeldMessage = { ...arrival, n: row.n, suspect: row.suspect === 'true' }
  setAttempts(message, Number(row.attempts))
  // What the box has stored it goes on with itself: its sender has forgotten it.
  const retryBy = row.stored === 'true' ? 'box' : consumer.options.retryBy
  const claim = looseClaim(runtime, consumer, token, { messages: [message], retryBy })
  let answer: Ackable | undefined
  const noted = watched(claim, (fate, late) => {
    if ('retryBy' in fate) answer = failed(consumer.name, fate)
    else answer = { ...handled(consumer.name, fate.result), ...(late?.warned && { ack: false }) }
  })
  await hold(worker, noted, runNext).catch((error: unknown) => {
    if (!isLost(error)) throw error
  })
  return answer
}

async function adopt({ runtime, consumer, calm }: Worker, arrival: Arrival, token: string) {
  const { leaseMs, retryBy } = consumer.options
  const reason = retryBy === 'source' ? 'arrival' : null
  const claim = { consumer: consumer.name, token, leaseMs, lockTimeout: LOCK_WAIT, reason, calm: calm() } as const
  try {
    const [row] = await runtime.db.run(ADOPT, { ...claim, message: arrivalRow(arrival) })
    return row
  } catch (error) {
    if (isConflict(error)) return undefined
    throw error
  }
}
