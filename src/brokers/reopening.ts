/** How long a source waits before it opens its connection again: longer each time, and little only once one has lasted. */
import { backoffMs } from '../backoff.js'

export interface Pauses {
  readonly firstMs: number
  readonly mostMs: number
  /**
   * What was open for so long works, whether there was something to read or not. To have opened is not enough: a message that
   * cannot be read ends the connection that it comes over at once, each time. Nor is it to be much longer than that takes:
   * a network that loses connections every few seconds is no reason to wait.
   */
  readonly lastingMs: number
}

export interface Reopening {
  opened(): void
  lost(): void
  /** Before the next attempt. */
  waitMs(): number
}

export function createReopening({ firstMs, mostMs, lastingMs }: Pauses): Reopening {
  /** Since a connection lasted. */
  let attempts = 0
  let openedAt = Infinity
  return {
    opened() {
      openedAt = performance.now()
    },
    lost() {
      if (performance.now() - openedAt >= lastingMs) attempts = 0
      openedAt = Infinity
    },
    waitMs: () => backoffMs(attempts++, firstMs, mostMs),
  }
}
