/**
 * What lost channels had and did not acknowledge, until it has come again.
 *
 * A quorum queue takes it back consumer by consumer, and behind what it took back before and has not handed out yet: with several
 * windows on the lost channel that is not the order of the queue. And a broker that has not noticed the loss hands out
 * newer ones first. So what comes again has the place that it had, and nothing goes ahead of an earlier one of its key.
 *
 * What went to another process, or is gone, does not come. It is forgotten when its time is over, which begins with a channel
 * on which it can come: a broker that is away for long hands out nothing meanwhile.
 */
import type { Incoming } from '../../message.js'

export interface Placed {
  readonly incoming: Incoming
  /** In the order of the queue. */
  readonly place: number
}

export interface Comeback {
  /** Something is to come again. */
  readonly isOpen: boolean
  /** There is a channel on which it can come. Answers how much. */
  opened(): number
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
  let next = 0
  let until = Infinity
  /** Whether the broker has begun to hand out what it took back. */
  let hasBegun = false

  const expire = (): void => {
    if (performance.now() >= until) awaited.clear()
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
    return place
  }

  return {
    get isOpen() {
      expire()
      return awaited.size > 0
    },
    opened() {
      expire()
      until = performance.now() + noticedMs
      return [...awaited.values()].reduce((sum, { size }) => sum + size, 0)
    },
    lose(open) {
      expire()
      for (const { incoming, place } of open) {
        const { key, id } = incoming
        if (key === undefined || id === undefined) continue
        const ofKey = awaited.get(key) ?? new Map<string, number>()
        awaited.set(key, ofKey.set(nameOf(incoming), place))
      }
      hasBegun = false
      until = Infinity
    },
    place(incoming, isRedelivered) {
      expire()
      if (awaited.size > 0) {
        const place = found(incoming)
        if (place !== undefined) {
          hasBegun = true
          return place
        }
        // All that was taken back is handed out before anything new. The rest went to another process, or is gone.
        if (hasBegun && !isRedelivered) awaited.clear()
      }
      return next++
    },
    waitsUntil({ incoming, place }) {
      expire()
      const ofKey = incoming.key === undefined ? undefined : awaited.get(incoming.key)
      if (!ofKey) return 0
      for (const earlier of ofKey.values()) if (earlier < place) return until
      return 0
    },
  }
}

function nameOf({ source, id }: Incoming): string {
  return JSON.stringify([source, id])
}
