/** What all parts of the overview draw from: the box now, what this tab has heard, and what is on record. */
import { useMemo } from 'preact/hooks'
import { api, type History, type Overview } from '../api.js'
import { range, step, stepMs } from '../charts/zoom.js'
import { useLoad, type Load } from '../load.js'
import { linesOf, type Lines, type Reading } from '../logic/lines.js'
import { now } from '../now.js'
import { readings } from '../readings.js'
import { box } from '../router.js'
import { session } from '../session.js'

const MINUTE_MS = 60_000

export interface Figures {
  readonly overview: Overview
  readonly history: History | undefined
  readonly readings: readonly Reading[]
  readonly lines: Lines
}

/** Asked for again every minute, while updates are not paused: no step is shorter. */
export function useHistory(): Load<History> {
  const minutes = range.value.value
  const of = box.value
  const key = session.value && of !== '' ? `${of} ${minutes} ${Math.floor(now.value / MINUTE_MS)}` : undefined
  return useLoad(key, (signal) => api.history({ box: of, minutes }, { signal }))
}

export function useFigures(overview: Overview, history: History | undefined): Figures {
  const heard = useMemo(() => readings.peek(), [history, step.value, stepMs.value, overview.box])
  const lines = useMemo(() => linesOf(history, heard), [history, heard])
  return { overview, history, readings: heard, lines }
}
