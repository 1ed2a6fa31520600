/** Keeps sources running: started with backoff until they are, stopped together. */
import type { Source } from '../brokers/source.js'
import type { Incoming, Outcome } from '../message.js'
import { backoffMs, sleep } from './backoff.js'

type Deliver = (batch: readonly Incoming[]) => Promise<readonly Outcome[]>

export interface Sources {
  add(source: Source, deliver: Deliver): void
  start(source: Source): void
  startAll(): void
  stopAll(timeoutMs: number): Promise<void>
  /** True if every source that should run does. */
  readonly healthy: boolean
}

interface Attached {
  readonly deliver: Deliver
  state: 'idle' | 'starting' | 'running' | 'stopped'
  /** The latest start: one that a stop has overtaken must not go on. */
  run: { readonly started: Promise<void>; overtaken: boolean } | undefined
}

/** How long a stop waits for a start that is under way. */
const STARTING_MS = 200

export function createSources(report: (error: unknown, where: { source: Source }) => void): Sources {
  const attached = new Map<Source, Attached>()

  const start = async (source: Source, entry: Attached): Promise<void> => {
    for (let attempt = 0; entry.state === 'starting'; attempt++) {
      try {
        await source.start(entry.deliver)
        // stop() may have come in between; it waits for us and then stops the source.
        if (entry.state === 'starting') entry.state = 'running'
        return
      } catch (error) {
        report(error, { source })
        await sleep(backoffMs(attempt, 100, 5_000))
      }
    }
  }

  return {
    add: (source, deliver) => void attached.set(source, { deliver, state: 'idle', starting: undefined }),
    start(source) {
      const entry = attached.get(source)!
      if (entry.state === 'starting' || entry.state === 'running') return
      entry.state = 'starting'
      entry.starting = start(source, entry)
    },
    startAll() {
      for (const source of attached.keys()) this.start(source)
    },
    async stopAll(timeoutMs) {
      const stops = [...attached].map(async ([source, entry]) => {
        if (entry.state === 'idle' || entry.state === 'stopped') return
        const wasRunning = entry.state === 'running'
        entry.state = 'stopped'
        if (!wasRunning) await Promise.race([entry.starting, sleep(200)])
        try {
          await source.stop()
        } catch (error) {
          report(error, { source })
        }
      })
      await Promise.race([Promise.all(stops), sleep(timeoutMs)])
    },
    get healthy() {
      return [...attached.values()].every(({ state }) => state !== 'starting')
    },
  }
}
