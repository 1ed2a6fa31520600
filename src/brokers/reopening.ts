/** How long a source waits before it opens its connection again: longer each time, and little only once one has lasted. */
import { backoffMs } from '../backoff.js'

/**
 * What was open for so long works, whether there was something to read or not. To have opened is not enough: a message that
 * cannot be read ends the connection that it comes over at once, each time.
 */
export const LASTING_MS = 10_000

export interface Reopening {
  opened(): void
  lost(): void
  /** Before the next attempt. */
  waitMs(): number
}

export function createReopening(firstMs: number, mostMs: number): Reopening {
  /** Since a connection lasted. */
  let attempts = 0
  let openedAt = Infinity
  return {
    opened() {
      openedAt = performance.now()
    },
    lost() {
      if (performance.now() - openedAt >= LASTING_MS) attempts = 0
      openedAt = Infinity
    },
    waitMs: () => backoffMs(attempts++, firstMs, mostMs),
  }
}
