/**
 * A round of a drain: runs everything that was due when the round began, in as many slots as the consumer may have, and waits
 * for what its loop has in flight. A message that is to run again falls due after that, so none runs twice.
 */
import { sleep } from '../backoff.js'
import { DRAIN_UNTIL } from '../postgres/sql/claim.js'
import type { Database } from '../postgres/database.js'
import { watched, type Claim } from './held.js'

/** What the steps of a round are told. */
export interface Round {
  /** Only what had fallen due by then. */
  readonly until: string
  readonly isOver: () => boolean
  /** The claim, watched for whether it gets anywhere. */
  watch(claimed: Claim): Claim
}

interface Drained {
  readonly db: Database
  readonly slots: number
  /** Claims some of what is due, wherever it is, and runs it. Answers whether there was any. */
  step(round: Round): Promise<boolean>
  /** Steps under way, of the loop and of other drains too. */
  inFlight(): number
}

/** Answers whether it got anywhere: messages that only asked to be run later would keep a drain for ever. */
export async function runRound({ db, slots, step, inFlight }: Drained, isOver: () => boolean): Promise<boolean> {
  const [row] = await db.run(DRAIN_UNTIL, null)
  let progressed = false
  let broken = false
  const ends = (): boolean => broken || isOver()
  const watch = (claim: Claim): Claim =>
    watched(claim, (_, fate) => {
      // What failed comes to an end after some attempts; what only asked for another time need not.
      if (!('retryBy' in fate) || fate.failure || fate.parked) progressed = true
    })
  const round: Round = { until: row!.until, isOver: ends, watch }
  const slot = async (): Promise<void> => {
    while (!ends()) {
      const found = await step(round).catch((error: unknown) => {
        // What a stop has aborted is given back: that is no failure of the drain.
        if (isOver()) return false
        broken = true
        throw error
      })
      if (!found) return
      // An embedded database answers without the event loop, and timers would never get their turn.
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  const running = Array.from({ length: slots }, slot)
  // A drain that fails leaves nothing running behind it.
  await Promise.allSettled(running)
  await Promise.all(running)
  while (inFlight() > 0) await sleep(5)
  return progressed
}
