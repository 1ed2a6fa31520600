/** Keeps sources running: started with backoff until they are, stopped together. */
import { sharedByCopies } from '../copies.js'
import type { Deliver, Source, Warn } from '../brokers/source.js'
import { backoffMs, sleep } from '../backoff.js'
import { OnceboxError } from '../errors.js'
import { beginTurn, type OwnTurn } from '../lifecycle.js'
import type { Trouble } from './trouble.js'

export interface Sources {
  add(source: Source, deliver: Deliver): void
  start(source: Source): void
  startAll(): void
  stopAll(timeoutMs: number): Promise<void>
  /** What keeps sources from delivering, for people. Empty if every one that is attached runs, and its last delivery succeeded. */
  readonly problems: readonly string[]
}

interface Attached {
  readonly deliver: Deliver
  state: 'idle' | 'starting' | 'running' | 'stopped'
  run: Run | undefined
  readonly name: string
  /** It cannot be started, or runs and its broker is out of reach. */
  readonly broker: Trouble
  /** It runs, and what it delivers is not taken. */
  readonly deliveries: Trouble
  /** It works, and its broker would lose messages one day. */
  readonly warn: Warn
}

/** Makes those that tell of a source. */
export type WatchSource = (name: string, source: Source) => Pick<Attached, 'broker' | 'deliveries' | 'warn'>

/** One start, until its stop. */
interface Run {
  readonly turn: OwnTurn
  started: Promise<void>
  /** A stop came while it was starting, and did not wait for it. */
  overtaken: boolean
}

/**
 * Sources of any box. One has a single way to deliver: a second box would get nothing, and stop what the first one gets.
 * They stay with their box when it stops, for it may start again.
 */
const taken = sharedByCopies('taken-sources', () => new WeakSet<Source>())
/** How long a stop waits for a start that is under way. */
const STARTING_MS = 200

export function createSources(watch: WatchSource): Sources {
  const attached = new Map<Source, Attached>()
  return {
    add(source, deliver) {
      if (taken.has(source)) {
        const advice = 'make one source for each box, and attach it once'
        throw new OnceboxError('OPTION_INVALID', `from: this source is attached already; ${advice}`)
      }
      taken.add(source)
      const name = source.name ?? `source-${attached.size + 1}`
      attached.set(source, attach(name, deliver, watch(name, source)))
    },
    start(source) {
      const entry = attached.get(source)!
      if (entry.state === 'starting' || entry.state === 'running') return
      entry.state = 'starting'
      entry.broker.forget()
      entry.deliveries.forget()
      entry.run = { turn: beginTurn(), started: Promise.resolve(), overtaken: false }
      entry.run.started = start(source, entry, entry.run)
    },
    startAll() {
      for (const source of attached.keys()) this.start(source)
    },
    async stopAll(timeoutMs) {
      await sleep(timeoutMs, Promise.all([...attached].map(([source, entry]) => stop(source, entry))))
    },
    get problems() {
      return [...attached.values()].flatMap((entry) => problemOf(entry) ?? [])
    },
  }
}

function attach(name: string, deliver: Deliver, told: ReturnType<WatchSource>): Attached {
  const entry: Attached = {
    ...{ state: 'idle', run: undefined, name, ...told },
    async deliver(batch) {
      if (!Array.isArray(batch)) {
        throw new OnceboxError('MESSAGE_INVALID', 'deliver takes an array of messages; pass a single one as [message]')
      }
      try {
        const outcomes = await deliver(batch)
        entry.deliveries.worked()
        return outcomes
      } catch (error) {
        // What a stop cuts short is no trouble.
        if (entry.state !== 'stopped') entry.deliveries.failed(error)
        throw error
      }
    },
  }
  return entry
}

/** Tried until it works, or the turn is over. */
async function start(source: Source, entry: Attached, run: Run): Promise<void> {
  const { goesOn, over } = run.turn
  for (let attempt = 0; goesOn(); attempt++) {
    let cutOff = false
    try {
      const report = (problem?: unknown): void => {
        cutOff = problem !== undefined
        if (cutOff) entry.broker.failed(problem)
        else entry.broker.worked()
      }
      await source.start(entry.deliver, report, entry.warn)
      if (!cutOff) entry.broker.worked()
      if (goesOn()) entry.state = 'running'
      // What its stop found had not begun yet; a newer start takes it over as it is.
      else if (run.overtaken && entry.run === run) await source.stop()
      return
    } catch (error) {
      entry.broker.failed(error)
      if (goesOn()) await sleep(backoffMs(attempt, 100, 5_000), over)
    }
  }
}

async function stop(source: Source, entry: Attached): Promise<void> {
  if (entry.state === 'idle' || entry.state === 'stopped') return
  const run = entry.run!
  let begun = entry.state === 'running'
  entry.state = 'stopped'
  run.turn.end()
  if (!begun) await sleep(STARTING_MS, run.started.then(() => (begun = true))) // prettier-ignore
  run.overtaken = !begun
  try {
    await source.stop()
  } catch (error) {
    entry.broker.failed(error)
  }
}

function problemOf({ state, name, broker, deliveries }: Attached): string | undefined {
  if (state === 'idle') return `source ${name} was never started; call box.start()`
  if (state === 'starting') return `source ${name} has not started yet`
  if (state === 'stopped') return undefined
  if (broker.failures > 0) return `source ${name} has lost its broker`
  return deliveries.failures > 0 ? `what source ${name} delivers is not taken` : undefined
}
