/** The present: counts the seconds while somebody looks, so that "25 min" stays true. */
import { computed, effect, signal } from '@preact/signals'
import { heardAt, paused } from './live.js'
import { timeZone } from './preferences.js'
import { present } from './server-clock.js'

/** Changes every ten seconds: enough for what is said in minutes. */
export const now = signal(present())
export const clock = computed(() => ({ utc: timeZone.value === 'utc' }))

export function startNow(): void {
  effect(() => {
    if (paused.value) return
    const timer = setInterval(() => {
      if (!document.hidden) now.value = present()
    }, 10_000)
    return () => clearInterval(timer)
  })
  // A clock that turns out to be wrong is put right at once.
  effect(() => {
    const heard = heardAt.value
    if (heard !== undefined && Math.abs(heard - now.peek()) > 15_000) now.value = heard
  })
}
