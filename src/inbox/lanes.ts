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
import { STILL_CLAIMED } from '../postgres/sql/settle.js'
import type { Runtime } from '../runtime.js'
import { CLAIM_BYTES, decodeRows, failureRow, LEASED_PATIENCE, settlementOf } from './claim.js'
import type { ConsumerDeclaration } from './consumer.js'
import { leaseOf } from './extend.js'
import { removeAll, type Claim, type Done, type HeldMessage } from './held.js'

interface Lane {
  readonly key: string
  /** Messages of the lane that were read and are not settled. */
  readonly messages: Set<HeldMessage>
  /** True if the lane may hold more than was read. */
  readonly more: boolean
}

export async function claimLanes(
  runtime: Runtime,
  consumer: ConsumerDeclaration,
  token: string,
  { limit, ...due }: Due & { readonly limit: number },
): Promise<Claim | undefined> {
  const { name, options } = consumer
  const asked = { consumer: name, token, leaseMs: options.leaseMs, limit, ...due }
  const claimed = await runtime.db.run(CLAIM_LANES, asked)
  if (claimed.length === 0) return undefined
  const keys = claimed.map(({ key }) => key)
  // A hot key is read many at a time; many keys share the batch.
  const depth = Math.max(1, Math.ceil((2 * limit) / keys.length))
  const rows = await runtime.db.run(READ_LANES, { consumer: name, lanes: keys, depth, bytes: CLAIM_BYTES })
  const suspects = new Set(claimed.filter(({ suspect }) => suspect === 'true').map(({ key }) => key))
  const judged = rows.map((row) => (suspects.has(row.lane) ? { ...row, suspect: 'true' as const } : row))
  const messages = await decodeRows(runtime, judged)
  const lanes = new Map<string, Lane>()
  const read = new Map<string, Set<HeldMessage>>(keys.map((key) => [key, new Set()]))
  for (const message of messages) read.get(message.lane!)!.add(message)
  const full = rows[0]?.full === 'true'
  for (const [key, own] of read) lanes.set(key, { key, messages: own, more: full || own.size >= depth })
  return laneClaim(runtime, consumer, token, { lanes, queue: messages })
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
    const settling = new Set(done.map(({ message }) => message))
    const touched = new Set(done.map(({ message }) => message.lane!))
    const through: Lane[] = []
    const kept: Lane[] = []
    for (const lane of lanes.values()) {
      const left = [...lane.messages].some((message) => !settling.has(message))
      if (!left) through.push(lane)
      else if (touched.has(lane.key)) kept.push(lane)
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
    atOnce: (pace) => pace.limit,
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
      return (await db.run(STILL_CLAIMED, { ...who, messages })).length === 0
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
