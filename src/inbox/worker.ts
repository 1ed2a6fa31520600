/**
 * Runs a consumer: its loop claims what is due and hands it to `group.ts`.
 *
 *     idle ──start──> running ──stop──> stopping ──all that runs has ended──> idle
 *
 * A drain may run beside the loop, or without it; what arrives runs in any state. A stop ends the loop and every drain, and
 * the stop of a whole box the arrivals too: nothing new begins, and what still runs when its patience is at an end is
 * aborted. A start that a stop has overtaken starts nothing.
 */
import { aboutMessage } from '../about.js'
import { OnceboxError } from '../errors.js'
import { CALM_MS } from '../figures.js'
import { beginTurn } from '../lifecycle.js'
import { tell, watch, type Runtime } from '../runtime.js'
import { DRAIN_UNTIL, NEXT_DUE } from '../postgres/sql/claim.js'
import { Abort } from '../worker/abort.js'
import { createLoop, type Loop } from '../worker/loop.js'
import { Pace } from '../worker/pace.js'
import type { Trouble } from '../worker/trouble.js'
import { sleep } from '../backoff.js'
import { Claims } from './claims.js'
import type { ConsumerDeclaration } from './consumer.js'
import { runClaim } from './group.js'
import { watched, type Claim } from './held.js'
import type { Loss } from './losses.js'
import { createPlans } from '../postgres/plans.js'
import type { Worker } from './run.js'
import { tappedClaim } from './tapped.js'
import { isAway } from './transaction.js'

export interface ConsumerWorker {
  readonly consumer: ConsumerDeclaration
  readonly alive: boolean
  /** Its slots fail, one after the other, and none has worked in between. */
  readonly failing: boolean
  /** Tells of failures to get it going. */
  readonly trouble: Trouble
  /**
   * Runs once it is `ready`, and once every stop that was asked for before is over; a stop that is asked for meanwhile
   * has the last word.
   */
  start(ready?: Promise<unknown>): Promise<void>
  readonly wake: () => void
  /**
   * Finishes what runs and releases the rest; after `timeoutMs` what still runs is aborted. With `others`, what runs on
   * arrival too: it is over when they are.
   */
  stop(timeoutMs: number, others?: Promise<unknown>): Promise<void>
  /** What it takes to run this consumer's messages on arrival, until the next stop. */
  readonly inline: Worker
  /**
   * Begins a drain, which the next stop ends. Each call of the answer is a round: it runs everything that was due when
   * the round began, so no message that is to run again runs twice, and waits for what this process has in flight. A
   * round answers whether it got anywhere: messages that only asked to be run later would keep a drain for ever.
   */
  drain(): () => Promise<boolean>
}

export function createWorker(runtime: Runtime, consumer: ConsumerDeclaration): ConsumerWorker {
  const { options, name } = consumer
  const pace = new Pace(options.group, options.concurrency)
  const metrics = runtime.metrics.consumer(name)
  metrics.takes(consumer.types)
  let stop = new Abort()
  let stopping = false
  /** The whole box is being stopped, arrivals included. */
  let ending = false
  /** Until the next stop: a start or a drain that a stop has overtaken starts nothing more. */
  let turn = beginTurn()
  /** All stops under way. */
  let halting: Promise<unknown> | undefined
  const draining = new Set<Promise<unknown>>()
  let inFlight = 0

  /** What cannot be given back is left to its lease. */
  const givesUp = (error: unknown): boolean => stop.aborted !== undefined || (stopping && !isAway(error))
  const claims = new Claims(runtime, consumer, pace, givesUp)
  const shared = {
    ...{ runtime, consumer, pace, metrics },
    losses: new Map<string, Loss>(),
    giveBackLater: (giveBack: () => Promise<void>) => claims.giveBackLater(giveBack),
    calm: () => claims.calm,
    noteAway: (error: unknown) => claims.noteAway(error),
  }
  const worker = (): Worker => ({ ...shared, stop, stopping: () => stopping })
  const freshenPlans = createPlans(runtime.db)

  const trouble = watch(runtime, { name, where: { consumer: name }, of: 'the database', calmMs: CALM_MS })
  const step = async (foundSome: (more: boolean) => void, drain?: DrainRound): Promise<boolean> => {
    inFlight++
    try {
      const claimed = await claims.next(drain?.until)
      if (!claimed) {
        trouble.worked()
        return false
      }
      foundSome(claims.mayHaveLeft(claimed))
      const found = tappedClaim(name, claimed)
      tellTakeover(found)
      freshenPlans()
      await (drain ? runClaim({ ...worker(), stopping: drain.isOver }, drain.watch(found)) : runClaim(worker(), found))
      trouble.worked()
      return true
    } finally {
      inFlight--
    }
  }

  const drainRound = async (isOver: () => boolean): Promise<boolean> => {
    const [row] = await runtime.db.run(DRAIN_UNTIL, null)
    let progressed = false
    const watch = (claim: Claim): Claim =>
      watched(claim, (_, fate) => {
        // What failed comes to an end after some attempts; what only asked for another time need not.
        if (!('retryBy' in fate) || fate.failure || fate.parked) progressed = true
      })
    let broken = false
    const ends = (): boolean => broken || isOver()
    const round: DrainRound = { until: row!.until, isOver: ends, watch }
    const slot = async (): Promise<void> => {
      while (!ends()) {
        claims.lookEverywhere()
        const found = await step(() => undefined, round).catch((error: unknown) => {
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
    const slots = Array.from({ length: options.concurrency }, slot)
    // A drain that fails leaves nothing running behind it.
    await Promise.allSettled(slots)
    await Promise.all(slots)
    while (inFlight > 0) await sleep(5)
    return progressed
  }

  const failed = (error: unknown): void => {
    claims.noteAway(error)
    if (!stopping) trouble.failed(error)
  }
  const tellTakeover = ({ queue }: Claim): void => {
    const suspects = queue.filter(({ suspect }) => suspect)
    if (suspects.length === 0) return
    metrics.tookOver(suspects.length)
    const about = { ...aboutMessage(suspects[0]!.message), consumer: name, messages: suspects.length }
    runtime.log.warn(about, 'messages are taken over from a worker that died or lost its lease')
    const messages = suspects.map(({ message: { id, source, type } }) => ({ id, source, type }))
    tell(runtime, 'takenOver', { consumer: name, messages })
  }

  const nextDueMs = async (): Promise<number | undefined> => {
    const [row] = await runtime.db.run(NEXT_DUE, { consumer: name })
    const ms = row?.ms ?? undefined
    // The database answers, and there is nothing to do. What is due may still fail.
    if (ms !== '0') trouble.worked()
    if (ms === undefined) return undefined
    // Something is due that a look at messages alone did not find.
    if (ms === '0') claims.lookEverywhere()
    return Number(ms)
  }

  const loop: Loop = createLoop({ slots: options.concurrency, step, nextDueMs, failed })

  const halt = async (timeoutMs: number, others: Promise<unknown> | undefined): Promise<void> => {
    stopping = true
    ending = others !== undefined
    const ended = Promise.all([loop.stop(), others, Promise.allSettled(draining)])
    const timer = setTimeout(() => {
      stop.abort(new OnceboxError('STOPPED', `the box stopped while ${name} was still running`))
    }, timeoutMs)
    try {
      await ended
      // What was given back on arrival while the database was away is on its way.
      await Promise.allSettled(claims.releasing)
    } finally {
      clearTimeout(timer)
      ending = false
      // What arrives from now on is run again: `handle` works on a box that is stopped too.
      if (stop.aborted) stop = new Abort()
    }
  }

  return {
    consumer,
    get inline() {
      return { ...shared, stop, stopping: () => ending }
    },
    get alive() {
      return loop.alive
    },
    get failing() {
      return loop.alive && trouble.failures > 2 * options.concurrency
    },
    trouble,
    async start(ready) {
      const { goesOn } = turn
      await ready
      while (halting) await halting
      // What runs is stopped by the handle that it was started with.
      if (!goesOn() || loop.alive) return
      stopping = false
      stop = new Abort()
      runtime.traces.background(() => loop.start())
    },
    wake: loop.wake,
    stop(timeoutMs, others) {
      turn.end()
      turn = beginTurn()
      const stopped = halt(timeoutMs, others)
      const all = Promise.allSettled([halting, stopped]).then(() => {
        if (halting === all) halting = undefined
      })
      halting = all
      return stopped
    },
    drain() {
      const { goesOn } = turn
      return async () => {
        // A stop under way ends first.
        await halting
        if (!goesOn()) return false
        const round = drainRound(() => !goesOn())
        draining.add(round)
        try {
          return await round
        } finally {
          draining.delete(round)
        }
      }
    },
  }
}

/** One round of a drain: what it takes, what ends it, and how it watches its claims get somewhere. */
interface DrainRound {
  readonly until: string
  isOver(): boolean
  watch(claimed: Claim): Claim
}
