/**
 * Lanes: strict order per key. A worker claims whole lanes and reads their messages in a second statement, many per
 * key; it settles lanes and messages together. Nothing behind a failed message of a lane runs before it.
 */
import { randomUUID } from 'node:crypto'
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
import { CLAIM_BYTES, decodeRows, failureRow, LEASED_PATIENCE, settlementOf, type Due } from './claim.js'
import type { ConsumerDeclaration } from './consumer.js'
import { leaseOf, waitText } from './extend.js'
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
  limit: number,
  due: Due,
): Promise<Claim | undefined> {
  const token = randomUUID()
  const who = { c: consumer.name, k: token }
  const claimed = await runtime.db.run(CLAIM_LANES, { ...who, lease: consumer.options.leaseMs, n: limit, ...due })
  if (claimed.length === 0) return undefined
  const keys = claimed.map((row) => row['key'] as string)
  // A hot key is read many at a time; many keys share the batch.
  const depth = Math.max(1, Math.ceil((2 * limit) / keys.length))
  const rows = await runtime.db.run(READ_LANES, { c: consumer.name, lanes: keys, n: depth, bytes: CLAIM_BYTES })
  const suspects = new Set(claimed.filter((row) => row['suspect'] === 'true').map((row) => row['key']))
  const judged = rows.map((row) => (suspects.has(row['lane']) ? { ...row, suspect: 'true' } : row))
  const messages = await decodeRows(runtime, judged)
  const lanes = new Map<string, Lane>()
  const read = new Map<string, Set<HeldMessage>>(keys.map((key) => [key, new Set()]))
  for (const message of messages) read.get(message.lane!)!.add(message)
  const full = rows[0]?.['full'] === 'true'
  for (const [key, own] of read) lanes.set(key, { key, messages: own, more: full || own.size >= depth })
  return laneClaim(runtime, consumer, token, { lanes, queue: messages })
}

function laneClaim(
  { db }: Runtime,
  { name, options }: ConsumerDeclaration,
  token: string,
  { lanes, queue }: { readonly lanes: Map<string, Lane>; readonly queue: HeldMessage[] },
): Claim {
  const who = { c: name, k: token }
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
        const rows = await db.run(EXTEND_LANES, { ...who, lease: leaseMs, lanes: keys })
        return new Map(rows.map((row) => [row['key'] as string, row['extended'] === 'true']))
      },
      async extendLocked(key, waitMs) {
        return (await db.run(EXTEND_LANE, { ...who, lease: leaseMs, key, wait: waitText(waitMs) })).length > 0
      },
      has: (key) => lanes.has(key),
      isLeaving: (key) => leaving.has(key),
    }),
    atOnce: (pace) => pace.limit,
    enter: (messages) => Promise.resolve(messages),
    settle(done, { xid, guard, tx }) {
      const { through, kept } = split(done)
      leaving = new Set(through.map(({ key }) => key))
      const rel = through.map(({ key, more }) => [key, more])
      const lists = { d: done.map(settlementOf), rel, keep: kept.map(({ key }) => key) }
      return { settlement: db.run(SETTLE_LANES, { ...who, x: xid, g: guard, ...lists }, tx) }
    },
    settled(done) {
      const { through } = split(done)
      for (const { message } of done) lanes.get(message.lane!)?.messages.delete(message)
      for (const { key } of through) lanes.delete(key)
      removeAll(queue, done)
    },
    async isSettled(done) {
      const d = done.map(({ message: { source, id } }) => [source, id])
      return (await db.run(STILL_CLAIMED, { ...who, d })).length === 0
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
      const rel = [...lanes.values()].map(({ key, messages, more }) => [key, messages.size > 0 || more ? 0 : null])
      const undo = [...lanes.values()].flatMap(({ messages }) =>
        [...messages]
          .filter(({ attemptsBefore }) => attemptsBefore !== undefined)
          .map(({ source, id, attemptsBefore }) => [source, id, attemptsBefore]),
      )
      await db.run(RELEASE_LANES, { ...who, rel, undo })
      lanes.clear()
      queue.length = 0
    },
    abandon() {
      lanes.clear()
      queue.length = 0
    },
  }
}
