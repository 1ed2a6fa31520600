/**
 * Relay: publishes the events of one sink.
 *
 *     lease shards → read a batch → publish it once → record what became of it, and give the shards back
 *
 * A key lives in one shard, so its events are published one after the other, however many relays there are. A crash
 * anywhere leaves rows that are still to be published: the next holder publishes them again, same ids, same order.
 */
import { aboutMessage } from '../about.js'
import { randomUUID } from 'node:crypto'
import { sharedByCopies } from '../copies.js'
import { RELAY_INTO, type RelayInto } from '../brokers/handover.js'
import type { Sink } from '../brokers/sink.js'
import { inAscii, plainWords, someCause, wordsOf } from '../failure.js'
import { MAX_BATCH_BYTES } from '../figures.js'
import type { Failure } from '../message.js'
import { isConflict, isConnectionLoss, isUntranslatable, sqlState } from '../postgres/errors.js'
import { MOVE } from '../postgres/sql/link.js'
import {
  CLAIM_SHARDS,
  COMPLETE,
  COMPLETED,
  FINISH_SHARED,
  READ_SHARDS,
  RELEASE_SHARDS,
  type CompleteInput,
  type ReadInput,
  type ShardsHeld,
} from '../postgres/sql/shards.js'
import { readJson } from '../postgres/statement.js'
import { tell, type Runtime } from '../runtime.js'
import { backoffMs, sleep } from '../backoff.js'
import { publishApart, type Care } from './apart.js'
import { assign, catchUp } from './assign.js'
import type { Attached } from './options.js'
import { leaseShards, type ShardLease } from './shard-lease.js'
import type { Suspects } from './suspects.js'
import { DestinationDown, publish, toEvent, type OutgoingEvent, type PublishOptions, type Verdicts } from './publish.js'

export interface Step {
  /** Whether anything was published, or could be by asking again at once. */
  readonly found: 'none' | 'more' | 'published'
  /** How long until something falls due, as far as is known. */
  readonly nextMs: number | undefined
  /** What the destination said, if it was asked. */
  readonly answer?: Answered
}

/** Whether it took events; else whether it judged any. And what it has to say of itself, if it took only some. */
export interface Answered {
  readonly took: boolean
  readonly problem?: unknown
}

/** What a relay remembers of its sink. */
export interface Memory {
  readonly care: Care
  readonly suspects: Suspects
  /** Tokens under which it may still hold shards: the database was away when it gave them back, or when it was to answer. */
  readonly unreleased: Set<string>
}

/** So many shards of the 32 at a time: several relays then work side by side. */
const SHARDS_AT_ONCE = 8
const COMPLETE_TRIES = 10
/** How long a link waits for a message that the receiving box is handling on arrival. */
const LOCK_WAIT = '1s'

/** Publishes one batch. Throws DestinationDown if the sink is down, after giving the shards back. */
export async function relayBatch(runtime: Runtime, attached: Attached, memory: Memory): Promise<Step> {
  const { db } = runtime
  const { name, options } = attached
  const { unreleased } = memory
  // Left to their lease, events would wait for it after every outage.
  for (const token of unreleased) await release(runtime, { sink: name, token }, memory)
  const who = { sink: name, token: randomUUID() }
  const claim = { ...who, lease: options.leaseMs, limit: SHARDS_AT_ONCE }
  const asked = performance.now()
  unreleased.add(who.token)
  const [claimed] = await db.run(CLAIM_SHARDS, claim)
  const { promoted, unassigned, behind, next } = claimed!
  const shards = readJson(claimed!.shards)
  /** Finds sinks for events that need one: they may hold back others. Answers whether it pays to ask again. */
  const lookAtOthers = async (): Promise<boolean> => {
    const assigned = unassigned === 'true' && (await assign(runtime))
    const caughtUp = behind !== null && (await catchUp(runtime, name))
    return assigned || caughtUp
  }
  const nextMs = next === null ? undefined : Number(next)
  const idle = (again: boolean): Step => ({ found: again || promoted === 'true' ? 'more' : 'none', nextMs })
  if (shards.length === 0) {
    unreleased.delete(who.token)
    return idle(await lookAtOthers())
  }

  const lease = leaseShards(runtime, who, options.leaseMs, { shards, asked })
  try {
    const again = await lookAtOthers()
    const answer = await relayLeased(runtime, attached, lease, memory)
    unreleased.delete(who.token)
    return answer ? { found: 'published', nextMs: undefined, answer } : idle(again)
  } catch (error) {
    await release(runtime, who, memory).catch(() => undefined)
    throw error
  } finally {
    lease.end()
  }
}

async function release({ db }: Runtime, held: ShardsHeld, { unreleased }: Memory): Promise<void> {
  await db.run(RELEASE_SHARDS, held)
  unreleased.delete(held.token)
}

/** Answers undefined if there was nothing. */
async function relayLeased(
  runtime: Runtime,
  attached: Attached,
  lease: ShardLease,
  { care, suspects }: Memory,
): Promise<Answered | undefined> {
  const moved = await moveInto(runtime, attached, lease)
  const events = moved ? moved.rest : await read(runtime, attached, lease)
  if (events.length === 0) {
    if (!moved) await runtime.db.run(RELEASE_SHARDS, { sink: attached.name, token: lease.token })
    return moved !== undefined && moved.count > 0 ? { took: true } : undefined
  }
  // A move gives back the shards that it leaves nothing in.
  if (moved) lease.keep(new Set(events.map(({ shard }) => shard)).size)
  const metrics = runtime.metrics.sink(attached.name)
  const started = performance.now()
  const isOurs = (): Promise<boolean> => lease.stands()
  const verdicts = await publishWithCare(runtime, attached, events, { care, isOurs }).finally(() => {
    metrics.asked(performance.now() - started)
  })
  suspects.judge(verdicts, attached.options.retry)
  metrics.answered(verdicts)
  const { published, failed, later, problem } = verdicts
  if (published.length > 0) care.published(lease.shards)
  else care.blamed(lease.shards)
  if (published.length + failed.length + later.length > 0) await complete(runtime, attached, lease, verdicts)
  if (published.length > 0) return { took: true, ...(suspects.waiting && { problem: problem?.error }) }
  // Nothing was asked: another relay has the shards, or some of them.
  if (lease.lost && !(problem ?? verdicts.untried) && failed.length + later.length === 0) {
    await runtime.db.run(RELEASE_SHARDS, { sink: attached.name, token: lease.token })
    return { took: false }
  }
  // An event that was found to be to blame says nothing of the destination.
  if (problem && verdicts.suspects.length + later.length > 0) throw new DestinationDown(problem.error)
  if (failed.length + later.length === 0) throw new DestinationDown((problem ?? verdicts.untried)?.error)
  return { took: false }
}

/** A sink that throws may have met one event that it cannot take: then they are published apart for a while. */
async function publishWithCare(
  { traces }: Runtime,
  { name, sink, options: { retry, publishTimeoutMs } }: Attached,
  events: readonly OutgoingEvent[],
  { care, isOurs }: { readonly care: Care } & Pick<PublishOptions, 'isOurs'>,
): Promise<Verdicts> {
  const options: PublishOptions = {
    isOurs,
    retry,
    publishTimeoutMs,
    around: (batch, call) => traces.publish(name, batch, call),
  }
  const shards = [...new Set(events.map(({ shard }) => shard))]
  try {
    if (!care.apart) return await publish(sink, events, options)
    return await publishApart(sink, events, { ...options, isProven: care.isProven(shards) })
  } catch (error) {
    if (error instanceof DestinationDown) care.threw(shards)
    throw error
  }
}

function reading({ name, options }: Attached, { shards }: ShardLease): ReadInput {
  // A hot shard is read deep; many shards share the batch.
  const depth = Math.min(options.batch, Math.ceil((2 * options.batch) / shards.length))
  return { sink: name, shards, depth, limit: options.batch, bytes: MAX_BATCH_BYTES }
}

async function read({ db }: Runtime, attached: Attached, lease: ShardLease): Promise<OutgoingEvent[]> {
  const rows = await db.run(READ_SHARDS, reading(attached, lease))
  return rows.map(toEvent)
}

/** Records what became of a batch. If the lease was lost it is published again, by the relay that holds the shards now. */
async function complete(
  runtime: Runtime,
  { name, options }: Attached,
  lease: ShardLease,
  verdicts: Verdicts,
): Promise<void> {
  const held = { sink: name, token: lease.token }
  const given = completing(held, verdicts)
  const { recorded, dead, shared } = await recordCompleted(runtime, lease, given).catch((error: unknown) => {
    // What the encoding of the database lacks is written in ASCII, or the batch would be published again and again.
    if (!isUntranslatable(error)) throw error
    return recordCompleted(runtime, lease, completing(held, verdicts, inAscii))
  })
  const lost = given.done.length + given.failed.length - Number(recorded)
  if (lost > 0) {
    runtime.log.warn(
      { sink: name, lost },
      `another relay took over before a batch was recorded, and publishes it again; raise leaseMs above ${options.leaseMs}`,
    )
  }
  // Some shards may be another relay's, and the others ours still.
  const numbers = new Set(readJson(dead))
  tellDead(runtime, name, verdicts.failed.filter(({ event: { n } }) => numbers.has(n))) // prettier-ignore
  // Last: where it fails, everything else is on record, and has been told.
  await finishShared(runtime, shared)
}

function completing(
  held: ShardsHeld,
  { published, failed, later }: Verdicts,
  write: (failure: Failure) => Failure = (failure) => failure,
): CompleteInput {
  return {
    ...held,
    done: published.map(({ n, id }) => [n, id] as const),
    failed: [
      ...failed.map(({ event: { n, id }, failure, delayMs }) => ({
        ...{ n, id, delayMs, error: JSON.stringify(write(failure)) },
        parked: delayMs === null ? ('dead' as const) : undefined,
      })),
      // Attempts are what holds back its key, so there is one, which does not count.
      ...later.map(({ event: { n, id, attempts }, failure, delayMs }) => ({
        ...{ n, id, delayMs, later: true as const },
        error: JSON.stringify(attempts === 0 ? { uncounted: true, ...write(failure) } : write(failure)),
      })),
    ],
  }
}

function recordCompleted({ db }: Runtime, lease: ShardLease, given: CompleteInput) {
  return persistently(lease, async (isRepeat) => {
    const [row] = await db.run(COMPLETE, given)
    if (!isRepeat || row!.recorded !== '0') return { ...row!, shared: readJson(row!.shared) }
    // The answer was lost, not the statement: what it shared is not known any more, and FINISH_SHARED judges each.
    const [done] = await db.run(COMPLETED, given)
    return { ...done!, shared: given.done.map(([n]) => n) }
  })
}

async function finishShared({ db }: Runtime, shared: readonly string[]): Promise<void> {
  if (shared.length > 0) await db.run(FINISH_SHARED, shared)
}

/** The batch is published: it pays to insist on recording it while nobody else can have the shards. */
async function persistently<T>(lease: ShardLease, record: (isRepeat: boolean) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await record(attempt > 1)
    } catch (error) {
      if (!isConnectionLoss(error) || lease.lost || attempt >= COMPLETE_TRIES) throw error
      await sleep(backoffMs(attempt, 50, 1_000))
    }
  }
}

function tellDead(runtime: Runtime, sink: string, dead: Verdicts['failed']): void {
  const { log, metrics } = runtime
  for (const { event, failure } of dead) {
    metrics.sink(sink).gaveUp(1)
    const { message } = event
    log.error({ ...aboutMessage(message), sink, error: wordsOf(failure) }, 'an event could not be published')
    const entry = { message, consumer: sink, state: 'dead', error: failure } as const
    tell(runtime, 'dead', entry)
  }
}

/** Statements that failed for good: the boxes are not in one database after all, or may not touch each other's tables. */
const notAllowed = sharedByCopies('sinks-not-allowed', () => new WeakSet<Sink>())

/** A link inside one database: one statement moves the events. Answers undefined if they have to be published. */
async function moveInto(
  runtime: Runtime,
  attached: Attached,
  lease: ShardLease,
): Promise<{ count: number; rest: OutgoingEvent[] } | undefined> {
  const into = (attached.sink as { [RELAY_INTO]?: RelayInto })[RELAY_INTO]
  if (!into || notAllowed.has(attached.sink)) return undefined
  const { target, sameDatabase } = into
  if (target.driver !== runtime.db.driver && !sameDatabase) return undefined
  const consumers = target.consumers()
  if (!consumers) return undefined
  try {
    const given = { ...reading(attached, lease), token: lease.token, consumers, wait: LOCK_WAIT }
    const [row] = await runtime.db.runInto(target.schema, MOVE, given)
    const answer = readJson(row!.answer)
    if (answer.moved > 0) {
      runtime.metrics.sink(attached.name).moved(answer.moved)
      target.arrived?.(answer.moved)
      target.wake()
    }
    await finishShared(runtime, answer.shared)
    return { count: answer.moved, rest: answer.rest.map(toEvent) }
  } catch (error) {
    // The receiving box is handling one of them on arrival: received one by one, the others need not wait for it.
    if (isConflict(error)) return undefined
    // Too much for one statement: read on their own, events are as many as fit.
    if (isOfClass(error, '54')) return undefined
    // Class 42: no such table or column, or no permission. Publishing may still work.
    if (!isOfClass(error, '42')) throw error
    notAllowed.add(attached.sink)
    const why = { sink: attached.name, error: plainWords(error) }
    runtime.log.warn(why, 'events cannot be moved inside the database; they are received')
    return undefined
  }
}

/** By its SQLSTATE, or that of what caused it. */
function isOfClass(error: unknown, of: string): boolean {
  return someCause(error, (cause) => sqlState(cause)?.startsWith(of) === true)
}
