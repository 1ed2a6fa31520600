/**
 * Mark handled: records messages that something else has handled, a batch at a time. When it answers, each of them is handled
 * for the consumer, by the mark or by a worker that was at it: later copies are duplicates.
 */
import { backoffMs, sleep } from '../backoff.js'
import { checkKnown, nameProblem } from '../check-options.js'
import { hintAt } from '../nearest.js'
import { OnceboxError } from '../errors.js'
import { isOnCalendar } from '../figures.js'
import { writeAudit } from '../inbox/audit.js'
import type { ConsumerDeclaration } from '../inbox/consumer.js'
import { businessId } from '../inbox/identity.js'
import { checked, invalid, orElse, resolve, type Resolved } from '../options.js'
import { sqlState } from '../postgres/errors.js'
import { MARK_HANDLED, SETTLE_MARKED, type MarkRow } from '../postgres/sql/marks.js'
import type { Runtime } from '../runtime.js'
import { consumers } from './consumers.js'
import { SIGNED } from './signed.js'
import type { HandledId, MarkOptions } from './types.js'

const AT_ONCE = 2_000
/** How long to wait for a process that runs a copy on arrival; then the other messages are marked first. */
const WAIT = '200ms'
/** What somebody holds is tried again for so long, after all others: longer than a handler may take, unless it is allowed more. */
const HELD_MS = 60_000
/** So many of the ids that are still held are named. */
const NAMED = 5

type Given = Iterable<string | HandledId> | AsyncIterable<string | HandledId>

export interface Marking {
  readonly runtime: Runtime
  readonly declared: readonly ConsumerDeclaration[]
}

/** A consumer, as marks need to know it. */
interface Target {
  readonly name: string
  readonly retainMs: number
  readonly identity: boolean
}

interface Job {
  readonly runtime: Runtime
  readonly target: Target
  readonly progress: { given: number; count: number }
  /** What somebody holds, a worker or a delivery on arrival, by its key. */
  readonly putOff: Map<string, MarkRow>
}

/** A message without a source or a type has an empty one. */
const text = orElse(
  checked((where, given: string) => checkText(where, given)),
  '',
)
const OPTIONS = { ...SIGNED, source: text, type: text }
type Named = Pick<Resolved<typeof OPTIONS>, 'source' | 'type'>

// No source has a NUL.
const keyOf = (source: string, id: string): string => `${source}\0${id}`

export async function markHandled(
  marking: Marking,
  consumer: string,
  ids: Given,
  options: MarkOptions = {},
): Promise<number> {
  const { runtime } = marking
  const resolved = resolve('markHandled', options, OPTIONS)
  checkGiven(ids)
  const target = await targetOf(marking, consumer)
  const read = rowReader(target, resolved)
  // An array is checked as a whole, before anything is written.
  const rows = Array.isArray(ids) ? (ids as readonly (string | HandledId)[]).map(read) : undefined
  const progress = { given: 0, count: 0 }
  const job: Job = { runtime, target, progress, putOff: new Map() }
  try {
    for await (const batch of batches(rows ?? ids, rows ? undefined : read)) {
      await mark(job, batch)
      progress.given += batch.length
    }
    await finish(job)
  } finally {
    const { by, reason } = resolved
    const { source } = options
    const detail = { consumer, ...progress, ...(source !== undefined && { source }), reason }
    await writeAudit(runtime, { action: 'mark-handled', detail, by })
  }
  return progress.count
}

function checkGiven(ids: unknown): void {
  const given = ids as { [Symbol.iterator]?: unknown; [Symbol.asyncIterator]?: unknown } | null | undefined
  const walks = typeof given === 'object' && given !== null && (given[Symbol.iterator] ?? given[Symbol.asyncIterator])
  if (typeof walks !== 'function') throw invalid('markHandled: ids must be an array, or something to iterate over')
}

/** A misspelt name would remember for nobody. */
async function targetOf({ runtime, declared }: Marking, name: string): Promise<Target> {
  const all = await consumers(runtime, declared)
  const found = all.find((one) => one.name === name)
  if (!found) {
    const advice = 'declare it, and run box.migrate(), before its ids are marked'
    const hint = typeof name === 'string' ? hintAt(name, all.map((one) => one.name), advice) : advice // prettier-ignore
    throw new OnceboxError('CONSUMER_UNKNOWN', `markHandled: there is no consumer ${JSON.stringify(name)}; ${hint}`)
  }
  const local = declared.find((one) => one.name === name)
  return { name, retainMs: local?.options.retainMs ?? found.retainMs, identity: found.identity || local?.options.identity !== undefined } // prettier-ignore
}

/** Reads what was given at a position, or refuses it. */
function rowReader({ name, identity }: Target, byDefault: Named): (given: unknown, at: number) => MarkRow {
  return (given, at) => {
    const where = `markHandled: ids[${at}]`
    const one = (typeof given === 'string' ? { id: given } : given) as HandledId
    if (typeof one !== 'object' || one === null) throw invalid(`${where} must be a string, or an object { id }`)
    checkKnown(where, one, ['id', 'source', 'type', 'at'])
    const { id, source = byDefault.source, type = byDefault.type, at: time } = one
    const problem = nameProblem(id)
    if (problem) throw invalid(typeof given === 'string' ? `${where} ${problem}` : `${where}: its id ${problem}`)
    checkText(`${where}: its source`, source)
    checkText(`${where}: its type`, type)
    if (time !== undefined && !isOnCalendar(time)) throw invalid(`${where}: its time, at, must be a valid Date`)
    const when = time && { at: time.toISOString() }
    if (!identity) return { s: source, i: id, t: type, ...when }
    if (type === '')
      throw invalid(`${where} needs a type: consumer ${name} has a business key, and ids are its values by type`)
    return { s: '', i: businessId(type, id), t: type, ...when }
  }
}

function checkText(where: string, value: string): string {
  const problem = value === '' ? undefined : nameProblem(value)
  if (problem) throw invalid(`${where} ${problem}`)
  return value
}

async function* batches(
  given: Given | readonly MarkRow[],
  read: ((given: unknown, at: number) => MarkRow) | undefined,
): AsyncGenerator<readonly MarkRow[]> {
  let batch: MarkRow[] = []
  let at = 0
  for await (const one of given as AsyncIterable<unknown>) {
    batch.push(read ? read(one, at++) : (one as MarkRow))
    if (batch.length < AT_ONCE) continue
    yield batch
    batch = []
  }
  if (batch.length > 0) yield batch
}

/** Marks them, but for those that somebody holds: these are put off, and the others do not wait for them. */
async function mark(job: Job, marks: readonly MarkRow[], until = Infinity): Promise<void> {
  if (performance.now() > until) return putOff(job, marks)
  try {
    await markAll(job, marks)
  } catch (error) {
    if (sqlState(error) !== '55P03') throw error
    if (marks.length === 1) return putOff(job, marks)
    const half = Math.ceil(marks.length / 2)
    await mark(job, marks.slice(0, half), until)
    await mark(job, marks.slice(half), until)
  }
}

function putOff(job: Job, marks: readonly MarkRow[]): void {
  for (const one of marks) job.putOff.set(keyOf(one.s, one.i), one)
}

async function markAll(job: Job, marks: readonly MarkRow[]): Promise<void> {
  const { runtime, target, progress } = job
  const given = { consumer: target.name, retainMs: target.retainMs, wait: WAIT, marks }
  const [row] = await runtime.db.run(MARK_HANDLED, given)
  progress.count += Number(row!.marked)
  if (Number(row!.given) > Number(row!.marked)) await settle(job, marks)
}

/** Those that the consumer knows: handled ones, and what nobody has to run any more. */
async function settle(job: Job, marks: readonly MarkRow[]): Promise<void> {
  const { runtime, target, progress } = job
  const keys = marks.map(({ s, i }) => [target.name, s, i] as const)
  const [row] = await runtime.db.run(SETTLE_MARKED, { keys })
  progress.count += Number(row!.settled)
  const held = new Set((JSON.parse(row!.held) as [string, string][]).map(([source, id]) => keyOf(source, id)))
  if (held.size > 0)
    putOff(
      job,
      marks.filter(({ s, i }) => held.has(keyOf(s, i))),
    )
}

/** Tries all that were put off again, until nobody holds one of them any more, or the time is over. */
async function finish(job: Job): Promise<void> {
  const deadline = performance.now() + HELD_MS
  for (let tries = 0; job.putOff.size > 0; tries++) {
    if (performance.now() > deadline) throw busy(job)
    await sleep(backoffMs(tries, 50, 1_000))
    const again = [...job.putOff.values()]
    job.putOff.clear()
    for await (const batch of batches(again, undefined)) await mark(job, batch, deadline)
  }
}

function busy({ target, putOff: held }: Job): OnceboxError {
  const ids = [...held.values()].map(({ i }) => i)
  const named = `${ids.slice(0, NAMED).join(', ')}${ids.length > NAMED ? ', …' : ''}`
  return new OnceboxError(
    'BUSY',
    `markHandled: somebody is handling ${ids.length} of these ids for ${target.name} right now: ${named}; all others are marked. Call it again when that is over, with these or with all`,
  )
}
