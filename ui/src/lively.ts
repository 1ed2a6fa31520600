/** Lively: asks again while the box is followed, each time that something of it was heard, and not too often. */
import { useEffect, useRef } from 'preact/hooks'
import { heardAt, paused } from './live.js'

export function useLively(leastMs: number, again: () => void): void {
  const lastAt = useRef(performance.now())
  const latest = useRef(again)
  latest.current = again
  const heard = heardAt.value
  const isPaused = paused.value
  useEffect(() => {
    if (isPaused || heard === undefined || document.hidden || performance.now() - lastAt.current < leastMs) return
    lastAt.current = performance.now()
    latest.current()
  }, [heard, isPaused])
}
