/**
 * The live store: what the box that is open is like now.
 *
 * `connecting`: a stream was asked for. `live`: it tells. `polling`: it is lost, and the box is asked every 5 s. `lost`: nothing
 * answers, or the box cannot be read; what is shown is from `heardAt`. `paused`: the reader wants what is shown to stay. A hidden tab has no stream at all.
 */
import { batch, computed, effect, signal, untracked } from '@preact/signals'
import { api, DashboardError, type Job, type Overview } from './api.js'
import { liveAtStart } from './preferences.js'
import { box } from './router.js'
import { present, setServerClock } from './server-clock.js'
import { session } from './session.js'

const POLL_MS = 5_000
/** The server ends a stream now and then, and the browser opens another: that is no loss. */
const GRACE_MS = 4_000
const TRY_AGAIN_MS = 30_000

interface Problem {
  readonly code?: string
  readonly message: string
}

type State = 'connecting' | 'live' | 'polling' | 'lost'

export const overview = signal<Overview | undefined>(undefined)
export const jobs = signal<readonly Job[]>([])
export const paused = signal(liveAtStart.value === 'off')
const state = signal<State>('connecting')
/** What the server said instead of an overview. */
export const problem = signal<Problem | undefined>(undefined)
/** By the clock of the server. */
export const heardAt = signal<number | undefined>(undefined)
const hidden = signal(document.hidden)

export const link = computed(() => (paused.value ? 'paused' : state.value))

export function togglePaused(): void {
  paused.value = !paused.value
}

/** Reads the box at once: after a change, and while paused. */
export async function refresh(): Promise<void> {
  const of = box.value
  try {
    hear(of, await api.overview({ box: of }))
  } catch (error) {
    problem.value = error as Error
  }
}

function hear(of: string, told: Overview): void {
  if (of !== untracked(() => box.value)) return
  batch(() => {
    overview.value = told
    problem.value = undefined
    setServerClock(told.at)
    heardAt.value = present()
  })
}

/** Follows a box until the function that it gives back is called. */
function follow(of: string): () => void {
  let source: EventSource | undefined
  const timers = new Set<number>()
  let polling = false
  const later = (ms: number, run: () => void): void => {
    const timer = window.setTimeout(() => {
      timers.delete(timer)
      run()
    }, ms)
    timers.add(timer)
  }

  const open = (): void => {
    source?.close()
    const own = new EventSource(api.streamUrl(of))
    source = own
    own.addEventListener('overview', ({ data }) => {
      polling = false
      state.value = 'live'
      hear(of, JSON.parse(data as string) as Overview)
    })
    own.addEventListener('jobs', ({ data }) => (jobs.value = (JSON.parse(data as string) as { jobs: Job[] }).jobs))
    own.addEventListener('problem', ({ data }) => {
      // The stream is there, and has nothing to tell: what is shown is from before.
      state.value = 'lost'
      problem.value = JSON.parse(data as string) as Problem
    })
    own.addEventListener('error', () => {
      const gone = own.readyState === EventSource.CLOSED
      later(gone ? 0 : GRACE_MS, () => {
        if (own !== source || own.readyState === EventSource.OPEN) return
        own.close()
        if (!polling) startPolling()
      })
    })
  }

  const startPolling = (): void => {
    polling = true
    void poll()
    later(TRY_AGAIN_MS, tryAgain)
  }
  const tryAgain = (): void => {
    if (!polling) return
    open()
    later(TRY_AGAIN_MS, tryAgain)
  }
  const poll = async (): Promise<void> => {
    if (!polling || stopped) return
    try {
      const told = await api.overview({ box: of })
      if (stopped || !polling) return
      hear(of, told)
      // Whoever answers again has streams again, most likely.
      if (state.value === 'lost') open()
      // Not before: between two streams nothing was lost.
      state.value = 'polling'
    } catch (error) {
      if (stopped || !polling) return
      // A refusal is an answer: whoever is signed out has to know that, and not that there is no connection.
      problem.value = error instanceof DashboardError ? error : undefined
      state.value = 'lost'
    }
    later(POLL_MS, () => void poll())
  }

  let stopped = false
  state.value = 'connecting'
  open()
  return () => {
    stopped = true
    source?.close()
    for (const timer of timers) clearTimeout(timer)
  }
}

export function startLive(): void {
  document.addEventListener('visibilitychange', () => (hidden.value = document.hidden))
  effect(() => {
    const of = box.value
    if (untracked(() => overview.value)?.box !== of) {
      overview.value = undefined
      jobs.value = []
      heardAt.value = undefined
    }
    if (!session.value || of === '' || !session.value.boxes.some(({ name }) => name === of)) return
    if (paused.value) {
      // What stays on the screen has to be there once.
      if (untracked(() => overview.value) === undefined) void refresh()
      return
    }
    if (hidden.value) return
    return follow(of)
  })
}
