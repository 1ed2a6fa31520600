/** What this tab has heard of the box that is open: for charts where nothing else is on record, and for the last minute. */
import { effect, signal, untracked } from '@preact/signals'
import { overview } from './live.js'
import { readingOf, type Reading } from './logic/lines.js'

const MOST = 900

export const readings = signal<readonly Reading[]>([])
let of = ''

export function startReadings(): void {
  effect(() => {
    const now = overview.value
    if (!now) return
    const before = untracked(() => readings.value)
    const kept = of === now.box ? before : []
    of = now.box
    readings.value = [...kept.slice(1 - MOST), readingOf(now)]
  })
}
