/** RabbitMQ as a source: one channel at a time, opened again when it is lost, until it is stopped. */
import { sleep } from '../../backoff.js'
import { beginTurn } from '../../lifecycle.js'
import { createReopening } from '../reopening.js'
import { createRunner, type Receiver, type Run } from '../run.js'
import type { Source } from '../source.js'
import { inTime, openSource, type RabbitChannel, type RabbitMessage, type Session } from './client.js'
import { createComeback } from './comeback.js'
import { consume, type Consumption, type Lanes } from './consumption.js'
import type { ResolvedSource } from './options.js'
import { createStreams, type Streams } from './streams.js'
import { assertQueue } from './topology.js'
import { warningsOf, warnOfCount } from './warnings.js'
import { createWindows } from './windows.js'

interface Consuming {
  readonly session: Session<RabbitChannel>
  readonly consumption: Consumption
  /** Resolves when a message could be read. */
  readonly read: Promise<void>
  /** Asks the broker for no more. */
  cancel(): Promise<void>
}

/** Between two attempts to reach the broker. */
const RECONNECTING = { firstMs: 100, mostMs: 10_000, lastingMs: 1_000 }
/** A broker gives up a connection that misses two heartbeats; this much later it has, on a busy machine too. */
const NOTICED_MS = 5_000

export function createSource(options: ResolvedSource): Source {
  return createRunner(`rabbitmq:${options.queue}`, (box) => begin(options, box))
}

async function begin(options: ResolvedSource, box: Receiver): Promise<Run> {
  const { report } = box
  const comeback = createComeback(2 * options.heartbeatMs + NOTICED_MS)
  const lanes: Lanes = { inFlight: new Set(), comeback, look: () => undefined }
  const kept: Kept = { lanes, streams: createStreams(options.queue) }
  let consuming: Consuming | undefined = await openConsuming(options, box, kept)
  const reopening = createReopening(RECONNECTING)
  reopening.opened()
  /** Deliveries of lost channels that the box is still busy with. */
  const leftovers = new Set<Promise<void>>()
  const turn = beginTurn()

  /** From loss to loss. What a lost channel had in flight cannot be acknowledged: the broker delivers it again. */
  const keepConsuming = async (): Promise<void> => {
    while (turn.goesOn()) {
      if (consuming) {
        const problem = await Promise.race([consuming.session.lost, turn.over])
        if (!turn.goesOn()) return
        const { session, consumption } = consuming
        consuming = undefined
        reopening.lost()
        comeback.lose(consumption.open())
        report(problem)
        const leftover = consumption.finish().finally(() => leftovers.delete(leftover))
        leftovers.add(leftover)
        await session.close()
      }
      await sleep(reopening.waitMs(), turn.over)
      if (!turn.goesOn()) return
      try {
        consuming = await openConsuming(options, box, kept)
        reopening.opened()
        // A message that cannot be read ends each connection at once: the source is back when one lasts, or another is read.
        const { session, read } = consuming
        await sleep(RECONNECTING.lastingMs, session.lost, read, turn.over)
        if (session.problem === undefined && turn.goesOn()) report()
      } catch (error) {
        report(error)
      }
    }
  }

  const done = keepConsuming()
  return {
    async end() {
      turn.end()
      await done
      await consuming?.cancel()
      await Promise.all([...leftovers, consuming?.consumption.finish()])
      await consuming?.session.close()
    },
  }
}

/** What is kept from channel to channel. */
interface Kept {
  readonly lanes: Lanes
  readonly streams: Streams
}

async function openConsuming(
  options: ResolvedSource,
  { deliver, warn }: Receiver,
  { lanes, streams }: Kept,
): Promise<Consuming> {
  const session = await openSource(options)
  const { channel, version } = session
  let isRead = (): void => undefined
  const read = new Promise<void>((resolve) => (isRead = resolve))
  const take = (raw: RabbitMessage): void => {
    isRead()
    if (!streams.allows(raw, session)) return
    warnOfCount(raw, warn)
    consumption.add(raw)
  }
  const windows = createWindows(session, options, take, warn)
  const consumption = consume(session, options, { deliver, lanes, makeRoom: windows.adjust })
  const begin = async (): Promise<void> => {
    await assertQueue(channel, options)
    await streams.check(channel)
    await windows.open(lanes.comeback.opened())
  }
  try {
    await inTime(options, begin(), session.lost)
  } catch (error) {
    // Messages may have come before the answer did.
    const { problem } = session
    lanes.comeback.lose(consumption.open())
    await session.close()
    throw streams.explain(problem ?? error)
  }
  for (const line of warningsOf(options, version)) warn(line)
  return { session, consumption, read, cancel: windows.close }
}
