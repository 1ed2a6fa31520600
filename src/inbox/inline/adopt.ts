/**
 * Adopt: takes a message on arrival into the box, claimed by us, and runs it like a stored one; copies of it are told
 * `busy` meanwhile. So runs a message whose handler calls effects, which cannot keep its transaction, and with it its mark,
 * open during the call. And so runs one that is redelivered: its last worker may have died of it, and only a claim tells a
 * worker that died from one that was stopped or cut off.
 */
import { isConflict, mayHaveCommitted } from '../../postgres/errors.js'
import { randomUUID } from 'node:crypto'
import type { Retrial } from '../../hooks.js'
import { ADOPT, ADOPT_NEW } from '../../postgres/sql/effects.js'
import type { Arrival } from '../arrival.js'
import { looseClaim } from '../claim.js'
import type { ConsumerDeclaration } from '../consumer.js'
import { isLost } from '../fail.js'
import { hold, runNext } from '../group.js'
import { setAttempts, watched, type HeldMessage } from '../held.js'
import { failed, handled, type Ackable } from '../outcome.js'
import { horizonOf } from '../known.js'
import type { Run, Worker } from '../run.js'
import { giveBackUnheard } from '../unheard.js'
import { arrivalRow, keyOf, markRow } from './mark.js'

/** How long to wait for the mark of a copy in flight. */
const LOCK_WAIT = '5ms'

/** Answers undefined if somebody else has it, or had it before it was through. */
export async function runAdopted(worker: Worker, arrival: Arrival): Promise<Ackable | undefined> {
  const token = randomUUID()
  const row = await adopt(worker, arrival, token)
  if (row === undefined) return undefined
  const message: HeldMessage = { ...arrival, n: row.n, suspect: row.suspect === 'true' }
  setAttempts(message, Number(row.attempts))
  // What the box has stored it goes on with itself: its sender has forgotten it.
  const retryBy = row.stored === 'true' ? 'box' : worker.consumer.options.retryBy
  const answers = await runClaimed(worker, { messages: [message], token, retryBy })
  return answers.get(message)
}

/**
 * Runs the leading ones of these that nobody knows, under one claim: should the worker die, all of them are suspects, and run
 * alone from then on. Answers for those that were ours, as `runAdopted` does. None: the first is known, or held.
 */
export async function runUnknown(
  worker: Worker,
  arrivals: readonly Arrival[],
): Promise<ReadonlyMap<Arrival, Ackable | undefined>> {
  const token = randomUUID()
  const numbers = new Map((await adoptNew(worker, arrivals, token)).map((row) => [keyOf(row), row.n]))
  const ours = arrivals.filter((arrival) => numbers.has(keyOf(arrival)))
  if (ours.length === 0) return new Map()
  const messages = ours.map((arrival): HeldMessage => ({ ...arrival, n: numbers.get(keyOf(arrival))!, suspect: false }))
  const answers = await runClaimed(worker, { messages, token, retryBy: worker.consumer.options.retryBy })
  return new Map(ours.map((arrival, at) => [arrival, answers.get(messages[at]!)]))
}

interface Claimed {
  readonly messages: readonly HeldMessage[]
  readonly token: string
  readonly retryBy: Retrial['retryBy']
}

/** Runs all of them as stored ones run. What there is no answer for is somebody else's, or was given back. */
async function runClaimed(
  worker: Worker,
  { messages, token, retryBy }: Claimed,
): Promise<ReadonlyMap<HeldMessage, Ackable>> {
  const { runtime, consumer } = worker
  const answers = new Map<HeldMessage, Ackable>()
  const claim = looseClaim(runtime, consumer, token, { messages: [...messages], retryBy })
  const noted = watched(claim, (message, fate, late) => {
    const answer =
      'retryBy' in fate
        ? failed(consumer.name, fate)
        : { ...handled(consumer.name, fate.result), ...(late?.warned && { ack: false }) }
    answers.set(message, answer)
  })
  await hold(worker, noted, runToEnd).catch((error: unknown) => {
    if (!isLost(error)) throw error
  })
  return answers
}

/** Their sender waits for all of them. */
async function runToEnd(run: Run): Promise<void> {
  while (run.held.queue.length > 0 && !run.abort.aborted && !run.worker.stopping()) await runNext(run)
}

async function adopt(worker: Worker, arrival: Arrival, token: string) {
  const { runtime, consumer, calm } = worker
  const claim = { ...claimOf(consumer, token), calm: calm() }
  const [row] = await unlessHeld(worker, token, () => runtime.db.run(ADOPT, { ...claim, message: arrivalRow(arrival) }))
  return row
}

function adoptNew(worker: Worker, arrivals: readonly Arrival[], token: string) {
  const { runtime, consumer } = worker
  const claim = { ...claimOf(consumer, token), ...horizonOf(consumer) }
  return unlessHeld(worker, token, () => runtime.db.run(ADOPT_NEW, { ...claim, messages: arrivals.map(markRow) }))
}

function claimOf({ name, options: { leaseMs, retryBy } }: ConsumerDeclaration, token: string) {
  const reason = retryBy === 'source' ? ('arrival' as const) : null
  return { consumer: name, token, leaseMs, lockTimeout: LOCK_WAIT, reason }
}

/** A copy in flight holds its mark. What may be adopted though the answer was lost is given back. */
async function unlessHeld<Row>(
  { runtime, consumer, giveBackLater }: Worker,
  token: string,
  adopt: () => Promise<readonly Row[]>,
): Promise<readonly Row[]> {
  const asked = performance.now()
  try {
    return await adopt()
  } catch (error) {
    if (isConflict(error)) return []
    if (mayHaveCommitted(error)) giveBackLater(() => giveBackUnheard({ runtime, consumer, token, asked }))
    throw error
  }
}
