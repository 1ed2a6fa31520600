/**
 * Some messages of a partition, from the client to the box:
 *
 *     read → deliver → commit what leads them without a gap → go on, or pause the partition and come back
 *
 * The offset is committed first and the position moved after, so that what could not be committed is read again, which the
 * inbox recognises.
 */
import { backoffMs } from '../../backoff.js'
import type { Incoming, Outcome } from '../../message.js'
import { redeliverAfterMs } from '../redelivery.js'
import type { Deliver } from '../source.js'
import type { KafkaBatch, KafkaMessage } from './client.js'
import type { Losses } from './losses.js'
import { toMessage } from './message.js'
import type { ResolvedSource } from './options.js'
import type { Progress } from './progress.js'
import type { Pauses } from './waiting.js'

export type Commit = (next: string) => Promise<void>

/** Messages of a batch that are delivered together. */
export interface Part {
  readonly payload: KafkaBatch
  readonly messages: readonly KafkaMessage[]
  readonly commit: Commit
  /** False once the partition may belong to somebody else: then nothing more is done with it. */
  readonly isOurs: () => boolean
}

/** What all parts have in common. */
export interface Taker {
  readonly options: ResolvedSource
  readonly deliver: Deliver
  /** Told where a partition is, and of messages that the client did not read, and may have lost. */
  readonly losses: Losses
  readonly progress: Progress
  readonly pauses: Pauses
}

/** How long a partition waits, at least, before it is tried again. */
const LEAST_PAUSE_MS = 100
const MOST_PAUSE_MS = 5_000

/** Answers whether to go on with what follows. */
export async function take(taker: Taker, part: Part): Promise<boolean> {
  const outcomes = await taker.deliver(read(taker, part)).catch((): readonly Outcome[] => [])
  if (!part.isOurs()) return false
  const done = leading(outcomes)
  if (done > 0 && !(await pass(taker, part, done))) return false
  if (done === part.messages.length) return true
  comeBack(taker, part, outcomes[done])
  return false
}

function read({ options, losses, progress }: Taker, { payload, messages }: Part): Incoming[] {
  const { topic, partition } = payload.batch
  const first = { topic, partition, offset: messages[0]!.offset }
  // The group's last member to read here may have died of the first ones: the broker does not say.
  const suspect = progress.isUntouched(first)
  const expected = progress.expected(first)
  if (expected !== undefined && first.offset !== expected) losses.skipped({ ...first, offset: expected }, first.offset)
  progress.goesOnAt(first)
  return messages.map((message) => toMessage({ topic, partition, message }, options, suspect))
}

/** How many of them may be forgotten, up to the first that may not. */
function leading(outcomes: readonly Outcome[]): number {
  const gap = outcomes.findIndex(({ ack }) => !ack)
  return gap < 0 ? outcomes.length : gap
}

/** Commits what is done with, and goes on behind it. Answers whether the partition is still ours. */
async function pass({ losses, progress }: Taker, part: Part, done: number): Promise<boolean> {
  const { payload, messages, commit, isOurs } = part
  const { batch } = payload
  const { topic, partition } = batch
  progress.worked(batch)
  const last = messages[done - 1]!
  // Behind the last message there may be marks of transactions, which nobody is shown.
  const passed = last === batch.messages.at(-1) ? batch.lastOffset() : last.offset
  const next = { topic, partition, offset: String(BigInt(passed) + 1n) }
  await commit(next.offset)
  losses.reached(next)
  if (!isOurs()) return false
  payload.resolveOffset(last.offset)
  progress.goesOnAt(next)
  return true
}

/** To the first message that is not done with: when its consumer asked for it, or after a while. */
function comeBack({ progress, pauses }: Taker, { payload }: Part, gap: Outcome | undefined): void {
  const backoff = backoffMs(progress.failed(payload.batch), LEAST_PAUSE_MS, MOST_PAUSE_MS)
  const waitMs = gap ? redeliverAfterMs(gap) : 0
  pauses.pause(payload, gap?.retryAt ? waitMs : Math.max(waitMs, backoff))
}
