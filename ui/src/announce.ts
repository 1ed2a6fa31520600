/** What a screen reader is told: at most one sentence in ten seconds, the latest one. */
import { signal } from '@preact/signals'

const APART_MS = 10_000

export const announced = signal('')
let waiting: string | undefined
let lastAt = -Infinity
let timer = 0

export function announce(sentence: string): void {
  waiting = sentence
  clearTimeout(timer)
  timer = window.setTimeout(say, Math.max(0, lastAt + APART_MS - performance.now()))
}

function say(): void {
  if (waiting === undefined || waiting === announced.value) return
  lastAt = performance.now()
  announced.value = waiting
  waiting = undefined
}
