/** Runs a consumer: its loop claims what is due and hands it to `group.ts`. */
import { OnceboxError } from '../errors.js'
import type { Runtime } from '../runtime.js'
import { callHook } from '../runtime.js'
import { NEXT_DUE } from '../postgres/sql/claim.js'
import { Abort } from '../worker/abort.js'
import { createLoop, type Loop } from '../worker/loop.js'
import { Pace } from '../worker/pace.js'
import { sleep } from '../backoff.js'
import { claimMessages, type Claim } from './claim.js'
import type { ConsumerDeclaration } from './consumer.js'
import { runClaim } from './group.js'
import { claimLanes } from './lanes.js'
import { createPlans } from './plans.js'
import type { Worker } from './running.js'

export interface ConsumerWorker {
  readonly consumer: ConsumerDeclaration
  readonly alive: boolean
  start(): void
  wake(): void
  /**
   * Finishes what runs and releases the rest; after `timeoutMs` what still runs is aborted. With `others`, what runs on
   * arrival too: it is over when they are.
   */
  stop(timeoutMs: number, others?: Promise<unknown>): Promise<void>
  /** What it takes to run this consumer's messages on arrival, until the next stop. */
  readonly inline: Worker
  /** Runs everything that is due, and waits for what this process has in flight. Answers whether there was any. */
  drain(): Promise<boolean>
}

/** Consumers without order look for lanes too, in case they had one before: no row may be out of everybody's sight. */
const LANES_LOOK_MS = 5_000
/** The low-water hint is left out so often, to find what committed late. */
const LATE_LOOK_MS = 1_000
/** Commits may lag behind their time by this much before they wait for the next look without the hint. */
const LATE_MARGIN_MS = 2_000

export function createWorker(runtime: Runtime, consumer: ConsumerDeclaration): ConsumerWorker {
  const { options, name } = consumer
  const pace = new Pace(options.group, options.concurrency)
  let stop = new Abort()
  let stopping = false
  /** The whole box is being stopped, arrivals included. */
  let ending = false
  let inFlight = 0
  let lastLanes = -Infinity
  let lanesFirst = options.order === 'key'
  let low: { readonly at: string; readonly until: number } | undefined

  const losses: Worker['losses'] = new Map()
  const releasing = new Set<Promise<void>>()
  const worker = (): Worker => ({ runtime, consumer, pace, stop, stopping: () => stopping, losses, releasing })
  const freshenPlans = createPlans(runtime)

  const claim = async (): Promise<Claim | undefined> => {
    // Leases that ran out while the database was away are ours to give back: to claim them would count as a death.
    if (releasing.size > 0) await Promise.allSettled(releasing)
    const size = pace.claimSize
    const loose = async (): Promise<Claim | undefined> => {
      const hinted = hint()
      let found = await claimMessages(runtime, consumer, size, hinted)
      if (!found && hinted !== undefined) {
        low = undefined
        found = await claimMessages(runtime, consumer, size, undefined)
      }
      pace.claimed(found?.queue.length ?? 0, size)
      return found
    }
    const lanes = (): Promise<Claim | undefined> => claimLanes(runtime, consumer, size)
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

  const step = async (foundSome: () => void): Promise<boolean> => {
    inFlight++
    try {
      const found = await claim()
      if (!found) return false
      foundSome()
      freshenPlans()
      await runClaim(worker(), found)
      return true
    } finally {
      inFlight--
    }
  }

  const failed = (error: unknown): void => {
    if (stopping) return
    const cause = error instanceof Error ? error : new Error(String(error))
    runtime.log.warn({ consumer: name, error: cause.message }, 'a worker failed and will try again')
    if (runtime.hooks.error) callHook(runtime, 'error', () => runtime.hooks.error!(cause, { consumer: name }))
  }

  const nextDueMs = async (): Promise<number | undefined> => {
    const rows = await runtime.db.run(NEXT_DUE, [name])
    const ms = rows[0]?.['ms']
    if (typeof ms !== 'string') return undefined
    // Something is due that a look at messages alone did not find.
    if (ms === '0') lastLanes = -Infinity
    return Number(ms)
  }

  const loop: Loop = createLoop({ slots: options.concurrency, step, nextDueMs, failed })

  return {
    consumer,
    get inline() {
      return { runtime, consumer, pace, losses, releasing, stop, stopping: () => ending }
    },
    get alive() {
      return loop.alive
    },
    start() {
      // What runs is stopped by the handle that it was started with.
      if (loop.alive) return
      stopping = false
      stop = new Abort()
      loop.start()
    },
    wake: () => loop.wake(),
    async stop(timeoutMs, others) {
      stopping = true
      ending = others !== undefined
      // What was given back on arrival while the database was away is on its way.
      const stopped = Promise.all([loop.stop(), others]).then(() => Promise.allSettled(releasing))
      const timer = setTimeout(() => {
        stop.abort(new OnceboxError('STOPPED', `the box stopped while ${name} was still running`))
      }, timeoutMs)
      try {
        await stopped
      } finally {
        clearTimeout(timer)
        ending = false
        // What arrives from now on is run again: `handle` works on a box that is stopped too.
        if (stop.aborted) stop = new Abort()
      }
    },
    async drain() {
      stopping = false
      lastLanes = -Infinity
      let worked = false
      const slot = async (): Promise<void> => {
        for (;;) {
          low = undefined
          if (stopping || !(await step(() => undefined))) return
          worked = true
          // An embedded database answers without the event loop, and timers would never get their turn.
          await new Promise((resolve) => setImmediate(resolve))
        }
      }
      await Promise.all(Array.from({ length: options.concurrency }, slot))
      while (inFlight > 0) await sleep(5)
      return worked
    },
  }
}
