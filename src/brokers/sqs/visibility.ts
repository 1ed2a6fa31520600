/** Keeps messages hidden from others for as long as they are held here. */
import type { Incoming } from '../../message.js'
import { MAX_ENTRIES, type Queue, type SqsMessage } from './client.js'
import type { Health } from './health.js'

/** A message between its receipt and its settlement. */
export interface Held {
  readonly raw: SqsMessage
  readonly incoming: Incoming
  readonly receipt: string
  /** Its group, in a FIFO queue; else its key. One delivery at a time. */
  readonly lane: string | undefined
  /** Until when nobody else gets it, by `performance.now()`. */
  hiddenUntil: number
}

export interface Visibility {
  /** How many are held. */
  readonly size: number
  add(held: Held): void
  drop(held: Held): void
  /** Whether it is still ours. Somebody else may have it if extensions failed, or this process was frozen. */
  isOurs(held: Held): boolean
  stop(): void
}

export function keepHidden(queue: Queue, seconds: number, health: Health): Visibility {
  const all = new Set<Held>()
  const spanMs = seconds * 1_000

  const extend = async (some: readonly Held[]): Promise<void> => {
    const began = performance.now()
    const until = began + spanMs
    try {
      const refusals = await queue.hide(some.map(({ receipt }) => ({ receipt, seconds })))
      health.well(began)
      const refused = new Set(refusals.map(({ at }) => some[at]))
      for (const held of some) {
        // Answers may come in another order than they were asked for, and what was refused is refused for good.
        if (!refused.has(held) && held.hiddenUntil > 0) held.hiddenUntil = Math.max(held.hiddenUntil, until)
      }
      for (const { at, error } of refusals) {
        // The receipt is no longer good: it has run out, or it is older than the twelve hours of SQS.
        if (error.senderFault) some[at]!.hiddenUntil = 0
      }
    } catch (error) {
      health.ill(error)
    }
  }
  // From half of the time on, so that a request may fail twice; or hang, for which the next one does not wait.
  const timer = setInterval(() => {
    const now = performance.now()
    const due = [...all].filter(({ hiddenUntil }) => {
      const leftMs = hiddenUntil - now
      return leftMs > 0 && leftMs < spanMs / 2
    })
    for (let at = 0; at < due.length; at += MAX_ENTRIES) void extend(due.slice(at, at + MAX_ENTRIES))
  }, spanMs / 6)

  return {
    get size() {
      return all.size
    },
    add: (held) => void all.add(held),
    drop: (held) => void all.delete(held),
    isOurs: ({ hiddenUntil }) => performance.now() < hiddenUntil,
    stop: () => clearInterval(timer),
  }
}
