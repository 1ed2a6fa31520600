/** Runs a consumer: its loop claims what is due and hands it to `group.ts`. */
import { OnceboxError } from '../errors.js'
import { watch, type Runtime } from '../runtime.js'
import { DRAIN_UNTIL, NEXT_DUE, type Due } from '../postgres/sql/claim.js'
import { Abort } from '../worker/abort.js'
import { createLoop, type Loop } from '../worker/loop.js'
import { Pace } from '../worker/pace.js'
import type { Trouble } from '../worker/trouble.js'
import { sleep } from '../backoff.js'
import { claimMessages } from './claim.js'
import type { ConsumerDeclaration } from './consumer.js'
import { runClaim } from './group.js'
import { watched, type Claim } from './held.js'
import { claimLanes } from './lanes.js'
import { createPlans } from './plans.js'
import type { Worker } from './run.js'
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
  wake(): void
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

/** Consumers without order look for lanes too, in case they had one before: no row may be out of everybody's sight. */
const LANES_LOOK_MS = 5_000
/** The low-water hint is left out so often, to find what committed late. */
const LATE_LOOK_MS = 1_000
/** Commits may lag behind their time by this much before they wait for the next look without the hint. */
const LATE_MARGIN_MS = 2_000
/**
 * For so long after an outage nothing is taken from others whose lease ran out in it. They met it too, and give back what
 * they hold within a second; taken from them, it would count as a death.
 */
const GRACE_MS = 3_000
/** Of several slots one may work while the next one fails. */
const CALM_MS = 1_000

export function createWorker(runtime: Runtime, consumer: ConsumerDeclaration): ConsumerWorker {
  const { options, name } = consumer
  const pace = new Pace(options.group, options.concurrency)
  let stop = new Abort()
  let stopping = false
  /** The whole box is being stopped, arrivals included. */
  let ending = false
  /** How often it was told to stop: a start or a drain that a stop has overtaken starts nothing more. */
  let stops = 0
  /** All stops under way. */
  let halting: Promise<unknown> | undefined
  const draining = new Set<Promise<unknown>>()
  let inFlight = 0
  let lastLanes = -Infinity
  let lanesFirst = options.order === 'key'
  /** When the database was away last. */
  let lastAway = -Infinity
  let low: { readonly at: string; readonly until: number } | undefined

  const losses: Worker['losses'] = new Map()
  const releasing = new Set<Promise<void>>()
  const noteAway = (error: unknown): void => {
    if (isAway(error)) lastAway = performance.now()
  }
  // What waits to be given back here was cut off in an outage that may not be over.
  const calm = (): boolean => releasing.size > 0 || performance.now() - lastAway < GRACE_MS
  const shared = { runtime, consumer, pace, calm, noteAway, losses, releasing }
  const worker = (): Worker => ({ ...shared, stop, stopping: () => stopping })
  const freshenPlans = createPlans(runtime)

  const claim = async (until?: string): Promise<Claim | undefined> => {
    // Leases that ran out while the database was away are ours to give back: to claim them would count as a death.
    if (releasing.size > 0) {
      await Promise.allSettled(releasing)
      lastAway = performance.now()
    }
    const size = pace.claimSize
    const due: Due = { until, calm: calm() }
    const loose = async (): Promise<Claim | undefined> => {
      const hinted = hint()
      let found = await claimMessages(runtime, consumer, size, { low: hinted, ...due })
      if (!found && hinted !== undefined) {
        low = undefined
        found = await claimMessages(runtime, consumer, size, { low: undefined, ...due })
      }
      pace.claimed(found?.queue.length ?? 0, size)
      return found
    }
    const lanes = (): Promise<Claim | undefined> => claimLanes(runtime, consumer, size, due)
    if (options.order === 'none') {
      const found = await loose()
      if (found) return remember(found)
      if (performance.now() - lastLanes < LANES_LOOK_MS) return undefined
      lastLanes = performance.now()
      return lanes()
    }
    // Messages without a key must not starve behind those with one, nor the other way round.
    lanesFirst = !lanesFirst
    return lanesFirst ? ((await lanes()) ?? (await loose())) : ((await loose()) ?? (await lanes()))
  }
  const hint = (): string | undefined => (low && performance.now() < low.until ? low.at : undefined)
  const remember = (found: Claim): Claim => {
    if (!hint()) {
      const earliest = Math.min(...found.queue.map(({ message }) => message.receivedAt.getTime()))
      low = { at: new Date(earliest - LATE_MARGIN_MS).toISOString(), until: performance.now() + LATE_LOOK_MS }
    }
    return found
  }

  const trouble = watch(runtime, { name, where: { consumer: name }, of: 'the database', calmMs: CALM_MS })
  const step = async (foundSome: () => void, drain?: DrainRound): Promise<boolean> => {
    inFlight++
    try {
      const found = await claim(drain?.until)
      if (!found) {
        trouble.worked()
        return false
      }
      foundSome()
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
      watched(claim, (fate) => {
        // What failed comes to an end after some attempts; what only asked for another time need not.
        if (!('retryBy' in fate) || fate.failure || fate.parked) progressed = true
      })
    const round: DrainRound = { until: row!.until, isOver, watch }
    lastLanes = -Infinity
    const slot = async (): Promise<void> => {
      while (!isOver()) {
        low = undefined
        const found = await step(() => undefined, round).catch((error: unknown) => {
          // What a stop has aborted is given back: that is no failure of the drain.
          if (!isOver()) throw error
        })
        if (!found) return
        // An embedded database answers without the event loop, and timers would never get their turn.
        await new Promise((resolve) => setImmediate(resolve))
      }
    }
    await Promise.all(Array.from({ length: options.concurrency }, slot))
    while (inFlight > 0) await sleep(5)
    return progressed
  }

  const failed = (error: unknown): void => {
    noteAway(error)
    if (!stopping) trouble.failed(error)
  }
  const tellTakeover = ({ queue }: Claim): void => {
    const suspects = queue.filter(({ suspect }) => suspect)
    if (suspects.length === 0) return
    const about = { consumer: name, messages: suspects.length, id: suspects[0]!.message.id }
    runtime.log.warn(about, 'messages are taken over from a worker that died or lost its lease')
  }

  const nextDueMs = async (): Promise<number | undefined> => {
    const [row] = await runtime.db.run(NEXT_DUE, { consumer: name })
    const ms = row?.ms ?? undefined
    // The database answers, and there is nothing to do. What is due may still fail.
    if (ms !== '0') trouble.worked()
    if (ms === undefined) return undefined
    // Something is due that a look at messages alone did not find.
    if (ms === '0') lastLanes = -Infinity
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
      await Promise.allSettled(releasing)
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
      const turn = stops
      await ready
      while (halting) await halting
      // What runs is stopped by the handle that it was started with.
      if (stops !== turn || loop.alive) return
      stopping = false
      stop = new Abort()
      loop.start()
    },
    wake: () => loop.wake(),
    stop(timeoutMs, others) {
      stops++
      const stopped = halt(timeoutMs, others)
      const all = Promise.allSettled([halting, stopped]).then(() => {
        if (halting === all) halting = undefined
      })
      halting = all
      return stopped
    },
    drain() {
      const turn = stops
      return async () => {
        // A stop under way ends first.
        await halting
        if (stops !== turn) return false
        const round = drainRound(() => stops !== turn)
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
