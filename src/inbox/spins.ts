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

interface Asks {
  /** How often it has asked for it. */
  readonly count: number
  /** When it asked last, and for how long a delay. */
  readonly asked: number
  readonly delayMs: number
}

/** A consumer's, for as long as its process runs: each drain has a worker of its own. */
const spins = new WeakMap<Worker['consumer'], Map<string, Asks>>()

/**
 * The verdict of a message that asked to be run later, or one with a longer delay. A time is asked for by our clock, and waited for
 * by that of the database: where ours is behind, it is over when it is asked for. So a message that comes back long before the time
 * for which it asked spins, too.
 */
export function slowDown({ consumer }: Worker, { source, id }: HeldMessage, verdict: Verdict): Verdict {
  const now = performance.now()
  const delayMs = verdict.at ? verdict.at.getTime() - Date.now() : (verdict.delayMs ?? 0)
  const known = spins.get(consumer) ?? new Map<string, Asks>()
  spins.set(consumer, known)
  const key = JSON.stringify([source, id])
  const last = known.get(key)
  const cameEarly = verdict.at !== undefined && last !== undefined && now - last.asked < last.delayMs / 2
  const spinning = delayMs < AT_ONCE_MS || cameEarly
  if (!spinning && !verdict.at) {
    known.delete(key)
    return verdict
  }
  if (known.size >= MAX_REMEMBERED) known.clear()
  const count = spinning ? (last?.count ?? 0) + 1 : 0
  known.set(key, { count, asked: now, delayMs })
  if (count <= FREE) return verdict
  return { ...verdict, delayMs: Math.min(MOST_MS, AT_ONCE_MS * 2 ** Math.min(count - FREE - 1, 20)) }
}
