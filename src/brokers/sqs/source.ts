/**
 * A queue as a source: pollers wait for messages, deliveries hand them on.
 *
 *     receive → hold, hidden from others → deliver to the box → delete what it acknowledged, give back the rest
 */
import { backoffMs, sleep } from '../../backoff.js'
import { OnceboxError } from '../../errors.js'
import { createRunner, type Receiver, type Run } from '../run.js'
import type { Source } from '../source.js'
import { isFifo, MAX_ENTRIES, openQueue, type Queue, type SqsMessage } from './client.js'
import { createDeliveries } from './deliveries.js'
import { readMessage } from './event.js'
import { createHealth } from './health.js'
import type { Resolved } from './options.js'
import { createRoom } from './room.js'
import { keepHidden, type Held } from './visibility.js'
import { findWarnings } from './warnings.js'

/** An empty answer that comes sooner than this was not waited for; the next request waits instead. */
const EMPTY_MS = 200

export function createSource(options: Resolved): Source {
  return createRunner(options.name, async (box) => startRun(options, await openQueue(options), box))
}

function startRun(options: Resolved, queue: Queue, { deliver, report, warn }: Receiver): Run {
  const { pollers, waitSeconds, visibilitySeconds, batch, concurrency } = options
  const fifo = isFifo(options.queueUrl)
  const stopping = new AbortController()
  const stopped = new Promise<void>((resolve) => stopping.signal.addEventListener('abort', () => resolve()))
  const health = createHealth(report)
  const visibility = keepHidden(queue, visibilitySeconds, health)
  const capacity = Math.max(batch * (concurrency + 1), MAX_ENTRIES)
  const room = createRoom((asked) => {
    if (stopping.signal.aborted) return true
    return !deliveries.paused && visibility.size + (asked + 1) * MAX_ENTRIES <= capacity
  })
  const deliveries = createDeliveries({ ...options, fifo }, { queue, visibility, health, deliver, onRoom: room.look })

  const hold = (raw: SqsMessage): Held => {
    const incoming = readMessage(raw, { ...options, fifo })
    return {
      ...{ raw, incoming },
      receipt: raw.ReceiptHandle ?? '',
      lane: fifo ? raw.Attributes?.['MessageGroupId'] : incoming?.key,
      hiddenUntil: performance.now() + visibilitySeconds * 1_000,
    }
  }
  const receive = async (wait: number): Promise<void> => {
    const began = performance.now()
    const messages = await queue.receive({ waitSeconds: wait, visibilitySeconds, signal: stopping.signal })
    health.well(began)
    deliveries.add(messages.map(hold))
    const early = EMPTY_MS - (performance.now() - began)
    if (messages.length === 0 && early > 0) await sleep(early, stopped)
  }
  const poll = async (): Promise<void> => {
    for (let failures = 0; !stopping.signal.aborted;) {
      const release = await room.reserve()
      try {
        // After a failure the first answer tells that the queue is back, and should not take its time.
        if (!stopping.signal.aborted) await receive(failures > 0 ? 0 : waitSeconds)
        failures = 0
      } catch (error) {
        if (stopping.signal.aborted) return
        health.ill(error)
        await sleep(backoffMs(failures++, 200, 10_000), stopped)
      } finally {
        release()
      }
    }
  }
  const polling = Array.from({ length: pollers }, poll)
  const sayWarnings = async (): Promise<void> => {
    for (const text of await findWarnings(options.queueUrl, queue, stopping.signal)) warn(text)
  }
  polling.push(sayWarnings())

  return {
    async end() {
      stopping.abort(new OnceboxError('STOPPED', 'the source was stopped'))
      room.look()
      await Promise.all(polling)
      await deliveries.stop()
      visibility.stop()
      queue.close()
    },
  }
}
