/**
 * Messages that the server has delivered, and that are not here: a process that died held them, one that was stopped gave
 * them back, or they were lost with a connection. The server delivers them before anything newer, but not before their time.
 * So nothing that comes meanwhile may go to the box, until all of them have come or should have.
 *
 * Where other processes consume as well there is no order to be kept, and nothing to wait for.
 */
import type { Consumer, JsMsg } from '@nats-io/jetstream'
import type { FoundConsumer } from './client.js'

export interface Gap {
  readonly isOpen: boolean
  /** Before a request: opens it, if anything was left behind until `cutAt`, by `performance.now()`. */
  look(found: FoundConsumer, cutAt: number): Promise<void>
  /** Is told of each message that comes, and whether it was here before. */
  came(message: JsMsg, isKnown: boolean): void
  close(): void
}

/** What is held here. */
export interface Holder {
  count(): number
  /** Nothing is about to be acknowledged. */
  isAtRest(): boolean
  /** What came meanwhile may go. */
  onClose(): void
}

/** The server looks a moment later than it has to at what was not acknowledged. */
const LATE_MS = 250
/** For what may come at once. */
const LEAST_MS = 1_000
const RECHECK_MS = 500

export function createGap(holder: Holder): Gap {
  let isOpen = false
  let missing = 0
  /** The last message that was delivered before, and the number of the next delivery, whichever message that is of. */
  let last = 0
  let next = 0
  let end = 0
  let timer: NodeJS.Timeout | undefined

  const close = (): void => {
    clearTimeout(timer)
    if (!isOpen) return
    isOpen = false
    holder.onClose()
  }
  const recheckLater = (consumer: Consumer): void => {
    clearTimeout(timer)
    timer = setTimeout(() => void recheck(consumer), Math.max(1, Math.min(RECHECK_MS, end - performance.now())))
  }
  const recheck = async (consumer: Consumer): Promise<void> => {
    if (performance.now() >= end) return close()
    const own = timer
    const [held, expected] = [holder.isAtRest() ? holder.count() : undefined, missing]
    const info = await consumer.info().catch(() => undefined)
    // It was closed, or opened anew.
    if (timer !== own || !isOpen) return
    // One request is ours. And of what is not here somebody has acknowledged some.
    const hasOthers = info && (info.num_waiting > 1 || (held !== undefined && info.num_ack_pending - held < expected))
    if (hasOthers) close()
    else recheckLater(consumer)
  }

  return {
    get isOpen() {
      return isOpen
    },
    async look({ consumer, longestWaitMs }, cutAt) {
      const { num_ack_pending, num_waiting, delivered } = await consumer.info()
      missing = num_ack_pending - holder.count()
      if (num_waiting > 0 || missing <= 0) return close()
      last = delivered.stream_seq
      next = delivered.consumer_seq + 1
      end = Math.max(cutAt + longestWaitMs + LATE_MS, performance.now() + LEAST_MS)
      isOpen = true
      recheckLater(consumer)
    },
    came({ seq, info }, isKnown) {
      if (!isOpen) return
      // Else others get some, too.
      const isNext = info.deliverySequence === next++
      if (seq <= last && !isKnown) missing--
      if (!isNext || missing === 0) close()
    },
    close,
  }
}
