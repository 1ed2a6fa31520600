/** The present: counts the seconds while somebody looks, so that "25 min" stays true. */
import { computed, effect, signal } from '@preact/signals'
import { paused } from './live.js'
import { timeZone } from './preferences.js'

/** Changes every ten seconds: enough for what is said in minutes. */
export const now = signal(Date.now())
export const clock = computed(() => ({ utc: timeZone.value === 'utc' }))

export function startNow(): void {
  effect(() => {
    if (paused.value) return
    const timer = setInterval(() => {
      if (!document.hidden) now.value = Date.now()
    }, 10_000)
    return () => clearInterval(timer)
  })
}
