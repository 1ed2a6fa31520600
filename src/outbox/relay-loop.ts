/** Runs the relay of one sink: batch after batch while there is something, then looking less and less often. */
import { CALM_MS } from '../figures.js'
import { createPlans } from '../postgres/plans.js'
import { watch, type Runtime } from '../runtime.js'
import { backoffMs, sleep } from '../backoff.js'
import { readable } from '../readable.js'
import { beginTurn, type OwnTurn, type Turn } from '../lifecycle.js'
import { createCare } from './apart.js'
import { Naps, SHORTEST_MS } from './naps.js'
import { createSuspects } from './suspects.js'
import type { Attached } from './options.js'
import { DestinationDown } from './publish.js'
import { relayBatch, type Answered, type Step } from './relay.js'

export interface RelayLoop {
  readonly attached: Attached
  start(): void
  /** Something may have been sent: look again soon. */
  nudge(): void
  /**
   * Publishes everything that is due, as long as its turn goes on. Answers whether there was any; throws what the sink threw if it
   * is down.
   */
  drain(turn: Turn): Promise<boolean>
  /** Finishes the batch in flight. Resolves after `timeoutMs` at the latest. */
  stop(timeoutMs: number): Promise<void>
  /** What keeps events from being published, for people. */
  readonly problem: string | undefined
  /** Since when its destination is down, in ms since 1970, as far as this process has tried. Undefined: it is not. */
  readonly downSince: number | undefined
}

/** A relay that finds nothing looks half as often each time, until it naps for so long. */
const LONGEST_NAP_MS = 1_000
/** While the destination is down. */
const DOWN_MS = { first: 100, most: 30_000 }
/** While the database is. */
const AWAY_MS = { first: 50, most: 1_000 }
/** It may fail a few times, as in a restart of the database, before it counts as failing. */
const FEW_FAILURES = 2

export function createRelayLoop(
  runtime: Runtime,
  attached: Attached,
  /** Resolves once the sink is in the database. */
  registered: () => Promise<void>,
): RelayLoop {
  const { name, sink } = attached
  const down = watch(runtime, { name, where: { sink }, of: 'its broker' })
  const away = watch(runtime, { name, where: { sink }, of: 'the database', calmMs: CALM_MS })
  let running: { readonly turn: OwnTurn; readonly ended: Promise<void> } | undefined
  const naps = new Naps()
  let inFlight: Promise<unknown> | undefined
  const lookAfterPlans = createPlans(runtime.db, ['outbox', 'delivery'])
  const memory = { care: createCare(), suspects: createSuspects(), unreleased: new Set<string>() }

  /** One batch at a time: a drain and the loop must not both publish events of one key. Undefined: the turn is over, and none was begun. */
  const step = async ({ goesOn }: Turn): Promise<Step | undefined> => {
    while (inFlight) await inFlight.catch(() => undefined)
    if (!goesOn()) return undefined
    const batch = registered().then(() => relayBatch(runtime, attached, memory))
    inFlight = batch
    try {
      const done = await batch
      if (done.found === 'published') lookAfterPlans()
      return done
    } finally {
      inFlight = undefined
    }
  }

  /** An answer that takes none shows that the destination is there, not that it works. */
  const hear = ({ took, problem }: Answered): void => {
    if (problem !== undefined) down.failed(problem)
    else if (!took) down.answered()
    else if (!memory.suspects.waiting) down.worked()
  }

  const recover = (error: unknown, { over }: OwnTurn): Promise<unknown> => {
    const isDown = error instanceof DestinationDown
    const trouble = isDown ? down : away
    const { first, most } = isDown ? DOWN_MS : AWAY_MS
    const ms = backoffMs(trouble.failures, first, most)
    trouble.failed(isDown ? error.cause : error)
    // Not cut short by a nudge: what is sent now would fail like the rest.
    return sleep(ms, over)
  }

  const run = async (turn: OwnTurn): Promise<void> => {
    let pollMs = SHORTEST_MS
    while (turn.goesOn()) {
      try {
        const done = await step(turn)
        if (!done) return
        const { found, nextMs, answer } = done
        away.worked()
        if (answer) hear(answer)
        if (found !== 'none') {
          pollMs = SHORTEST_MS
          continue
        }
        const nudged = await naps.nap(Math.max(1, Math.min(pollMs, nextMs ?? pollMs)), turn)
        pollMs = nudged ? SHORTEST_MS : Math.min(LONGEST_NAP_MS, pollMs * 2)
      } catch (thrown) {
        await recover(readable(thrown), turn)
      }
    }
  }

  return {
    attached,
    get problem() {
      if (!running) return undefined
      if (down.failures > 0) return `sink ${name} is down: ${down.latest}`
      return away.failures > FEW_FAILURES ? `the relay of sink ${name} fails every time: ${away.latest}` : undefined
    },
    get downSince() {
      return running !== undefined && down.failures > 0 ? down.since : undefined
    },
    start() {
      if (running) return
      const turn = beginTurn()
      // With no picture of the tables, as after an upgrade of the server, many keys that wait could cost a scan each.
      lookAfterPlans()
      running = { turn, ended: run(turn) }
    },
    nudge: () => naps.nudge(),
    async drain(turn) {
      let worked = false
      try {
        for (;;) {
          const done = await step(turn)
          if (!done || done.found === 'none') return worked
          worked = true
        }
      } catch (error) {
        throw error instanceof DestinationDown ? error.cause : error
      }
    },
    async stop(timeoutMs) {
      running?.turn.end()
      await sleep(timeoutMs, Promise.all([running?.ended, inFlight?.catch(() => undefined)]))
      running = undefined
    },
  }
}
