/**
 * The life of a box, and of what runs by itself in it: sources, relays, consumers. It may begin again and again:
 *
 *     idle → starting → started → stopping → idle
 *
 * - idle: nothing runs by itself. Push sources, single consumers and a drain may still set something going.
 * - starting: a start is under way. Another `start` is the same one. If it fails, it may be tried again.
 * - started: all that is declared runs, and what is declared from now on runs at once.
 * - stopping: what is in flight is settled. Another `stop` is the same one, and a `start` begins when it is over.
 *
 * A stop overtakes a start: what has begun goes no further than its next step. The stop waits for that, since the pool may end
 * after it. So a turn, which is the time until the next stop, is what a start, a drain and every loop look at: a loop that is left
 * over from an earlier turn finds that its own has ended.
 */
import { sleep } from './backoff.js'

export interface Lifecycle {
  readonly state: 'idle' | 'starting' | 'started' | 'stopping'
  /** A start is under way, or has succeeded, and no stop has come since: another start is the same one. */
  readonly begun: boolean
  start(): Promise<void>
  stop(timeoutMs: number): Promise<void>
  /** Waits for a stop that is under way. Then `goesOn` answers true until the next one. */
  turn(): Promise<Turn>
}

export interface Turn {
  goesOn(): boolean
}

/** Of what no stop ends. */
export const ENDLESS: Turn = { goesOn: () => true }

/** The turn of one thing that runs by itself, which ends it: a start makes one, and its stop ends it. */
export interface OwnTurn extends Turn {
  /** Resolves at its end: what waits need not wait for longer. */
  readonly over: Promise<void>
  end(): void
}

export function beginTurn(): OwnTurn {
  let goesOn = true
  let resolve = (): void => undefined
  const over = new Promise<void>((ended) => (resolve = ended))
  return {
    goesOn: () => goesOn,
    over,
    end() {
      goesOn = false
      resolve()
    },
  }
}

interface Steps {
  /** What has to succeed before anything runs. */
  prepare(turn: Turn): Promise<void>
  /** Sets all going. It is started already, so that what is declared meanwhile is not forgotten. */
  begin(turn: Turn): Promise<void>
  end(timeoutMs: number): Promise<void>
}

export function createLifecycle({ prepare, begin, end }: Steps): Lifecycle {
  let state: Lifecycle['state'] = 'idle'
  let current = beginTurn()
  let latest: { readonly turn: Turn; readonly done: Promise<void> } | undefined
  let ending: Promise<void> | undefined

  const turn = async (): Promise<Turn> => {
    const mine = current
    await ending
    return mine
  }

  const run = async (before: Promise<void> | undefined): Promise<void> => {
    const own = turn()
    await before?.catch(() => undefined)
    const { goesOn } = await own
    if (!goesOn()) return
    state = 'starting'
    try {
      await prepare({ goesOn })
      if (!goesOn()) return
      state = 'started'
      await begin({ goesOn })
    } catch (error) {
      // It was stopped, and its pool may have ended: nobody waits for what it would have done.
      if (!goesOn()) return
      state = 'idle'
      throw error
    }
  }

  const finish = async (timeoutMs: number): Promise<void> => {
    // A start that comes later waits for this stop.
    const overtaken = latest?.done.catch(() => undefined)
    state = 'stopping'
    try {
      await Promise.all([end(timeoutMs), overtaken && sleep(timeoutMs, overtaken)])
    } finally {
      state = 'idle'
      ending = undefined
    }
  }

  return {
    get state() {
      return state
    },
    get begun() {
      return latest?.turn === current
    },
    start() {
      if (latest?.turn === current) return latest.done
      const own = { turn: current, done: run(latest?.done) }
      latest = own
      // One that failed may be tried again.
      own.done.catch(() => {
        if (latest === own) latest = undefined
      })
      return own.done
    },
    stop(timeoutMs) {
      current.end()
      current = beginTurn()
      return (ending ??= finish(timeoutMs))
    },
    turn,
  }
}
