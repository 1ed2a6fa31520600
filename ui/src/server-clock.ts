/**
 * The server's clock: what is said of a time is said by the clock that wrote it. A browser's own may be wrong by minutes, or by
 * hours if somebody has set it to a zone by hand.
 */

/** A little is what an answer takes on its way, and nobody's mistake. */
const LEAST_MS = 15_000

let aheadMs = 0

/** The server said that it is `at` now. */
export function setServerClock(at: string): void {
  const ahead = Date.parse(at) - Date.now()
  aheadMs = Math.abs(ahead) < LEAST_MS ? 0 : ahead
}

export const present = (): number => Date.now() + aheadMs
