/**
 * What becomes of the messages of a partition: delivered in order, committed up to the first that is not done with.
 *
 *     deliver a part of the batch → commit what leads it without a gap → go on, or pause the partition and come back
 *
 * Each partition has one delivery in flight. The offset is committed first and the position moved after, so that what
 * could not be committed is read again, which the inbox recognises.
 */
import { backoffMs } from '../../backoff.js'
import type { Outcome } from '../../message.js'
import { redeliverAfterMs } from '../redelivery.js'
import type { Deliver } from '../source.js'
import type { ConsumerEvents, KafkaBatch, KafkaMessage } from './client.js'
import { hasGroupMovedOn } from './errors.js'
import { toMessage } from './message.js'
import type { ResolvedSource } from './options.js'

export interface Partitions extends Pick<ConsumerEvents, 'eachBatch' | 'joined'> {
  /** Begins nothing more. */
  close(): void
}

type Commit = (next: string) => Promise<void>

/** kafkajs sends a heartbeat when it is due, and it is asked this often. */
const HEARTBEAT_MS = 500
/** How long a partition waits, at least, before it is tried again. */
const LEAST_PAUSE_MS = 100
const MOST_PAUSE_MS = 5_000

export function createPartitions(options: ResolvedSource, deliver: Deliver): Partitions {
  let closed = false
  /** Counts assignments. What was begun under an earlier one is abandoned: its partition may belong to somebody else. */
  let generation = 0
  /** The group waits for its members to join again. */
  let rejoin: unknown
  /** Partitions of which something was delivered since they were assigned. */
  const known = new Set<string>()
  /** Deliveries in a row that got nowhere, by partition. */
  const failures = new Map<string, number>()
  const pauses = new Set<NodeJS.Timeout>()

  /** Answers whether to go on with what follows. */
  const takeSome = async (
    payload: KafkaBatch,
    messages: readonly KafkaMessage[],
    commit: Commit,
    isOurs: () => boolean,
  ): Promise<boolean> => {
    const { batch } = payload
    const { topic, partition } = batch
    const name = `${topic}:${partition}`
    // The group's last member to read here may have died of the first ones: the broker does not say.
    const suspect = !known.has(name)
    known.add(name)
    const incoming = messages.map((message) => toMessage({ topic, partition, message }, options, suspect))
    const outcomes = await deliver(incoming).catch((): readonly Outcome[] => [])
    if (!isOurs()) return false

    const done = leading(outcomes)
    if (done > 0) {
      failures.delete(name)
      const last = messages[done - 1]!
      // Behind the last message there may be marks of transactions, which nobody is shown.
      const passed = last === batch.messages.at(-1) ? batch.lastOffset() : last.offset
      await commit(String(BigInt(passed) + 1n))
      if (!isOurs()) return false
      payload.resolveOffset(last.offset)
    }
    if (done === messages.length) return true
    const failed = failures.get(name) ?? 0
    failures.set(name, failed + 1)
    const gap = outcomes[done]
    const waitMs = gap ? redeliverAfterMs(gap) : 0
    pause(payload, gap?.retryAt ? waitMs : Math.max(waitMs, backoffMs(failed, LEAST_PAUSE_MS, MOST_PAUSE_MS)))
    return false
  }

  const pause = (payload: KafkaBatch, ms: number): void => {
    if (closed) return
    const resume = payload.pause()
    const timer = setTimeout(() => {
      pauses.delete(timer)
      try {
        resume()
      } catch {
        // It is no longer ours.
      }
    }, ms)
    pauses.add(timer)
  }

  return {
    async eachBatch(payload, commit) {
      if (rejoin !== undefined) throw rejoin
      const begun = generation
      const isOurs = (): boolean => generation === begun && !payload.isStale()
      const beat = (): void =>
        void payload.heartbeat().catch((error: unknown) => {
          if (isOurs() && hasGroupMovedOn(error)) rejoin ??= error
        })
      const timer = setInterval(beat, HEARTBEAT_MS)
      try {
        for (const messages of inParts(payload.batch.messages, options.batch)) {
          if (closed || rejoin !== undefined || !payload.isRunning() || !isOurs()) break
          if (!(await takeSome(payload, messages, commit, isOurs))) break
        }
      } finally {
        clearInterval(timer)
      }
      // What the client needs to hear to join again, now and not after the rest of what it has fetched.
      if (rejoin !== undefined) throw rejoin
    },
    joined() {
      generation++
      rejoin = undefined
      known.clear()
    },
    close() {
      closed = true
      for (const timer of pauses) clearTimeout(timer)
      pauses.clear()
    },
  }
}

/** How many of them may be forgotten, up to the first that may not. */
function leading(outcomes: readonly Outcome[]): number {
  const gap = outcomes.findIndex(({ ack }) => !ack)
  return gap < 0 ? outcomes.length : gap
}

function* inParts<T>(list: readonly T[], size: number): Generator<readonly T[]> {
  for (let at = 0; at < list.length; at += size) yield list.slice(at, at + size)
}
