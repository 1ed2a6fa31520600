/** Publish: one call of a sink, and what becomes of each event. */
import { within } from '../backoff.js'
import { rememberBody } from '../brokers/handover.js'
import type { Refusal, Sink } from '../brokers/sink.js'
import { OnceboxError } from '../errors.js'
import { toFailure } from '../failure.js'
import { toMessage, type Failure, type Message } from '../message.js'
import type { EventRow } from '../postgres/sql/shards.js'
import { readable } from '../readable.js'
import type { Retry } from '../retry.js'
import { readAnswers } from './answers.js'

/** An event, on its way to one sink. */
export interface OutgoingEvent {
  /** Its number in the outbox, its id and its key: a sink may change its message. */
  readonly n: string
  readonly id: string
  readonly key: string | undefined
  readonly shard: number
  readonly attempts: number
  readonly message: Message
}

/** What becomes of a batch. Events in no list stay as they are: an earlier one of their key failed. */
export interface Verdicts {
  readonly published: OutgoingEvent[]
  readonly failed: { readonly event: OutgoingEvent; readonly failure: Failure; readonly delayMs: number | null }[]
  /** Not to blame: they are tried again, and nothing is counted. */
  readonly later: { readonly event: OutgoingEvent; readonly failure: Failure; readonly delayMs: number }[]
  /** They stay as they are, unless others show that the destination is up: see suspects.ts. */
  readonly suspects: { readonly event: OutgoingEvent; readonly refusal: Refusal }[]
  /** What the destination has to say of itself, if it said that it is down. */
  problem?: { readonly error: unknown }
  /** Why some were not tried. */
  untried?: { readonly error: unknown }
}

export function noVerdicts(): Verdicts {
  return { published: [], failed: [], later: [], suspects: [] }
}

/** Nothing was published: the destination is down, or the sink answers nonsense. Nobody's attempt is counted. */
export class DestinationDown extends Error {
  override readonly name = 'DestinationDown'
  constructor(override readonly cause: unknown) {
    super('a sink could not publish', { cause })
  }
}

export function toEvent({ n, shard, body, created, ...row }: EventRow): OutgoingEvent {
  const createdMs = Number(created)
  const attempts = Number(row.attempts)
  const key = row.key ?? undefined
  const envelope = { ...row, key, receivedMs: createdMs, attempts }
  const message = { time: new Date(createdMs), ...toMessage(envelope, JSON.parse(body)) }
  rememberBody(message, body)
  return { n, id: row.id, key, shard: Number(shard), attempts, message }
}

export interface PublishOptions {
  readonly retry: Retry
  readonly publishTimeoutMs: number
  /** What goes on around each call of the sink. */
  readonly around: <A>(batch: readonly Message[], call: () => Promise<A>) => Promise<A>
  /** Whether the events are still ours to publish, asked before each call. */
  readonly isOurs: () => Promise<boolean>
}

export async function publish(
  sink: Sink,
  events: readonly OutgoingEvent[],
  { retry, publishTimeoutMs, around, isOurs }: PublishOptions,
): Promise<Verdicts> {
  if (!(await isOurs())) return noVerdicts()
  let answers: (Refusal | undefined)[]
  const batch = events.map(({ message }) => message)
  try {
    // A sink that never answers must not keep its shards for good.
    const answered = await around(batch, async () =>
      inTime(publishTimeoutMs, (signal) => sink.publish(batch, { timeoutMs: publishTimeoutMs, signal })),
    )
    answers = readAnswers(answered, events.length)
  } catch (error) {
    throw new DestinationDown(readable(error))
  }
  const verdicts = noVerdicts()
  const failedKeys = new Set<string>()
  events.forEach((event, at) => {
    const answer = answers[at]
    const { key } = event
    if (answer === undefined) return void verdicts.published.push(event)
    // A sink sends nothing after a failure within a key, so this one was refused only because of the first.
    if (key !== undefined && failedKeys.has(key)) return
    if (key !== undefined) failedKeys.add(key)
    refuse(verdicts, event, answer, retry)
  })
  return verdicts
}

/** A sink that heeds its signal ends at once, with the answers that it has; any other is waited for no longer. */
async function inTime<T>(ms: number, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const over = new AbortController()
  const calling = call(over.signal)
  const late = (): Error => {
    over.abort(tooLate(ms))
    return over.signal.reason as Error
  }
  try {
    return await within(ms, calling, late)
  } catch (error) {
    if (!over.signal.aborted) throw error
    return await within(END_MS, calling, () => error as Error)
  }
}

function refuse(verdicts: Verdicts, event: OutgoingEvent, refusal: Refusal, retry: Retry): void {
  const { error, down, afterMs } = refusal
  if (down) verdicts.problem ??= { error }
  if (afterMs !== undefined) {
    if (afterMs === 0) return void (verdicts.untried ??= { error })
    const delayMs = Math.min(afterMs, MOST_AFTER_MS)
    verdicts.later.push({ event, failure: toFailure(error), delayMs })
  } else if (down) verdicts.suspects.push({ event, refusal })
  else verdicts.failed.push(blame(event, refusal, retry))
}

/** An attempt of the event is counted. */
export function blame(event: OutgoingEvent, refusal: Refusal, retry: Retry): Verdicts['failed'][number] {
  const { error } = refusal
  const delayMs = refusal.retry === false ? null : retry(error, event.attempts + 1)
  return { event, failure: toFailure(error), delayMs }
}

/** How long a sink has to end when its time is over. */
const END_MS = 1_000
/** A destination may ask for a hundred years. */
const MOST_AFTER_MS = 3_600_000

function tooLate(ms: number): OnceboxError {
  const advice = 'it counts as down; raise publishTimeoutMs if it needs longer'
  return new OnceboxError('PUBLISH_TIMEOUT', `no answer in ${ms} ms, ${advice}`)
}
