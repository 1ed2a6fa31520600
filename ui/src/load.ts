/**
 * Answers that a page asks for. What was there stays while the next answer is on its way, so nothing moves; an answer that was
 * overtaken is dropped; what may pass by itself is tried again, and says when.
 */
import { useEffect, useMemo } from 'preact/hooks'
import { signal, type Signal } from '@preact/signals'
import { DashboardError } from './api.js'

const SLOW_MS = 200
const WAITS_MS = [2_000, 4_000, 8_000, 15_000, 30_000]
/** What may be over in a moment. Anything that is not the server's refusal is the network's. */
const PASSING = new Set(['BUSY', 'TOO_FAST', 'TIMEOUT', 'DATABASE_AWAY'])

export interface Failure {
  readonly error: unknown
  readonly tries: number
  readonly firstAt: number
  /** When it is tried again; absent if that would not help. */
  readonly nextAt?: number
}

export interface Load<T> {
  readonly value: Signal<T | undefined>
  readonly failure: Signal<Failure | undefined>
  /** An answer is on its way, and for longer than 200 ms: time for skeletons. */
  readonly slow: Signal<boolean>
  readonly busy: Signal<boolean>
  reload(): void
}

/** Asks when `key` changes. A key is what the question depends on, as a text; undefined asks nothing. */
export function useLoad<T>(key: string | undefined, ask: (signal: AbortSignal) => Promise<T>): Load<T> {
  const loader = useMemo(() => createLoader<T>(), [])
  loader.ask = ask
  useEffect(() => {
    if (key !== undefined) loader.start()
    return loader.stop
  }, [key])
  return loader
}

function createLoader<T>(): Load<T> & { ask(signal: AbortSignal): Promise<T>; start(): void; stop(): void } {
  let abort = new AbortController()
  let timers: number[] = []
  const value = signal<T | undefined>(undefined)
  const failure = signal<Failure | undefined>(undefined)
  const slow = signal(false)
  const busy = signal(false)

  const stop = (): void => {
    abort.abort()
    timers.forEach(clearTimeout)
    timers = []
    busy.value = false
    slow.value = false
  }
  const attempt = async (tries: number, firstAt: number): Promise<void> => {
    stop()
    const own = new AbortController()
    abort = own
    busy.value = true
    timers.push(window.setTimeout(() => (slow.value = true), SLOW_MS))
    try {
      const answer = await loader.ask(own.signal)
      if (own.signal.aborted) return
      value.value = answer
      failure.value = undefined
      stop()
    } catch (error) {
      if (own.signal.aborted) return
      stop()
      const wait = passes(error) ? WAITS_MS[Math.min(tries, WAITS_MS.length) - 1]! : undefined
      failure.value = { error, tries, firstAt, ...(wait !== undefined && { nextAt: Date.now() + wait }) }
      if (wait !== undefined) timers.push(window.setTimeout(() => void attempt(tries + 1, firstAt), wait))
    }
  }
  const start = (): void => void attempt(1, Date.now())
  const loader = {
    value,
    failure,
    slow,
    busy,
    ask: (_: AbortSignal): Promise<T> => Promise.reject(new Error('nothing to ask')),
    start,
    reload: start,
    stop,
  }
  return loader
}

function passes(error: unknown): boolean {
  return !(error instanceof DashboardError) || PASSING.has(error.code) || error.status >= 502
}
