/**
 * Lanes: strict order per key. A worker claims whole lanes and reads their messages in a second statement, many per
 * key; it settles lanes and messages together. Nothing behind a failed message of a lane runs before it.
 */
import type { Due } from '../postgres/sql/claim.js'
import {
  CLAIM_LANES,
  EXTEND_LANE,
  EXTEND_LANES,
  FAIL_LANE,
  READ_LANES,
  RELEASE_LANES,
  SETTLE_LANES,
} from '../postgres/sql/lanes.js'
import { STILL_OPEN } from '../postgres/sql/settle.js'
import type { Runtime } from '../runtime.js'
import { CLAIM_BYTES, decodeRows, failureRow, LEASED_PATIENCE, settlementOf } from './claim.js'
import type { ConsumerDeclaration } from './consumer.js'
import { leaseOf } from './extend.js'
import { removeAll, type Claim, type Done, type HeldMessage } from './held.js'
import { readLook, type Look } from './low-water.js'

interface Lane {
  readonly key: string
  /** Messages of the lane that were read and are not settled. */
  readonly messages: Set<HeldMessage>
  /** True if the lane may hold more than was read. */
  more: boolean
}

/** Lanes are read no deeper than so many messages each, while there are others. */
const DEEPEST = 16

/**
 * How deep the lanes of a consumer are, as its last claims have found them. To claim a lane and to give it back are two
 * updates, which few deep lanes share among more messages than many shallow ones; and others find the rest of them free.
 */
export class LaneDepth {
  readonly #most: number
  #expected = 2

  /** Where handlers of different keys run side by side, many lanes are worth more than deep ones. */
  constructor({ together }: { readonly together: boolean }) {
    this.#most = together ? 2 : DEEPEST
  }

  /** How many lanes to claim for so many messages. */
  lanesFor(messages: number): number {
    return Math.ceil(messages / this.#expected)
  }

  /** So many messages were read of so many lanes, of which some have more. */
  found(lanes: number, messages: number, withMore: number): void {
    const each = withMore * 2 > lanes ? this.#expected * 2 : messages / lanes
    this.#expected = Math.max(2, Math.min(each, this.#most))
  }
}

export interface ClaimedLanes extends Look {
  readonly claim: Claim
}

export async function claimLanes(
  runtime: Runtime,
  consumer: ConsumerDeclaration,
  token: string,
  { limit, depth: depths, ...due }: Due & { limit: number; depth: LaneDepth; low: string | undefined },
): Promise<ClaimedLanes | undefined> {
  const { name, options } = consumer
  // Two groups: what is claimed with a lane costs little more.
  const most = 2 * limit
  const asked = { consumer: name, token, leaseMs: options.leaseMs, limit: depths.lanesFor(most), ...due }
  const claimed = await runtime.db.run(CLAIM_LANES, asked)
  if (claimed.length === 0) return undefined
  const lanes = new Map<string, Lane>(claimed.map(({ key }) => [key, { key, messages: new Set(), more: false }]))
  // A hot key is read many at a time; many keys share the batch.
  const depth = Math.ceil(most / claimed.length)
  const rows = await runtime.db.run(READ_LANES, { consumer: name, lanes: [...lanes.keys()], depth, bytes: CLAIM_BYTES })
  const suspects = new Set(claimed.filter(({ suspect }) => suspect === 'true').map(({ key }) => key))
  const judged = rows.map((row) => (suspects.has(row.lane) ? { ...row, suspect: 'true' as const } : row))
  const messages = await decodeRows(runtime, judged)
  for (const message of messages) lanes.get(message.lane!)!.messages.add(message)
  // The last row of a lane has the last word.
  for (const { lane, more } of rows) lanes.get(lane)!.more = more === 'true'
  if (rows[0]?.full === 'true') for (const lane of lanes.values()) lane.more = true
  depths.found(lanes.size, messages.length, [...lanes.values()].filter(({ more }) => more).length)
  const claim = laneClaim(runtime, consumer, token, { lanes, queue: messages })
  return { claim, ...readLook(claimed[0]!.look, claimed.length) }
}

function laneClaim(
  { db }: Runtime,
  { name, options }: ConsumerDeclaration,
  token: string,
  { lanes, queue }: { readonly lanes: Map<string, Lane>; readonly queue: HeldMessage[] },
): Claim {
  const who = { consumer: name, token }
  const { leaseMs, onDead } = options
  /** Given back by a statement that was sent, and may have committed before we hear of it. */
  let leaving = new Set<string>()
  /** Lanes that are through once these messages are settled; the others are kept. */
  const split = (done: readonly Done[]): { through: Lane[]; kept: Lane[] } => {
    const settling = new Map<string, number>()
    for (const { message } of done) settling.set(message.lane!, (settling.get(message.lane!) ?? 0) + 1)
    const through: Lane[] = []
    const kept: Lane[] = []
    for (const lane of lanes.values()) {
      const count = settling.get(lane.key) ?? 0
      if (count === lane.messages.size) through.push(lane)
      else if (count > 0) kept.push(lane)
    }
    return { through, kept }
  }
  return {
    queue,
    journaled: true,
    patience: LEASED_PATIENCE,
    commitWaitMs: Infinity,
    lease: leaseOf<string>(token, {
      leaseMs,
      rows: () => [...lanes.keys()],
      async extendFree(keys) {
        const rows = await db.run(EXTEND_LANES, { ...who, leaseMs, lanes: keys })
        return new Map(rows.map(({ key, extended }) => [key, extended === 'true']))
      },
      async extendLocked(key, waitMs) {
        return (await db.run(EXTEND_LANE, { ...who, leaseMs, key, waitMs })).length > 0
      },
      has: (key) => lanes.has(key),
      isLeaving: (key) => leaving.has(key),
    }),
    atOnce: (pace) => pace.nextSize(),
    enter: (messages) => Promise.resolve(messages),
    settle(done, { xid, guard, tx }) {
      const { through, kept } = split(done)
      leaving = new Set(through.map(({ key }) => key))
      const lists = {
        done: done.map(settlementOf),
        release: through.map(({ key, more }) => [key, more] as const),
        keep: kept.map(({ key }) => key),
      }
      return { settlement: db.run(SETTLE_LANES, { ...who, xid, guard, ...lists }, tx) }
    },
    settled(done) {
      const { through } = split(done)
      for (const { message } of done) lanes.get(message.lane!)?.messages.delete(message)
      for (const { key } of through) lanes.delete(key)
      removeAll(queue, done)
    },
    async isSettled(done) {
      const messages = done.map(({ message: { source, id } }) => [source, id] as const)
      return (await db.run(STILL_OPEN, { consumer: name, messages })).length === 0
    },
    async fail(message, verdict) {
      const key = message.lane!
      leaving.add(key)
      const block = verdict.parked !== undefined && onDead === 'block'
      const rows = await db.run(FAIL_LANE, { ...who, key, block, ...failureRow(message, verdict, verdict.parked) })
      lanes.delete(key)
      queue.splice(0, queue.length, ...queue.filter(({ lane }) => lane !== key))
      return rows.length > 0 ? { ...verdict, retryBy: 'box' } : undefined
    },
    async release() {
      if (lanes.size === 0) return
      // A lane that was empty when it was read sleeps until something arrives.
      const release = [...lanes.values()].map(
        ({ key, messages, more }) => [key, messages.size > 0 || more ? 0 : null] as const,
      )
      const undo = [...lanes.values()].flatMap(({ messages }) =>
        [...messages].flatMap(({ source, id, attemptsBefore }) =>
          attemptsBefore === undefined ? [] : [[source, id, attemptsBefore] as const],
        ),
      )
      await db.run(RELEASE_LANES, { ...who, release, undo })
      lanes.clear()
      queue.length = 0
    },
    abandon() {
      lanes.clear()
      queue.length = 0
    },
  }
}
