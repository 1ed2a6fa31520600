/**
 * Spins: a message whose handler asks again and again to be run at once. No attempt of it counts, so that nothing would
 * end it: it would keep its consumer busy for ever. After a few times it waits, longer and longer.
 */
import type { HeldMessage } from './held.js'
import type { Worker } from './run.js'
import type { Verdict } from './verdict.js'

/** Later than that is no spinning. */
const AT_ONCE_MS = 100
/** So often it may have its way. */
const FREE = 3
const MOST_MS = 10_000
const MAX_REMEMBERED = 10_000

/** A consumer's, for as long as its process runs: each drain has a worker of its own. */
const spins = new WeakMap<Worker['consumer'], Map<string, number>>()

/** The verdict of a message that asked to be run later, or one with a longer delay. */
export function slowDown({ consumer }: Worker, { source, id }: HeldMessage, verdict: Verdict): Verdict {
  const delayMs = verdict.at ? verdict.at.getTime() - Date.now() : (verdict.delayMs ?? 0)
  const times = spins.get(consumer) ?? new Map<string, number>()
  spins.set(consumer, times)
  const key = JSON.stringify([source, id])
  if (delayMs >= AT_ONCE_MS) {
    times.delete(key)
    return verdict
  }
  if (times.size >= MAX_REMEMBERED) times.clear()
  const count = (times.get(key) ?? 0) + 1
  times.set(key, count)
  if (count <= FREE) return verdict
  const { at: _, ...rest } = verdict
  return { ...rest, delayMs: Math.min(MOST_MS, AT_ONCE_MS * 2 ** Math.min(count - FREE - 1, 20)) }
}
