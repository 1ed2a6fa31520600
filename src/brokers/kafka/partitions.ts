/**
 * What becomes of the messages of a partition: delivered in order, committed up to the first that is not done with.
 *
 *     deliver a part of the batch → commit what leads it without a gap → go on, or pause the partition and come back
 *
 * Each partition has one delivery in flight, and `concurrency` partitions at a time have one. The offset is committed
 * first and the position moved after, so that what could not be committed is read again, which the inbox recognises.
 *
 * A client fetches nothing before it is done with what it has fetched: kafkajs from that broker, Confluent's at all. So a
 * batch that takes longer than a moment goes on without it: the partition is paused, and the client goes on with the others.
 *
 *     a batch ── as many partitions as may are at work ──> paused; resumed when one of them is done
 *             ── done in a moment ──> back to the client
 *             ── not yet ──> paused, back to the client; resumed when it is done, or at the time of its retry
 */
import { backoffMs, sleep } from '../../backoff.js'
import type { Outcome } from '../../message.js'
import { redeliverAfterMs } from '../redelivery.js'
import type { Deliver } from '../source.js'
import { nameOf, type KafkaBatch, type KafkaMessage } from './client.js'
import type { ConsumerEvents } from './consumer.js'
import { hasGroupMovedOn } from './errors.js'
import type { Losses } from './losses.js'
import { toMessage } from './message.js'
import type { ResolvedSource } from './options.js'

export interface Partitions extends Pick<ConsumerEvents, 'eachBatch' | 'joined'> {
  /** Begins nothing more. */
  close(): void
  /** Resolves when what is in flight is delivered, and committed. */
  finish(): Promise<void>
}

type Commit = (next: string) => Promise<void>

/** How long the client may be kept by a partition: it has others to see to. */
const PATIENCE_MS = 100
/** kafkajs sends a heartbeat when it is due, and it is asked this often. */
const HEARTBEAT_MS = 500
/** How long a partition waits, at least, before it is tried again. */
const LEAST_PAUSE_MS = 100
const MOST_PAUSE_MS = 5_000

/** `losses` are told where a partition is, and of messages that the client did not read, and may have lost. */
export function createPartitions(options: ResolvedSource, deliver: Deliver, losses: Losses): Partitions {
  let closed = false
  /** Counts assignments. What was begun under an earlier one is abandoned: its partition may belong to somebody else. */
  let generation = 0
  /** The group waits for its members to join again. */
  let rejoin: unknown
  /** Partitions of which something was delivered since they were assigned, and where they go on. */
  const known = new Map<string, string>()
  /** Where the group was in them when they were assigned: what is deleted before the first of it is read is missed there. */
  const places = new Map<string, string>()
  /** Deliveries in a row that got nowhere, by partition. */
  const failures = new Map<string, number>()
  /** Partitions at work. */
  const atWork = new Map<string, Promise<void>>()
  /** How to resume those that wait for their turn. */
  const turns = new Map<string, () => void>()
  /** Those that wait for the time of a retry. */
  const pauses = new Map<string, NodeJS.Timeout>()

  /** Answers whether to go on with what follows. */
  const takeSome = async (
    payload: KafkaBatch,
    messages: readonly KafkaMessage[],
    commit: Commit,
    isOurs: () => boolean,
  ): Promise<boolean> => {
    const { batch } = payload
    const { topic, partition } = batch
    const name = nameOf(payload.batch)
    // The group's last member to read here may have died of the first ones: the broker does not say.
    const suspect = !known.has(name)
    const expected = known.get(name) ?? places.get(name)
    const first = messages[0]!.offset
    if (expected !== undefined && first !== expected) losses.skipped({ topic, partition, offset: expected }, first)
    known.set(name, first)
    const incoming = messages.map((message) => toMessage({ topic, partition, message }, options, suspect))
    const outcomes = await deliver(incoming).catch((): readonly Outcome[] => [])
    if (!isOurs()) return false

    const done = leading(outcomes)
    if (done > 0) {
      failures.delete(name)
      const last = messages[done - 1]!
      // Behind the last message there may be marks of transactions, which nobody is shown.
      const passed = last === batch.messages.at(-1) ? batch.lastOffset() : last.offset
      const next = String(BigInt(passed) + 1n)
      await commit(next)
      losses.reached({ topic, partition, offset: next })
      if (!isOurs()) return false
      payload.resolveOffset(last.offset)
      known.set(name, next)
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
    const name = nameOf(payload.batch)
    const resume = payload.pause()
    clearTimeout(pauses.get(name))
    const timer = setTimeout(() => {
      pauses.delete(name)
      resumeIfOurs(resume)
    }, ms)
    pauses.set(name, timer)
  }

  const work = async (payload: KafkaBatch, commit: Commit): Promise<void> => {
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
  }

  /** Those that wait for their turn, as many as may have it; or all, for what was theirs may be somebody else's. */
  const resumeNext = (most = options.concurrency - atWork.size): void => {
    for (const [name, resume] of [...turns].slice(0, Math.max(0, most))) {
      turns.delete(name)
      resumeIfOurs(resume)
    }
  }

  /** Begins what `eachBatch` is given, if it may. */
  const begin = (payload: KafkaBatch, commit: Commit): Promise<void> | undefined => {
    const name = nameOf(payload.batch)
    // Under an earlier assignment it may be at work still.
    if (closed || atWork.has(name) || atWork.size >= options.concurrency) {
      turns.set(name, payload.pause())
      return undefined
    }
    const working = work(payload, commit).finally(() => {
      atWork.delete(name)
      if (!closed) resumeNext()
    })
    atWork.set(name, working)
    return working
  }

  /** It goes on by itself. */
  const leave = (payload: KafkaBatch, working: Promise<void>): void => {
    const resume = payload.pause()
    working
      .catch((error: unknown) => {
        // What else a commit fails of, the next one will, too.
        if (hasGroupMovedOn(error)) rejoin ??= error
      })
      .finally(() => {
        if (!closed && !pauses.has(nameOf(payload.batch))) resumeIfOurs(resume)
      })
  }

  return {
    async eachBatch(payload, commit) {
      if (rejoin !== undefined) throw rejoin
      const working = begin(payload, commit)
      if (!working) return
      let done = false
      const finished = working.finally(() => (done = true))
      await sleep(PATIENCE_MS, finished)
      if (!done) leave(payload, finished)
      // What the client needs to hear to join again, now and not after the rest of what it has fetched.
      if (rejoin !== undefined) throw rejoin
    },
    joined(assigned, commit) {
      const own = ++generation
      rejoin = undefined
      known.clear()
      places.clear()
      const looked = losses.look(assigned, async (positions) => {
        if (generation === own) await commit(positions)
      })
      resumeNext(Infinity)
      return looked.then((positions) => {
        if (generation !== own) return
        for (const position of positions) places.set(nameOf(position), position.offset)
      })
    },
    close() {
      closed = true
      for (const timer of pauses.values()) clearTimeout(timer)
      pauses.clear()
    },
    async finish() {
      await Promise.allSettled(atWork.values())
    },
  }
}

function resumeIfOurs(resume: () => void): void {
  try {
    resume()
  } catch {
    // It is no longer ours.
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
