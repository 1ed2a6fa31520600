/**
 * Changes of many messages: what any page opens the dialog with, and what the dialog asks of the server. One is open at a time; what
 * it started goes on without it.
 */
import { batch, effect, signal } from '@preact/signals'
import { api, DashboardError, zone, type Job } from '../../api.js'
import { jobs } from '../../live.js'
import {
  chosen, counted, notStarted, orderOf, recounted, starting, type BulkState, type Choice, type Verb,
} from '../../logic/bulk.js' // prettier-ignore
import { limits } from './limits.js'

export interface BulkAsk {
  readonly verb: Verb
  readonly box: string
  /** Which messages, as the search bar has it. */
  readonly q: string
  /** Behind "messages" in the title: "in front". */
  readonly where?: string
  /** What the reader should know about these. */
  readonly hint?: string
}

interface Open extends BulkAsk {
  readonly state: BulkState
  /** When the server counted, by the clock of this browser. */
  readonly countedAt: number
}

export const bulk = signal<Open | undefined>(undefined)
/** What the server said of a job last, whether by the stream or in answer to a change. */
export const told = signal<ReadonlyMap<string, Job>>(new Map())

let abort = new AbortController()

/** Counts, and asks before anything is changed. */
export function openBulk(ask: BulkAsk): void {
  bulk.value = { ...ask, state: { step: 'counting' }, countedAt: 0 }
  void recount()
}

/** Shows one that runs, or has ended. */
export function openJob({ id, verb, box, query = '' }: Job): void {
  bulk.value = { verb, box, q: query, state: { step: 'following', id }, countedAt: 0 }
}

/** What was started goes on. */
export function closeBulk(): void {
  abort.abort()
  bulk.value = undefined
}

export async function recount(): Promise<void> {
  const at = bulk.value
  if (!at) return
  abort.abort()
  const own = new AbortController()
  abort = own
  const before = at.state
  bulk.value = { ...at, state: { step: 'counting' } }
  try {
    const { verb, box, q } = at
    const options = { signal: own.signal }
    const input = { box, q, zone: zone() }
    const answer = await (verb === 'retry' ? api.countRetry(input, options) : api.countDiscard(input, options))
    if (own.signal.aborted) return
    bulk.value = { ...at, state: recounted(before, counted(answer), limits()), countedAt: Date.now() }
  } catch (error) {
    if (own.signal.aborted) return
    bulk.value = { ...at, state: { step: 'refused', message: wordsOf(error) } }
  }
}

export function choose(change: Partial<Choice>): void {
  const at = bulk.value
  if (at) bulk.value = { ...at, state: chosen(at.state, change, limits()) }
}

export async function start(): Promise<void> {
  const at = bulk.value
  if (at?.state.step !== 'confirm') return
  const { verb, box, state } = at
  bulk.value = { ...at, state: starting(state) }
  try {
    const order = { box, ...orderOf(state.counted, state.choice) }
    const job = await (verb === 'retry' ? api.retry(order) : api.discard({ ...order, reason: order.reason ?? '' }))
    batch(() => {
      hear([job])
      if (isStill(at)) bulk.value = { ...at, state: { step: 'following', id: job.id } }
    })
  } catch (error) {
    if (!isStill(at)) return
    const open = bulk.value
    if (error instanceof DashboardError && error.code === 'CONFIRMATION_INVALID') {
      bulk.value = { ...open, state }
      return recount()
    }
    const detail =
      error instanceof DashboardError ? error.detail : { code: 'INTERNAL' as const, message: wordsOf(error) }
    bulk.value = { ...open, state: notStarted(open.state, detail), countedAt: Date.now() }
  }
}

/** The reader has not closed it, or opened another, meanwhile. */
function isStill({ verb, box, q }: BulkAsk): boolean {
  const at = bulk.value
  return at?.verb === verb && at.box === box && at.q === q && at.state.step === 'starting'
}

export async function pace({ id, verb, box }: Job, perSecond: number): Promise<void> {
  const input = { box, job: id, perSecond }
  hear([await (verb === 'retry' ? api.paceRetry(input) : api.paceDiscard(input))])
}

export async function stop({ id, verb, box }: Job): Promise<void> {
  const input = { box, job: id }
  hear([await (verb === 'retry' ? api.cancelRetry(input) : api.cancelDiscard(input))])
}

/** Asks for the jobs of a box: where no stream tells them. */
export async function ask(box: string): Promise<void> {
  hear((await api.jobs({ box })).jobs)
}

function hear(news: readonly Job[]): void {
  const known = new Map(told.peek())
  for (const job of news) known.set(job.id, job)
  told.value = known
}

effect(() => hear(jobs.value))

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
