/**
 * How a stream is trimmed with each event that is added to it. About: whole nodes of the stream go at a time, which costs
 * next to nothing.
 *
 * The age of an entry is in its id, which the server makes by its own clock. By the clock of this process a stream would
 * lose what is young as soon as that clock is ahead; so now is what the last id of the stream says.
 */
import type { Reply } from './client.js'
import type { ResolvedSink } from './options.js'

export interface Trimming {
  /** For the next event of this stream. None by age before the first answer: nobody knows yet what time it is there. */
  argumentsFor(stream: string): string[]
  /** The server has added an event to this stream, under this id. */
  added(stream: string, id: Reply): void
}

/** Streams of which the time is known. That of the one that was asked for longest ago is forgotten. */
const MOST_STREAMS = 10_000

export function createTrimming({ maxLength, maxAgeMs }: Pick<ResolvedSink, 'maxLength' | 'maxAgeMs'>): Trimming {
  const times = new Map<string, number>()
  return {
    argumentsFor(stream) {
      if (maxLength !== undefined) return ['MAXLEN', '~', String(maxLength)]
      const now = times.get(stream)
      if (maxAgeMs === undefined || now === undefined) return []
      return ['MINID', '~', String(Math.max(0, now - maxAgeMs))]
    },
    added(stream, id) {
      if (maxAgeMs === undefined) return
      const time = Number.parseInt(String(id), 10)
      times.delete(stream)
      if (Number.isSafeInteger(time)) times.set(stream, time)
      if (times.size > MOST_STREAMS) times.delete(times.keys().next().value!)
    },
  }
}
