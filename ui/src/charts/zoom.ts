/** What part of the time the charts show: the range that was chosen, up to now, or what was dragged over. */
import { computed, signal } from '@preact/signals'
import { heardAt } from '../live.js'
import { query, setQuery } from '../router.js'
import { present } from '../server-clock.js'

export const RANGES = [
  { value: 15, text: '15 min', words: 'last 15 minutes' },
  { value: 60, text: '1 h', words: 'last hour' },
  { value: 360, text: '6 h', words: 'last 6 hours' },
  { value: 1_440, text: '24 h', words: 'last 24 hours' },
  { value: 10_080, text: '7 d', words: 'last 7 days' },
] as const

const USUAL = RANGES[1]

/** In the address, so that a colleague sees the same. */
export const range = computed(() => RANGES.find(({ value }) => String(value) === query.value['minutes']) ?? USUAL)

export function setRange(minutes: number): void {
  zoom.value = undefined
  setQuery({ minutes: minutes === USUAL.value ? undefined : String(minutes) }, { keep: true })
}

/** Seconds since 1970. */
export const zoom = signal<{ readonly min: number; readonly max: number } | undefined>(undefined)

/** What a chart shows of the time in about a pixel, in ms: nothing is drawn anew before so much has passed. */
export const stepMs = computed(() => range.value.value * 100)

/** The step that the present is in. */
export const step = computed(() => Math.floor((heardAt.value ?? present()) / stepMs.value))

export const shown = computed(() => {
  const end = ((step.value + 1) * stepMs.value) / 1000
  return zoom.value ?? { min: end - range.value.value * 60, max: end }
})

/** The time that the pointer is at, in any of the charts: all of them show what was then. */
export const pointedAt = signal<number | undefined>(undefined)
