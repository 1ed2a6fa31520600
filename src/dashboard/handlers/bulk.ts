/**
 * Changes of many messages: count, confirm, run. The count is sealed into a confirmation, with the query and the time that its
 * times were read at and how far messages had come; what is confirmed is counted again, and refused if it is not the same any more.
 */
import { randomUUID } from 'node:crypto'
import type { CheckedFilter } from '../../admin/filter.js'
import type { Counted, Job, Jobs } from '../answers/index.js'
import { mayRead } from '../asked.js'
import { changeOf } from '../bulk/batch.js'
import type { ListedJob, Order } from '../bulk/jobs.js'
import { countAll } from '../bulk/count.js'
import { maySeeBodies, type BoxCall, type BoxViewer } from '../desk.js'
import type { WalkEnd } from '../../postgres/sql/bulk.js'
import { Problem } from '../problem.js'
import { RATE_ABOVE, type RouteInput } from '../routes.js'
import type { Bearer } from '../sign.js'
import { readQuery } from './messages.js'

type Verb = Order['verb']

const HOLDS_MS = 600_000

/** What was counted. */
interface Sealed {
  /** The id of the job that it may begin. */
  readonly job: string
  readonly q: string
  readonly zone: number
  readonly nowMs: number
  readonly count: number
  readonly end: WalkEnd
}

export async function count(
  call: BoxCall,
  verb: Verb,
  { q = '', zone = 0 }: RouteInput<'countRetry'>,
): Promise<Counted> {
  return recount(call, verb, { q, zone, nowMs: Date.now() })
}

async function recount(call: BoxCall, verb: Verb, asked: Omit<Sealed, 'job' | 'count' | 'end'>): Promise<Counted> {
  const { part, desk } = call
  const { filter } = readQuery(call, asked.q, asked)
  const { end, ...total } = await countAll(part.reads, filter, changeOf({ inside: part, verb, reason: '' }))
  const sealed: Sealed = { ...asked, job: randomUUID(), count: total.count, end }
  return {
    ...total,
    at: new Date().toISOString(),
    confirmation: desk.signer.seal(bearerOf(call, verb), { ...sealed, at: Date.now() }),
    needsRate: total.count > RATE_ABOVE,
  }
}

export async function confirm(call: BoxCall, verb: Verb, input: RouteInput<'retry'>): Promise<Job> {
  const { part, access } = call
  const { limit, perSecond, reason } = input
  const sealed = open(call, verb, input.confirmation)
  const query = readQuery(call, sealed.q, sealed)
  // Sent again, as by a client that has not seen the answer.
  const begun = await part.jobs.find(sealed.job)
  if (begun) return shown(call.viewer, begun)
  const most = Math.min(limit ?? Infinity, sealed.count)
  if (most === 0) throw new Problem('NOTHING_MATCHES', 'no message matches; nothing was changed')
  if (most > RATE_ABOVE && perSecond === undefined) {
    throw new Problem('RATE_REQUIRED', `${most} messages at once may be too much for what they call; say perSecond`, {
      field: 'perSecond',
    })
  }
  if (verb === 'discard' && reason?.trim() === '') {
    throw new Problem('REASON_REQUIRED', 'say why, for the audit', { field: 'reason' })
  }
  try {
    await checkCount(call, verb, sealed, { filter: query.filter, limit })
  } catch (error) {
    // Two at once: the other has begun to change what was counted.
    const other = await part.jobs.find(sealed.job)
    if (other) return shown(call.viewer, other)
    throw error
  }
  const job = await part.jobs.start({
    id: sealed.job,
    ...{ verb, query: sealed.q, zone: sealed.zone, readAt: sealed.nowMs, secret: query.needsBodies },
    ...{ total: sealed.count, limit: most, counted: sealed.end },
    ...{ perSecond, by: access.by, reason },
  })
  return shown(call.viewer, job)
}

/** So many of those that were counted have to be left. If all are wanted, there must be no others either. */
async function checkCount(
  call: BoxCall,
  verb: Verb,
  sealed: Sealed,
  { filter, limit = Infinity }: { readonly filter: CheckedFilter; readonly limit: number | undefined },
): Promise<void> {
  const { q, zone, nowMs, end } = sealed
  const { part } = call
  const wantsAll = limit > sealed.count
  // Of very many each takes seconds: both at once.
  const [kept, all] = await Promise.all([
    countAll(part.reads, filter, changeOf({ inside: part, verb, reason: '' }), end),
    wantsAll ? recount(call, verb, { q, zone, nowMs }) : undefined,
  ])
  // One that died while it was counted may come in later.
  const isKept = kept.count >= Math.min(limit, sealed.count) && kept.count <= sealed.count
  if (isKept && !wantsAll) return
  const now = all ?? (await recount(call, verb, { q, zone, nowMs }))
  if (isKept && now.count === sealed.count) return
  const others = now.count === sealed.count ? 'as many now, but not the same' : `${now.count} now`
  const what = `there were ${sealed.count} when you looked, and there are ${others}`
  throw new Problem('COUNT_CHANGED', `nothing was changed: ${what}`, { counted: now })
}

function bearerOf({ access, part }: BoxCall, verb: Verb): Bearer {
  return { kind: 'confirmation', subject: access.subject, box: `${verb} ${part.name}` }
}

function open(call: BoxCall, verb: Verb, confirmation: string): Sealed {
  const sealed = call.desk.signer.open(bearerOf(call, verb), confirmation) as (Sealed & { at: number }) | undefined
  if (sealed && Date.now() - sealed.at < HOLDS_MS) return sealed
  throw new Problem('CONFIRMATION_INVALID', 'this confirmation is too old, or another’s; count again')
}

type Change = Omit<RouteInput<'paceRetry'>, 'perSecond'> & { readonly perSecond?: number }

export async function pace({ part, viewer }: BoxCall, verb: Verb, { job, perSecond }: Change): Promise<Job> {
  return shown(viewer, await part.jobs.change({ verb, id: job }, perSecond === undefined ? {} : { perSecond }))
}

export async function cancel({ part, viewer }: BoxCall, verb: Verb, { job }: Change): Promise<Job> {
  return shown(viewer, await part.jobs.change({ verb, id: job }, { cancel: true }))
}

export async function jobs({ part, viewer }: BoxCall): Promise<Jobs> {
  return { jobs: shownJobs(viewer, await part.jobs.list()) }
}

export function shownJobs(viewer: BoxViewer, listed: readonly ListedJob[]): Job[] {
  return listed.map((job) => shown(viewer, job))
}

function shown(viewer: BoxViewer, { secret, query, ...job }: ListedJob): Job {
  if (query === undefined || (secret && !maySeeBodies(viewer)) || !mayRead(viewer, query)) return job
  return { ...job, query: viewer.fingerprints.showQuery(query) }
}
