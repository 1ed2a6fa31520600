/**
 * Jobs: retries and discards that go on while nobody looks. The rest of the dashboard knows three methods of them, `start`, `list`
 * and `change`. Here they run in this process, and end with it: what was changed stays changed, and the audit says that it began.
 */
import { randomUUID } from 'node:crypto'
import type { Change } from '../../admin/bulk.js'
import type { CheckedFilter } from '../../admin/filter.js'
import { discarding } from '../../admin/discard.js'
import { retrying } from '../../admin/retry.js'
import { sleep } from '../../backoff.js'
import { writeAudit } from '../../inbox/audit.js'
import type { MessageKey } from '../../postgres/sql/rules.js'
import type { Runtime } from '../../runtime.js'
import type { Job } from '../answers/index.js'
import type { Inside } from '../options.js'
import { notFound, Problem, toProblem } from '../problem.js'
import { createFollower, type Follower } from './follow.js'
import { runAll, type Control, type Progress } from './run.js'

export interface Order {
  readonly verb: 'retry' | 'discard'
  readonly filter: CheckedFilter
  /** The filter in words, for the audit and for people. */
  readonly query: string
  /** It may quote a payload. */
  readonly secret: boolean
  readonly total: number
  readonly limit: number
  readonly perSecond: number | undefined
  readonly by: string | undefined
  readonly reason: string | undefined
}

export type ListedJob = Job & { readonly secret: boolean }

export interface Jobs {
  /** Resolves once it has begun, and the audit says so. */
  start(order: Order): Promise<ListedJob>
  /** Those that run, and those that ended lately; newest first. */
  list(): readonly ListedJob[]
  /** Cancels what runs. Resolves when nothing does any more. */
  close(): Promise<void>
  /** Throws NOT_FOUND for one that is not of this verb. */
  change(
    job: { readonly verb: Order['verb']; readonly id: string },
    to: { cancel?: true; perSecond?: number },
  ): ListedJob
}

interface Kept {
  readonly id: string
  readonly order: Order
  readonly control: Control
  readonly progress: Progress
  readonly follower: Follower
  readonly startedAt: Date
  state: Job['state']
  endedAt?: Date
  problem?: string
  changed(): void
}

export interface JobsDeps {
  readonly inside: Inside
  readonly reads: Runtime
  report(error: unknown): void
}

const MOST_RUNNING = 4
const MOST_KEPT = 50
const KEPT_MS = 3_600_000
/** What was retried last gets so long to show what becomes of it. */
const AFTERWARDS_MS = 60_000
const LOOK_MS = 500

export function createJobs(deps: JobsDeps): Jobs {
  const kept = new Map<string, Kept>()
  const running = new Set<Promise<void>>()
  const { inside } = deps
  const find = (verb: Order['verb'], id: string): Kept => {
    const job = kept.get(id)
    if (job?.order.verb === verb) return job
    throw notFound('there is no such job in this process; it may have ended, or run in another')
  }
  return {
    async start(order) {
      forgetOld(kept)
      if ([...kept.values()].filter(({ state }) => state === 'running').length >= MOST_RUNNING) {
        throw new Problem('BUSY', `${MOST_RUNNING} changes run already; wait for one to end, or cancel one`)
      }
      const job = begin(order, deps.reads)
      kept.set(job.id, job)
      try {
        await note(deps, job, { action: `${order.verb}-started`, state: 'running' })
      } catch (error) {
        kept.delete(job.id)
        throw error
      }
      const work = perform(deps, job).finally(() => running.delete(work))
      running.add(work)
      return show(inside.name, job)
    },
    list() {
      forgetOld(kept)
      return [...kept.values()].reverse().map((job) => show(inside.name, job))
    },
    async close() {
      for (const { control, changed } of kept.values()) {
        control.cancelled = true
        changed()
      }
      await Promise.all(running)
    },
    change({ verb, id }, { cancel, perSecond }) {
      const job = find(verb, id)
      if (job.state !== 'running') throw new Problem('CONFLICT', 'it has ended already')
      if (cancel) job.control.cancelled = true
      if (perSecond !== undefined) job.control.perSecond = perSecond
      job.changed()
      return show(inside.name, job)
    },
  }
}

function begin(order: Order, reads: Runtime): Kept {
  const control: Control = { perSecond: order.perSecond, cancelled: false, changed: Promise.resolve() }
  let resolve = (): void => undefined
  const renew = (): void => {
    const before = resolve
    control.changed = new Promise((changed) => (resolve = changed))
    before()
  }
  renew()
  return {
    id: randomUUID(),
    order,
    control,
    progress: { done: 0, skipped: 0 },
    follower: createFollower(reads),
    startedAt: new Date(),
    state: 'running',
    changed: renew,
  }
}

async function perform(deps: JobsDeps, job: Kept): Promise<void> {
  const { inside, report } = deps
  const { stage } = inside
  const { order, control, progress, follower } = job
  const change = changeOf(inside, order, (keys) => follower.add(keys))
  const { filter, limit } = order
  let state: Job['state'] = 'failed'
  try {
    const run = { runtime: stage.runtime, change, filter, limit, control, progress, follower, wake: () => stage.wake() }
    state = await runAll(run)
  } catch (error) {
    report(error)
    job.problem = toProblem(error).message
  }
  // Before it is shown as ended: whoever sees that finds it in the audit.
  await note(deps, job, { action: order.verb, state }).catch(report)
  job.state = state
  job.endedAt = new Date()
  // For the eye alone: a box that is gone by then has nothing to show.
  await follow(job).catch(() => undefined)
}

async function follow({ follower, control }: Kept): Promise<void> {
  for (const end = performance.now() + AFTERWARDS_MS; performance.now() < end && !control.cancelled;) {
    await follower.look()
    if (follower.open === 0) return
    await sleep(LOOK_MS, control.changed)
  }
}

export function changeOf(
  { stage }: Inside,
  { verb, reason }: Pick<Order, 'verb' | 'reason'>,
  note?: (keys: readonly MessageKey[]) => void,
): Change {
  if (verb === 'retry') return retrying(stage.runtime, stage.consumers(), note)
  return discarding(stage.runtime, stage.consumers().map(({ name }) => name), reason ?? '') // prettier-ignore
}

/** Who, what, how many, and why. */
function note(
  { inside }: JobsDeps,
  { id, order, progress, control }: Kept,
  { action, state }: { readonly action: string; readonly state: Job['state'] },
): Promise<void> {
  const { query, total, limit, reason, by } = order
  const detail = {
    filter: query,
    count: progress.done,
    of: total,
    reason,
    ...(limit < total && { limit }),
    perSecond: control.perSecond,
    state,
    job: id,
  }
  return writeAudit(inside.stage.runtime, { action, detail, by })
}

function show(box: string, { id, order, progress, follower, control, ...rest }: Kept): ListedJob {
  const { verb, query, by, reason, total, limit, secret } = order
  return {
    id,
    box,
    verb,
    state: rest.state,
    query,
    secret,
    ...(by !== undefined && { by }),
    ...(reason !== undefined && { reason }),
    total: Math.min(total, limit),
    done: progress.done,
    skipped: progress.skipped,
    handled: follower.handled,
    failedAgain: follower.failedAgain,
    ...(control.perSecond !== undefined && { perSecond: control.perSecond }),
    startedAt: rest.startedAt.toISOString(),
    ...(rest.endedAt && { endedAt: rest.endedAt.toISOString() }),
    ...(rest.problem !== undefined && { problem: rest.problem }),
  }
}

function forgetOld(kept: Map<string, Kept>): void {
  const ended = [...kept.values()].filter(({ endedAt }) => endedAt)
  const tooMany = Math.max(0, kept.size - MOST_KEPT)
  for (const [at, { id, endedAt }] of ended.entries()) {
    if (at < tooMany || Date.now() - endedAt!.getTime() > KEPT_MS) kept.delete(id)
  }
}
