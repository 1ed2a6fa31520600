/** Runs a change over all that fits, in small batches, each a statement of its own, at a rate that may change meanwhile. */
import type { Change } from '../../admin/bulk.js'
import type { CheckedFilter } from '../../admin/filter.js'
import { sleep } from '../../backoff.js'
import type { Runtime } from '../../runtime.js'
import { statesFor, walk } from './count.js'
import type { Follower } from './follow.js'

const MOST_AT_ONCE = 500
const LOOK_MS = 1_000

/** What the outside changes while it runs. */
export interface Control {
  perSecond: number | undefined
  cancelled: boolean
  /** Resolves when either has changed. */
  changed: Promise<void>
}

export interface Progress {
  done: number
  skipped: number
}

export interface Run {
  readonly runtime: Runtime
  readonly change: Change
  readonly filter: CheckedFilter
  readonly limit: number
  readonly control: Control
  readonly progress: Progress
  readonly follower: Follower
  wake(): void
}

/** Answers why it ended. What was changed stays changed, whatever the reason. */
export async function runAll(run: Run): Promise<'done' | 'cancelled' | 'stopped'> {
  const { runtime, change, filter, limit, control, progress, follower } = run
  const states = statesFor(filter, change)
  let next = performance.now()
  let lookedAt = performance.now()
  for await (const rows of walk(runtime, filter, states)) {
    for (let at = 0; at < rows.length;) {
      if (progress.done >= limit) return 'done'
      await pause(control, () => next)
      if (performance.now() - lookedAt > LOOK_MS) {
        await follower.look()
        lookedAt = performance.now()
      }
      if (control.cancelled) return 'cancelled'
      if (follower.isHopeless) return 'stopped'
      const batch = rows.slice(at, at + Math.min(sizeOf(control), limit - progress.done))
      const changed = await change[filter.box](batch, states)
      progress.done += changed
      progress.skipped += batch.length - changed
      at += batch.length
      run.wake()
      const { perSecond } = control
      next =
        Math.max(next, performance.now() - LOOK_MS) + (perSecond === undefined ? 0 : (batch.length * 1_000) / perSecond)
    }
    if (control.cancelled) return 'cancelled'
  }
  return 'done'
}

/** A tenth of a second's worth, so that a change of the rate is felt at once. */
function sizeOf({ perSecond }: Control): number {
  return perSecond === undefined ? MOST_AT_ONCE : Math.max(1, Math.min(MOST_AT_ONCE, Math.floor(perSecond / 10)))
}

/** Until it is time for the next batch, or it was cancelled. Another rate counts from now on. */
async function pause(control: Control, next: () => number): Promise<void> {
  const { perSecond } = control
  for (let left = next() - performance.now(); left > 0; left = next() - performance.now()) {
    await sleep(Math.min(left, LOOK_MS), control.changed)
    if (control.cancelled || control.perSecond !== perSecond) return
  }
}
