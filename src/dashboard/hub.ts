/**
 * The hub: one reading of a box for all who look at it, and the streams that it is told to.
 *
 * While there is a stream, the box is read once a second at most, and so seldom that no more than a tenth of the time is spent on
 * it: on a large box a reading takes longer. A client that takes its events too slowly misses some, never sees old ones late.
 */
import { sleep } from '../backoff.js'
import type { Runtime } from '../runtime.js'
import type { Overview } from './answers/index.js'
import type { Jobs, ListedJob } from './bulk/jobs.js'
import type { Inside } from './options.js'
import { readOverview } from './overview.js'
import { Problem, toProblem } from './problem.js'
import { sharedReading } from './shared-reading.js'

const LEAST_MS = 1_000
const SHARE = 10
const BEAT_MS = 15_000
/** Then the client opens another, and is asked again who it is. */
const LIFE_MS = 300_000
const MOST_STREAMS = 200
/** A reader’s share: several windows, and not the streams of others. */
const MOST_OF_ONE_READER = 10

export interface Hub {
  /** Not older than a second, or than ten readings take. */
  overview(): Promise<Overview>
  /** Throws BUSY if there are too many, of all or of this reader. `show` says what a stream may have of each event. */
  open(reader: string, show: Show): ReadableStream<Uint8Array>
  readonly streams: number
  /** Ends all streams. */
  close(): void
}

export interface Show {
  overview(overview: Overview): unknown
  jobs(jobs: readonly ListedJob[]): unknown
}

interface Stream {
  end(): void
  /** False if the client is gone, or has not taken what came before. */
  send(event: string, data: unknown): boolean
  readonly show: Show
  readonly reader: string
  lastJobs: string
}

export interface HubDeps {
  readonly inside: Inside
  readonly reads: Runtime
  readonly jobs: Jobs
  report(error: unknown): void
}

const encoder = new TextEncoder()

export function createHub({ inside, reads, jobs, report }: HubDeps): Hub {
  const streams = new Set<Stream>()
  let latest: Promise<Overview> | undefined
  let running = false
  let failing = false

  const shared = sharedReading(
    () => readOverview(inside, reads),
    (tookMs) => Math.max(LEAST_MS, tookMs * SHARE) - LEAST_MS / 10,
  )
  const read = (): Promise<Overview> => (latest = shared())

  /** Tells the streams what has changed, for as long as there are any. */
  const run = async (): Promise<void> => {
    if (running) return
    running = true
    while (await sleep(LEAST_MS).then(() => streams.size > 0)) await tellAll()
    running = false
  }

  const tellAll = async (): Promise<void> => {
    const before = latest
    try {
      const overview = await read()
      failing = false
      if (latest !== before) for (const stream of streams) stream.send('overview', stream.show.overview(overview))
    } catch (error) {
      if (!failing) report(error)
      failing = true
      for (const stream of streams) stream.send('problem', toProblem(error).answer.error)
    }
    await tellJobs(streams)
  }

  /** One look for all. If the database does not answer, the overview has said so. */
  const tellJobs = async (to: Iterable<Stream>): Promise<void> => {
    const listed = await jobs.list().catch(() => undefined)
    if (!listed) return
    for (const stream of to) {
      const shown = stream.show.jobs(listed)
      const text = JSON.stringify(shown)
      if (text !== stream.lastJobs && stream.send('jobs', shown)) stream.lastJobs = text
    }
  }

  return {
    overview: read,
    close() {
      for (const stream of streams) stream.end()
    },
    get streams() {
      return streams.size
    },
    open(reader, show) {
      const own = [...streams].filter((one) => one.reader === reader).length
      if (streams.size >= MOST_STREAMS || own >= MOST_OF_ONE_READER)
        throw new Problem('BUSY', 'too many streams are open; ask again every few seconds instead')
      let stream: Stream | undefined
      const timers: NodeJS.Timeout[] = []
      const end = (): void => {
        for (const one of timers) clearTimeout(one)
        streams.delete(stream!)
      }
      return new ReadableStream<Uint8Array>(
        {
          start(controller) {
            const write = (text: string): boolean => {
              if (!streams.has(stream!) || (controller.desiredSize ?? 0) <= 0) return false
              controller.enqueue(encoder.encode(text))
              return true
            }
            const own: Stream = {
              show,
              reader,
              end() {
                end()
                controller.close()
              },
              lastJobs: '',
              send: (event, data) => write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`),
            }
            stream = own
            streams.add(own)
            timers.push(setInterval(() => write(': still here\n\n'), BEAT_MS).unref())
            timers.push(setTimeout(() => own.end(), LIFE_MS).unref())
            write('retry: 1000\n\n')
            read().then(
              (overview) => own.send('overview', show.overview(overview)),
              (error: unknown) => own.send('problem', toProblem(error).answer.error),
            )
            void tellJobs([own])
            void run()
          },
          cancel: end,
        },
        { highWaterMark: 8 },
      )
    },
  }
}
