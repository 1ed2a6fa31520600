/**
 * News of a list: how many there are now beyond those that were there when it was read. Lists do not move under the pointer, so that
 * is said above them, and the reader decides. After a change that the reader can see the end of, the list is read again by itself.
 */
import { useEffect, useRef } from 'preact/hooks'
import { jobs } from './live.js'
import type { Load } from './load.js'

/** `total`: as the stream tells it. */
export function useNews(of: Load<unknown>, total: number | undefined): number {
  const answer = of.value.value
  const then = useRef<{ answer: unknown; total: number | undefined }>({ answer: undefined, total: undefined })
  if (then.current.answer !== answer || then.current.total === undefined) then.current = { answer, total }
  const ended = jobs.value.filter(({ state }) => state !== 'running').map(({ id }) => id).sort().join(' ') // prettier-ignore
  const known = useRef<string | undefined>(undefined)
  useEffect(() => {
    if (known.current !== undefined && known.current !== ended) of.reload()
    known.current = ended
  }, [ended])
  return (total ?? 0) - (then.current.total ?? total ?? 0)
}
