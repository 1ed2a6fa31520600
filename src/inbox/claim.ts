/** Claim: leases a batch of due messages to this worker, under one random token. */
import { validate, type Checked } from '../body.js'
import type { Retrial } from '../hooks.js'
import { toMessage } from '../message.js'
import { CLAIM, EXTEND, EXTEND_ONE, type ClaimedRow, type Due } from '../postgres/sql/claim.js'
import {
  FAIL,
  SETTLE,
  SETTLE_ONE,
  STILL_OPEN,
  type FailureRow,
  type Key,
  type NumberedKey,
} from '../postgres/sql/settle.js'
import type { Runtime } from '../runtime.js'
import type { ConsumerDeclaration } from './consumer.js'
import { detailsOf } from './details.js'
import { leaseOf } from './extend.js'
import { removeAll, type Claim, type Done, type HeldMessage } from './held.js'
import { readLook, type Look } from './low-water.js'
import type { Verdict } from './verdict.js'

/** Released messages go ahead of the backlog that piled up since they were claimed. */
const FIRST_IN_LINE_MS = -3_600_000

/**
 * Claims stop at so many bytes of bodies. As objects they may take thirty times that, for each slot of a consumer; and
 * what is larger than this hardly gains from sharing a claim.
 */
export const CLAIM_BYTES = 1 << 20

export interface ClaimedMessages extends Look {
  readonly claim: Claim
  /** Nothing else was due. */
  readonly isAll: boolean
}

export async function claimMessages(
  runtime: Runtime,
  consumer: ConsumerDeclaration,
  token: string,
  due: Due & { readonly limit: number; readonly low: string | undefined },
): Promise<ClaimedMessages | undefined> {
  const { name, options } = consumer
  const asked = { consumer: name, token, leaseMs: options.leaseMs, bytes: CLAIM_BYTES, ...due }
  const rows = await runtime.db.run(CLAIM, asked)
  if (rows.length === 0) return undefined
  const messages = await decodeRows(runtime, rows)
  // Groups that touch their rows in the same order do not deadlock; messages of one key are likely to share rows.
  if (messages.length > 1) messages.sort(byKey)
  const claim = looseClaim(runtime, consumer, token, { messages })
  return { claim, isAll: isAll(rows, due.limit), ...readLook(rows[0]!.look, rows.length) }
}

/** Whether nothing else was due: the claim ended neither at its limit nor, at three bytes for a character, at its bytes. */
function isAll(rows: readonly ClaimedRow[], limit: number): boolean {
  return rows.length < limit && rows.reduce((length, { body }) => length + body.length, 0) * 3 < CLAIM_BYTES
}

function byKey(a: HeldMessage, b: HeldMessage): number {
  const left = a.message.key ?? ''
  const right = b.message.key ?? ''
  return left < right ? -1 : left > right ? 1 : 0
}

/** The messages of claimed rows, with their bodies, but for suspects: to read a body may be what killed their worker. */
export async function decodeRows(runtime: Runtime, rows: readonly ClaimedRow[]): Promise<HeldMessage[]> {
  const messages: HeldMessage[] = []
  for (const row of rows) {
    if (row.suspect === 'true') {
      const message = toHeld(row, UNREAD)
      message.read = async () => {
        const { message: read, problem, fields } = toHeld(row, await readBody(runtime, row))
        const { attempt } = message.message
        Object.assign(message, { read: undefined, problem, fields, message: { ...read, attempt } })
      }
      messages.push(message)
    } else {
      const body = readBody(runtime, row)
      messages.push(toHeld(row, body instanceof Promise ? await body : body))
    }
  }
  return messages
}

const UNREAD: Checked = { data: undefined, problem: undefined }

/** Handlers get the output of this parse. */
function readBody(runtime: Runtime, { type, body }: ClaimedRow): Checked | Promise<Checked> {
  return validate(runtime.schemaOf(type), JSON.parse(body))
}

function toHeld(row: ClaimedRow, { data, problem, fields }: Checked): HeldMessage {
  const { source, id, n, type, lane } = row
  const attempts = Number(row.attempts)
  const envelope = {
    id: row.origin_id ?? id,
    source: row.origin_source ?? source,
    type,
    key: row.key ?? undefined,
    envelope: row.envelope,
    receivedMs: Number(row.received),
    attempts,
  }
  const suspect = row.suspect === 'true'
  return { source, id, n, type, lane, attempts, suspect, message: toMessage(envelope, data), problem, fields }
}

/**
 * Messages held by this worker under one token. Those of which their source has a copy still are given back to it: what is
 * not settled waits for the source, not for the box.
 */
export function looseClaim(
  { db }: Runtime,
  { name, options }: ConsumerDeclaration,
  token: string,
  { messages: queue, retryBy = 'box' }: { readonly messages: HeldMessage[]; readonly retryBy?: Retrial['retryBy'] },
): Claim {
  /** Their settlement or failure was sent, and may have committed before we hear of it. */
  let leaving: readonly HeldMessage[] = []
  const who = { consumer: name, token }
  const { leaseMs } = options
  const parked = retryBy === 'source' ? 'failed' : undefined
  const keys = (list: readonly HeldMessage[]): Key[] => list.map(({ source, id }) => [source, id])
  const record = async (failures: readonly FailureRow[]): Promise<boolean> =>
    (await db.run(FAIL, { ...who, failures })).length > 0
  return {
    queue,
    journaled: true,
    patience: LEASED_PATIENCE,
    commitWaitMs: Infinity,
    lease: leaseOf<HeldMessage>(token, {
      leaseMs,
      rows: () => [...queue],
      async extendFree(list) {
        const rows = await db.run(EXTEND, { ...who, leaseMs, messages: keys(list) })
        return new Map(rows.map(({ at, extended }) => [list[Number(at)]!, extended === 'true']))
      },
      async extendLocked({ source, id }, waitMs) {
        return (await db.run(EXTEND_ONE, { ...who, leaseMs, source, id, waitMs })).length > 0
      },
      has: (message) => queue.includes(message),
      isLeaving: (message) => leaving.includes(message),
    }),
    atOnce: (pace) => pace.nextSize(),
    enter: (messages) => Promise.resolve(messages),
    settle(done, { xid, guard, tx }) {
      leaving = done.map(({ message }) => message)
      if (done.length !== 1) {
        return { settlement: db.run(SETTLE, { ...who, xid, guard, done: done.map(settlementOf) }, tx) }
      }
      const { source, id, n } = done[0]!.message
      return { settlement: db.run(SETTLE_ONE, { c: name, k: token, x: xid, g: guard, s: source, i: id, n }, tx) }
    },
    settled(done) {
      removeAll(queue, done)
    },
    async isSettled(done) {
      const messages = keys(done.map(({ message }) => message))
      return (await db.run(STILL_OPEN, { consumer: name, messages })).length === 0
    },
    async fail(message, verdict) {
      leaving = [...leaving, message]
      const recorded = await record([failureRow(message, verdict, verdict.parked ?? parked)])
      const at = queue.indexOf(message)
      if (at >= 0) queue.splice(at, 1)
      return recorded ? { ...verdict, retryBy } : undefined
    },
    async release() {
      if (queue.length === 0) return
      await record(queue.map((one) => ({ ...released(one.source, one.id), parked, total: one.attemptsBefore })))
      queue.length = 0
    },
    abandon() {
      queue.length = 0
    },
  }
}

/** After a few collisions in a row a message goes back to the queue. */
export const LEASED_PATIENCE = { tries: 5, ms: Infinity, pauseMs: 2 }

/** A message in the list of a settlement. */
export function settlementOf({ message: { source, id, n } }: Done): NumberedKey {
  return [source, id, n]
}

/** A message that is given back without a verdict. */
export function released(source: string, id: string): FailureRow {
  return { source, id, attempts: 0, delayMs: FIRST_IN_LINE_MS, history: false }
}

/** `parked`: whom it waits for; undefined if it runs again by itself. */
export function failureRow(message: HeldMessage, verdict: Verdict, parked: string | undefined): FailureRow {
  const { attempts, delayMs = 0, at, reason, failure } = verdict
  return {
    source: message.source,
    id: message.id,
    attempts,
    delayMs,
    at,
    parked,
    reason,
    ...detailsOf(message, failure),
  }
}
