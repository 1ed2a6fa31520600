/**
 * What lost channels had and did not acknowledge, until it has come again.
 *
 * A quorum queue takes it back consumer by consumer, and behind what it took back before and has not handed out yet: with several
 * windows on the lost channel that is not the order of the queue. And a broker that has not noticed the loss hands out
 * newer ones first. So what comes again has the place that it had, and nothing goes ahead of an earlier one of its key.
 */
import type { Incoming } from '../../message.js'

export interface Placed {
  readonly incoming: Incoming
  /** In the order of the queue. */
  readonly place: number
}

export interface Comeback {
  /** How many are to come again. */
  readonly size: number
  /** A channel was lost, with all of these. */
  lose(open: Iterable<Placed>): void
  /** Gives what was handed out its place: the one that it had, or the next. */
  place(incoming: Incoming, isRedelivered: boolean): number
  /** How long an earlier one of its key is waited for, by `performance.now()`; 0 if there is none. */
  waitsUntil(one: Placed): number
}

/** `noticedMs`: in that time a broker has noticed that a connection is lost. */
export function createComeback(noticedMs: number): Comeback {
  /** By key, then by message: the place that it had. */
  const awaited = new Map<string, Map<string, number>>()
  let size = 0
  let next = 0
  let until = 0
  /** Whether the broker has begun to hand out what it took back. */
  let hasBegun = false

  const forget = (): void => {
    awaited.clear()
    size = 0
  }

  /** The place of one that was waited for. */
  const found = (incoming: Incoming): number | undefined => {
    const { key } = incoming
    const ofKey = key === undefined ? undefined : awaited.get(key)
    if (key === undefined || !ofKey) return undefined
    const name = nameOf(incoming)
    const place = ofKey.get(name)
    if (place === undefined) return undefined
    ofKey.delete(name)
    if (ofKey.size === 0) awaited.delete(key)
    size--
    return place
  }

  return {
    get size() {
      return size
    },
    lose(open) {
      for (const { incoming, place } of open) {
        const { key, id } = incoming
        if (key === undefined || id === undefined) continue
        const ofKey = awaited.get(key) ?? new Map<string, number>()
        awaited.set(key, ofKey.set(nameOf(incoming), place))
      }
      size = 0
      for (const ofKey of awaited.values()) size += ofKey.size
      hasBegun = false
      until = performance.now() + noticedMs
    },
    place(incoming, isRedelivered) {
      if (size > 0) {
        const place = found(incoming)
        if (place !== undefined) {
          hasBegun = true
          return place
        }
        // All that was taken back is handed out before anything new. The rest went to another process, or is gone.
        if (hasBegun && !isRedelivered) forget()
      }
      return next++
    },
    waitsUntil({ incoming, place }) {
      if (size === 0 || incoming.key === undefined) return 0
      const ofKey = awaited.get(incoming.key)
      if (!ofKey) return 0
      if (performance.now() >= until) {
        forget()
        return 0
      }
      for (const earlier of ofKey.values()) if (earlier < place) return until
      return 0
    },
  }
}

function nameOf({ source, id }: Incoming): string {
  return JSON.stringify([source, id])
}
