/**
 * The partitions that a member of the group was assigned: delivered in order, part by part (`take.ts`), committed up to the
 * first message that is not done with. Each partition has one delivery in flight, and `concurrency` partitions at a time
 * have one.
 *
 * A client fetches nothing before it is done with what it has fetched: kafkajs from that broker, Confluent's at all. So a
 * batch that takes longer than a moment goes on without it: the partition is paused, and the client goes on with the others.
 *
 *     a batch ── as many partitions as may are at work ──> paused; resumed when one of them is done
 *             ── done in a moment ──> back to the client
 *             ── not yet ──> paused, back to the client; resumed when it is done, or at the time of its retry
 */
import { sleep } from '../../backoff.js'
import type { Deliver } from '../source.js'
import { nameOf, type Assigned, type KafkaBatch } from './client.js'
import type { ConsumerEvents } from './consumer.js'
import { hasGroupMovedOn } from './errors.js'
import type { Losses } from './losses.js'
import type { ResolvedSource } from './options.js'
import { Progress } from './progress.js'
import { take, type Commit } from './take.js'
import { Pauses, Turns } from './waiting.js'

export interface Partitions extends Pick<ConsumerEvents, 'eachBatch' | 'joined' | 'left'> {
  /** Begins nothing more. */
  close(): void
  /** Resolves when what is in flight is delivered, and committed. */
  finish(): Promise<void>
}

/** How long the client may be kept by a partition: it has others to see to. */
const PATIENCE_MS = 100
/** kafkajs sends a heartbeat when it is due, and it is asked this often. */
const HEARTBEAT_MS = 500

export function createPartitions(options: ResolvedSource, deliver: Deliver, losses: Losses): Partitions {
  let closed = false
  /** Counts assignments. What was begun under an earlier one is abandoned: its partition may belong to somebody else. */
  let generation = 0
  /** The group waits for its members to join again. */
  let rejoin: unknown
  const progress = new Progress()
  const turns = new Turns(options.concurrency)
  const pauses = new Pauses()
  const taker = { options, deliver, losses, progress, pauses }

  const noteRejoin = (error: unknown): void => {
    if (hasGroupMovedOn(error)) rejoin ??= error
  }

  const work = async (payload: KafkaBatch, commit: Commit): Promise<void> => {
    const begun = generation
    const isOurs = (): boolean => generation === begun && !payload.isStale()
    const beat = (): void =>
      void payload.heartbeat().catch((error: unknown) => {
        if (isOurs()) noteRejoin(error)
      })
    const timer = setInterval(beat, HEARTBEAT_MS)
    try {
      for (const messages of inParts(payload.batch.messages, options.batch)) {
        if (closed || rejoin !== undefined || !payload.isRunning() || !isOurs()) break
        if (!(await take(taker, { payload, messages, commit, isOurs }))) break
      }
    } finally {
      clearInterval(timer)
    }
  }

  const beginAnew = (): number => {
    rejoin = undefined
    progress.reset()
    return ++generation
  }

  /** It goes on by itself. */
  const leave = (payload: KafkaBatch, working: Promise<void>, begun: number): void => {
    const resume = payload.pause()
    working
      .catch((error: unknown) => {
        // What else a commit fails of, the next one will, too. After another assignment the member has joined again already.
        if (generation === begun) noteRejoin(error)
      })
      .finally(() => pauses.resumeUnlessPaused(payload, resume))
  }

  return {
    async eachBatch(payload, commit) {
      if (rejoin !== undefined) throw rejoin
      const begun = generation
      const working = turns.begin(payload, () => work(payload, commit))
      if (!working) return
      let done = false
      const finished = working.finally(() => (done = true))
      await sleep(PATIENCE_MS, finished)
      if (!done) leave(payload, finished, begun)
      // What the client needs to hear to join again, now and not after the rest of what it has fetched.
      if (rejoin !== undefined) throw rejoin
    },
    left() {
      beginAnew()
      turns.resumeAll()
    },
    async joined(assigned, commit) {
      const own = beginAnew()
      const looked = losses.look(assigned, async (positions) => {
        if (generation === own) await commit(positions)
      })
      turns.resumeAll()
      pauses.assigned(namesOf(assigned))
      const positions = await looked
      if (generation !== own) return
      for (const position of positions) progress.beginsAt(position)
    },
    close() {
      closed = true
      turns.close()
      pauses.close()
    },
    finish: () => turns.finish(),
  }
}

function namesOf(assigned: readonly Assigned[]): Set<string> {
  return new Set(
    assigned.flatMap(({ topic, partitions }) => partitions.map((partition) => nameOf({ topic, partition }))),
  )
}

function* inParts<T>(list: readonly T[], size: number): Generator<readonly T[]> {
  for (let at = 0; at < list.length; at += size) yield list.slice(at, at + size)
}
