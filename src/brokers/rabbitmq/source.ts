/** RabbitMQ as a source: one channel at a time, opened again when it is lost, until it is stopped. */
import { backoffMs, sleep } from '../../backoff.js'
import type { Deliver, Source } from '../source.js'
import { inTime, openSource, type RabbitChannel, type Session } from './client.js'
import { consume, type Consumption } from './consumption.js'
import type { ResolvedSource } from './options.js'
import { assertQueue } from './topology.js'

interface Consuming {
  readonly session: Session<RabbitChannel>
  readonly consumption: Consumption
  /** Asks the broker for no more. */
  cancel(): Promise<void>
}

/** One start, until its stop. */
interface Run {
  readonly stopped: Promise<void>
  readonly isStopped: boolean
  stop(): void
  consuming: Consuming | undefined
  /** Deliveries of lost channels that the box is still busy with. */
  readonly leftovers: Set<Promise<void>>
  done: Promise<void>
}

/** Between two attempts to reach the broker. */
const RECONNECT_MS = { first: 100, most: 10_000 }

export function createSource(options: ResolvedSource): Source {
  let run: Run | undefined

  /** From loss to loss. What a lost channel had in flight cannot be acknowledged: the broker delivers it again. */
  const keepConsuming = async (own: Run, deliver: Deliver, report: (problem?: unknown) => void): Promise<void> => {
    for (let attempt = 0; !own.isStopped;) {
      if (own.consuming) {
        const problem = await Promise.race([own.consuming.session.lost, own.stopped])
        if (own.isStopped) return
        const { session, consumption } = own.consuming
        own.consuming = undefined
        report(problem)
        const leftover = consumption.finish().finally(() => own.leftovers.delete(leftover))
        own.leftovers.add(leftover)
        await session.close()
      }
      await sleep(backoffMs(attempt++, RECONNECT_MS.first, RECONNECT_MS.most), own.stopped)
      if (own.isStopped) return
      try {
        const consuming = await openConsuming(options, deliver)
        own.consuming = consuming
        attempt = 0
        report()
      } catch (error) {
        report(error)
      }
    }
  }

  /** One after the other: a box that is stopped while it starts, and started again, overtakes itself. */
  let turn: Promise<unknown> = Promise.resolve()
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const result = turn.then(work)
    turn = result.catch(() => undefined)
    return result
  }

  return {
    start: (deliver, report = () => undefined) =>
      inTurn(async () => {
        if (run) return
        const own = createRun()
        own.consuming = await openConsuming(options, deliver)
        own.done = keepConsuming(own, deliver, report)
        run = own
      }),
    stop: () =>
      inTurn(async () => {
        const own = run
        if (!own) return
        run = undefined
        own.stop()
        await own.done
        await own.consuming?.cancel()
        await Promise.all([...own.leftovers, own.consuming?.consumption.finish()])
        await own.consuming?.session.close()
      }),
  }
}

async function openConsuming(options: ResolvedSource, deliver: Deliver): Promise<Consuming> {
  const session = await openSource(options)
  try {
    const { channel } = session
    const consumption = consume(session, options, deliver)
    const begin = async (): Promise<{ consumerTag: string }> => {
      await assertQueue(channel, options)
      await channel.prefetch(options.prefetch)
      return channel.consume(options.queue, (raw) => {
        if (raw) consumption.add(raw)
        else session.fail(new Error(`RabbitMQ ended the consumer of ${options.queue}: the queue was deleted, or moved`))
      })
    }
    const { consumerTag } = await inTime(options, begin(), session.lost)
    const cancel = async (): Promise<void> => {
      if (session.problem !== undefined) return
      await Promise.race([channel.cancel(consumerTag).catch(() => undefined), session.lost])
    }
    return { session, consumption, cancel }
  } catch (error) {
    await session.close()
    throw error
  }
}

function createRun(): Run {
  let isStopped = false
  let release = (): void => undefined
  const stopped = new Promise<void>((resolve) => (release = resolve))
  return {
    stopped,
    get isStopped() {
      return isStopped
    },
    stop() {
      isStopped = true
      release()
    },
    consuming: undefined,
    leftovers: new Set(),
    done: Promise.resolve(),
  }
}
