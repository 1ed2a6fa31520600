/**
 * The life of a box, which may begin again and again:
 *
 *     idle → starting → started → stopping → idle
 *
 * - idle: nothing runs by itself. Push sources, single consumers and a drain may still set something going.
 * - starting: a start is under way. Another `start` is the same one. If it fails, it may be tried again.
 * - started: all that is declared runs, and what is declared from now on runs at once.
 * - stopping: what is in flight is settled. Another `stop` is the same one, and a `start` begins when it is over.
 *
 * A stop overtakes a start: what has begun goes no further than its next step. So a turn, which is the time between two stops,
 * is what a start and a drain look at.
 */
export interface Lifecycle {
  readonly state: 'idle' | 'starting' | 'started' | 'stopping'
  start(): Promise<void>
  stop(timeoutMs: number): Promise<void>
  /** Waits for a stop that is under way. Then `goesOn` answers true until the next one. */
  turn(): Promise<Turn>
}

export interface Turn {
  goesOn(): boolean
}

interface Steps {
  /** What has to succeed before anything runs. */
  prepare(): Promise<void>
  /** Sets all going. It is started already, so that what is declared meanwhile is not forgotten. */
  begin(turn: Turn): Promise<void>
  end(timeoutMs: number): Promise<void>
}

export function createLifecycle({ prepare, begin, end }: Steps): Lifecycle {
  let state: Lifecycle['state'] = 'idle'
  let stops = 0
  let latest: { readonly turn: number; readonly done: Promise<void> } | undefined
  let ending: Promise<void> | undefined

  const turn = async (): Promise<Turn> => {
    const mine = stops
    await ending
    return { goesOn: () => stops === mine }
  }

  const run = async (before: Promise<void> | undefined): Promise<void> => {
    const own = turn()
    await before?.catch(() => undefined)
    const { goesOn } = await own
    if (goesOn()) state = 'starting'
    try {
      await prepare()
      if (!goesOn()) return
      state = 'started'
      await begin({ goesOn })
    } catch (error) {
      if (state === 'starting' && goesOn()) state = 'idle'
      throw error
    }
  }

  const finish = async (timeoutMs: number): Promise<void> => {
    state = 'stopping'
    try {
      await end(timeoutMs)
    } finally {
      state = 'idle'
      ending = undefined
    }
  }

  return {
    get state() {
      return state
    },
    start() {
      if (latest?.turn === stops) return latest.done
      const own = { turn: stops, done: run(latest?.done) }
      latest = own
      // One that failed may be tried again.
      own.done.catch(() => {
        if (latest === own) latest = undefined
      })
      return own.done
    },
    stop(timeoutMs) {
      stops += 1
      return (ending ??= finish(timeoutMs))
    },
    turn,
  }
}
