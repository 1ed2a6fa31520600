/** Runs a consumer: its loop claims what is due and hands it to `group.ts`. `worker-life.ts` says when it runs. */
import { CALM_MS } from '../figures.js'
import { createPlans } from '../postgres/plans.js'
import { watch, type Runtime } from '../runtime.js'
import { createLoop, type Loop } from '../worker/loop.js'
import { Pace } from '../worker/pace.js'
import type { Trouble } from '../worker/trouble.js'
import { Claims } from './claims.js'
import type { ConsumerDeclaration } from './consumer.js'
import { runRound, type Round } from './drain-round.js'
import { runClaim } from './group.js'
import type { Loss } from './losses.js'
import type { Worker } from './run.js'
import { tellTakeover } from './takeover.js'
import { tappedClaim } from './tapped.js'
import { isAway } from './transaction.js'
import { WorkerLife } from './worker-life.js'

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
  const { concurrency } = options
  const life = new WorkerLife(runtime, name)
  const pace = new Pace(options.group, concurrency)
  const metrics = runtime.metrics.consumer(name)
  metrics.takes(consumer.types)
  const trouble = watch(runtime, { name, where: { consumer: name }, of: 'the database', calmMs: CALM_MS })
  const freshenPlans = createPlans(runtime.db)

  /** What cannot be given back is left to its lease. */
  const givesUp = (error: unknown): boolean => life.abort.aborted !== undefined || (life.isStopping() && !isAway(error))
  const claims = new Claims(runtime, consumer, pace, givesUp)
  const shared = {
    ...{ runtime, consumer, pace, metrics },
    losses: new Map<string, Loss>(),
    giveBackLater: (giveBack: () => Promise<void>) => claims.giveBackLater(giveBack),
    calm: () => claims.calm,
    noteAway: (error: unknown) => claims.noteAway(error),
  }

  let inFlight = 0
  /** Claims some of what is due, and runs it. Answers whether there was any. */
  const step = async (foundSome: (more: boolean) => void, round?: Round): Promise<boolean> => {
    inFlight++
    try {
      const claimed = await claims.next(round?.until)
      if (!claimed) {
        trouble.worked()
        return false
      }
      foundSome(claims.mayHaveLeft(claimed))
      const found = tappedClaim(name, claimed)
      tellTakeover(runtime, name, found)
      const worker: Worker = { ...shared, stop: life.abort, stopping: round?.isOver ?? life.isStopping }
      try {
        await runClaim(worker, round ? round.watch(found) : found)
      } finally {
        // Not before: a message that comes alone would wait for it.
        if (!worker.stopping()) freshenPlans()
      }
      trouble.worked()
      return true
    } finally {
      inFlight--
    }
  }

  const nextDueMs = async (): Promise<number | undefined> => {
    const ms = await claims.nextDueMs()
    // The database answers, and there is nothing to do. What is due may still fail.
    if (ms !== 0) trouble.worked()
    return ms
  }

  const failed = (error: unknown): void => {
    claims.noteAway(error)
    if (!life.isStopping()) trouble.failed(error)
  }

  const loop: Loop = createLoop({ slots: concurrency, step, nextDueMs, failed })

  const drained = {
    ...{ db: runtime.db, slots: concurrency, inFlight: () => inFlight },
    step(round: Round) {
      claims.lookEverywhere()
      return step(() => undefined, round)
    },
  }

  return {
    consumer,
    trouble,
    get inline() {
      return { ...shared, stop: life.abort, stopping: life.isEnding }
    },
    get alive() {
      return loop.alive
    },
    get failing() {
      return loop.alive && trouble.failures > 2 * concurrency
    },
    wake: loop.wake,
    start: (ready) => life.start(loop, ready),
    stop: (timeoutMs, others) =>
      life.stop(loop, timeoutMs, { others, givenBack: () => Promise.allSettled(claims.releasing) }),
    drain: () => life.drain((isOver) => runRound(drained, isOver)),
  }
}
