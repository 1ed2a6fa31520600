/** Keeps sources running: started with backoff until they are, stopped together. */
import type { Deliver, Source } from '../brokers/source.js'
import { backoffMs, sleep } from '../backoff.js'
import { OnceboxError } from '../errors.js'

export interface Sources {
  add(source: Source, deliver: Deliver): void
  start(source: Source): void
  startAll(): void
  stopAll(timeoutMs: number): Promise<void>
  /** True if every source that should run does, and its last delivery succeeded. */
  readonly healthy: boolean
}

interface Attached {
  readonly deliver: Deliver
  state: 'idle' | 'starting' | 'running' | 'stopped'
  run: Run | undefined
  /** It runs, but its broker is out of reach. */
  cutOff: boolean
  /** What its deliveries have failed of since the last one that succeeded. */
  readonly failures: Set<string>
}

/** One start, until its stop. */
interface Run {
  started: Promise<void>
  /** A stop came while it was starting, and did not wait for it. */
  overtaken: boolean
  readonly stopped: Promise<void>
  stop(): void
}

/**
 * Sources of any box. One has a single way to deliver: a second box would get nothing, and stop what the first one gets.
 * They stay with their box when it stops, for it may start again.
 */
const taken = new WeakSet<Source>()
/** Of one row of failed deliveries so many different ones are told: an error may name something new every time. */
const MOST_TOLD = 10
/** How long a stop waits for a start that is under way. */
const STARTING_MS = 200

export function createSources(report: (error: unknown, where: { source: Source }) => void): Sources {
  const attached = new Map<Source, Attached>()

  const start = async (source: Source, entry: Attached, run: Run): Promise<void> => {
    const goesOn = (): boolean => entry.run === run && entry.state === 'starting'
    for (let attempt = 0; goesOn(); attempt++) {
      try {
        await source.start(entry.deliver, (problem) => {
          entry.cutOff = problem !== undefined
          if (problem !== undefined) report(problem, { source })
        })
        if (goesOn()) entry.state = 'running'
        // What its stop found had not begun yet; a newer start takes it over as it is.
        else if (run.overtaken && entry.run === run) await source.stop()
        return
      } catch (error) {
        report(error, { source })
        if (goesOn()) await sleep(backoffMs(attempt, 100, 5_000), run.stopped)
      }
    }
  }

  /** Tells of each failure once until deliveries succeed again: a source tries many times a second. */
  const watched = (source: Source, deliver: Deliver): Attached => {
    const failures = new Set<string>()
    const entry: Attached = {
      state: 'idle',
      run: undefined,
      cutOff: false,
      failures,
      async deliver(batch) {
        try {
          const outcomes = await deliver(batch)
          failures.clear()
          return outcomes
        } catch (error) {
          const problem = error instanceof Error ? error.message : String(error)
          // What a stop cuts short is no trouble.
          if (entry.state !== 'stopped' && !failures.has(problem) && failures.size < MOST_TOLD) {
            failures.add(problem)
            report(error, { source })
          }
          throw error
        }
      },
    }
    return entry
  }

  return {
    add(source, deliver) {
      if (taken.has(source)) {
        const advice = 'make one source for each box, and attach it once'
        throw new OnceboxError('OPTION_INVALID', `from: this source is attached already; ${advice}`)
      }
      taken.add(source)
      attached.set(source, watched(source, deliver))
    },
    start(source) {
      const entry = attached.get(source)!
      if (entry.state === 'starting' || entry.state === 'running') return
      entry.state = 'starting'
      entry.cutOff = false
      entry.failures.clear()
      entry.run = createRun()
      entry.run.started = start(source, entry, entry.run)
    },
    startAll() {
      for (const source of attached.keys()) this.start(source)
    },
    async stopAll(timeoutMs) {
      const stops = [...attached].map(async ([source, entry]) => {
        if (entry.state === 'idle' || entry.state === 'stopped') return
        const run = entry.run!
        const wasRunning = entry.state === 'running'
        entry.state = 'stopped'
        run.stop()
        let begun = wasRunning
        if (!wasRunning)
          await sleep(
            STARTING_MS,
            run.started.then(() => (begun = true)),
          )
        run.overtaken = !begun
        try {
          await source.stop()
        } catch (error) {
          report(error, { source })
        }
      })
      await sleep(timeoutMs, Promise.all(stops))
    },
    get healthy() {
      return [...attached.values()].every(
        ({ state, cutOff, failures }) =>
          state !== 'starting' && !(state === 'running' && (cutOff || failures.size > 0)),
      )
    },
  }
}

function createRun(): Run {
  let stop = (): void => undefined
  const stopped = new Promise<void>((resolve) => (stop = resolve))
  return { started: Promise.resolve(), overtaken: false, stopped, stop: () => stop() }
}
