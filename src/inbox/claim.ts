/** Claim: leases a batch of due messages to this worker, under one random token. */
import { randomUUID } from 'node:crypto'
import type { Failure, Message, QuarantineReason } from '../message.js'
import type { Row } from '../postgres/database.js'
import { CLAIM, EXTEND, EXTEND_ONE } from '../postgres/sql/claim.js'
import { FAIL, SETTLE, SETTLE_ONE, STILL_CLAIMED } from '../postgres/sql/settle.js'
import type { Runtime } from '../runtime.js'
import { validate, type Validated } from '../validate.js'
import type { ConsumerDeclaration } from './consumer.js'
import { extendAllRows, extendRows, waitText, type LeasedRows } from './extend.js'
import { toMessage } from './prepare.js'

export interface ClaimedMessage {
  /** The key in the journal; `message.id` is the producer's. */
  readonly source: string
  readonly id: string
  /** The number of its row in the journal; null if it was stored before rows had one. */
  readonly n: string | null
  readonly type: string
  readonly lane: string | undefined
  readonly attempts: number
  /** Its last worker died: it runs alone, its attempt counted first. */
  readonly suspect: boolean
  /** Its attempt was counted before it ran: what to put back if it is released without a verdict. */
  readonly attemptsBefore?: number
  readonly message: Message
  /** Its body is not read yet: of a suspect, to read it may be what killed the worker. */
  readonly unread?: Row | undefined
  /** Why it cannot be given to a handler: its schema refuses it. */
  readonly problem: string | undefined
}

/** What a failed message's fate is. */
export interface Verdict {
  /** Attempts to add to the count. */
  readonly attempts: number
  /** Runs again after so long, or at this time; neither if it waits for a person. */
  readonly delayMs?: number
  readonly at?: Date
  /** The handler asked for this time itself. */
  readonly asked?: boolean
  readonly parked?: 'dead' | 'quarantined' | 'failed'
  readonly reason?: QuarantineReason
  readonly failure?: Failure
}

/** The transaction in which handlers run, as its settlement needs to know it. */
export interface OpenGroup {
  readonly xid: string
  /** The place of the row that refuses a COMMIT before the settlement. */
  readonly guard: string
}

/** A batch of messages held by this worker: loose ones (here), or whole lanes (lanes.ts). */
export interface Claim {
  readonly token: string
  /** What is still to run, in order. Settling and failing remove from it. */
  readonly queue: ClaimedMessage[]
  /** Issues the settlement of these messages, in their transaction. */
  settle(done: readonly ClaimedMessage[], open: OpenGroup, tx: unknown): Promise<unknown>
  /** Tells the claim that the settlement has committed; `late` if the answer to COMMIT was none, or a warning. */
  settled(done: readonly ClaimedMessage[], late?: { readonly warned: boolean }): void
  /** After a COMMIT without an answer: did it take effect? */
  isSettled(done: readonly ClaimedMessage[]): Promise<boolean>
  /** Records a failure. Answers false if the claim was lost, so nothing was recorded. */
  fail(message: ClaimedMessage, verdict: Verdict): Promise<boolean>
  /**
   * Extends the lease, as far as its rows are not locked for too long: nobody else gets at those either. Answers false
   * if any of it was lost.
   */
  extend(): Promise<boolean>
  /** Extends all of the lease, however long its rows are locked. Answers false if any of it was lost. */
  extendAll(): Promise<boolean>
  /** While frozen, nothing touches its rows: the lease is not extended. */
  freeze(frozen: boolean): void
  /** Gives back everything that is not settled, due at once. */
  release(): Promise<void>
  /** The same message, known better. */
  replace(message: ClaimedMessage, by: ClaimedMessage): void
  /** Forgets everything without a word to the database, as a crash would. */
  abandon(): void
}

/** Messages held one by one; those that came on arrival may be given back to their source, which has them still. */
export interface LooseClaim extends Claim {
  release(parked?: 'failed'): Promise<void>
}

/** Released messages go ahead of the backlog that piled up since they were claimed. */
const FIRST_IN_LINE_MS = -3_600_000

/**
 * Claims stop at so many bytes of bodies. As objects they may take thirty times that, for each slot of a consumer; and
 * what is larger than this hardly gains from sharing a claim.
 */
export const CLAIM_BYTES = 1 << 20

/** What a claim takes of what is due. */
export interface Due {
  readonly until: string | undefined
  /** Nothing that somebody holds, even if the lease is over. */
  readonly calm: boolean
}

export async function claimMessages(
  runtime: Runtime,
  consumer: ConsumerDeclaration,
  limit: number,
  due: Due & { readonly low: string | undefined },
): Promise<Claim | undefined> {
  const token = randomUUID()
  const { leaseMs } = consumer.options
  const rows = await runtime.db.run(CLAIM, {
    ...{ c: consumer.name, k: token, lease: leaseMs, n: limit, bytes: CLAIM_BYTES },
    ...due,
  })
  if (rows.length === 0) return undefined
  const messages = await decodeRows(runtime, rows)
  // Groups that touch their rows in the same order do not deadlock; messages of one key are likely to share rows.
  if (messages.length > 1) messages.sort(byKey)
  return looseClaim(runtime, consumer, token, messages)
}

function byKey(a: ClaimedMessage, b: ClaimedMessage): number {
  const left = a.message.key ?? ''
  const right = b.message.key ?? ''
  return left < right ? -1 : left > right ? 1 : 0
}

/** Parses and validates claimed rows, but for suspects, which are counted before anything is done with them. */
export async function decodeRows(runtime: Runtime, rows: readonly Row[]): Promise<ClaimedMessage[]> {
  const messages: ClaimedMessage[] = []
  for (const row of rows) {
    if (row['suspect'] === 'true') messages.push({ ...toClaimed(row, undefined, undefined), unread: row })
    else messages.push(await decodeRow(runtime, row))
  }
  return messages
}

/** Reads a body that was left until the attempt was counted, or the message given up. */
export async function readBody(runtime: Runtime, message: ClaimedMessage): Promise<ClaimedMessage> {
  if (message.unread === undefined) return message
  const { message: read, problem } = await decodeRow(runtime, message.unread)
  return { ...message, message: { ...read, attempt: message.message.attempt }, problem, unread: undefined }
}

/** Handlers get the output of this parse. */
async function decodeRow(runtime: Runtime, row: Row): Promise<ClaimedMessage> {
  const data = JSON.parse(row['body'] as string) as unknown
  const parsed = validate(runtime.schemaOf(row['type'] as string), data)
  const checked: Validated = parsed instanceof Promise ? await parsed : parsed
  return 'problem' in checked ? toClaimed(row, data, checked.problem) : toClaimed(row, checked.value, undefined)
}

function toClaimed(row: Row, data: unknown, problem: string | undefined): ClaimedMessage {
  const type = row['type'] as string
  const attempts = Number(row['attempts'])
  const envelope = {
    id: (row['origin_id'] ?? row['id']) as string,
    source: (row['origin_source'] ?? row['source']) as string,
    type,
    key: (row['key'] ?? undefined) as string | undefined,
    envelope: row['envelope'] as string | null,
    receivedMs: Number(row['received']),
    attempts,
  }
  return {
    source: row['source'] as string,
    id: row['id'] as string,
    n: row['n'] as string | null,
    type,
    lane: (row['lane'] ?? undefined) as string | undefined,
    attempts,
    suspect: row['suspect'] === 'true',
    message: toMessage(envelope, data),
    problem,
  }
}

/** Messages held by this worker under one token. */
export function looseClaim(
  { db }: Runtime,
  consumer: ConsumerDeclaration,
  token: string,
  messages: ClaimedMessage[],
): LooseClaim {
  const queue = messages
  const held = new Set(messages)
  /** Their settlement or failure was sent, and may have committed before we hear of it. */
  let leaving = new Set<ClaimedMessage>()
  let frozen = false
  const who = { c: consumer.name, k: token }
  const { leaseMs } = consumer.options
  const leased: LeasedRows<ClaimedMessage> = {
    leaseMs,
    rows: () => [...held],
    async extendFree(list) {
      const rows = await db.run(EXTEND, { ...who, lease: leaseMs, d: keys(list) })
      return new Map(rows.map((row) => [list[Number(row['at'])]!, row['extended'] === 'true']))
    },
    async extendLocked({ source, id }, waitMs) {
      const wait = waitText(waitMs)
      return (await db.run(EXTEND_ONE, { ...who, lease: leaseMs, s: source, i: id, wait })).length > 0
    },
    has: (message) => held.has(message),
    isLeaving: (message) => leaving.has(message),
  }
  const keys = (list: Iterable<ClaimedMessage>): [string, string][] => [...list].map(({ source, id }) => [source, id])
  const drop = (message: ClaimedMessage): void => {
    held.delete(message)
    const at = queue.indexOf(message)
    if (at >= 0) queue.splice(at, 1)
  }
  return {
    token,
    queue,
    settle(done, { xid, guard }, tx) {
      leaving = new Set(done)
      const open = { c: consumer.name, k: token, x: xid, g: guard }
      if (done.length !== 1) return db.run(SETTLE, { ...open, d: done.map(settlementOf) }, tx)
      const { source, id, n } = done[0]!
      return db.run(SETTLE_ONE, { ...open, s: source, i: id, n }, tx)
    },
    settled: (done) => removeAll(queue, held, done),
    isSettled: async (done) => (await db.run(STILL_CLAIMED, { ...who, d: keys(done) })).length === 0,
    async fail(message, verdict) {
      leaving.add(message)
      const rows = await db.run(FAIL, { ...who, f: [failureRow(message, verdict)] })
      drop(message)
      return rows.length > 0
    },
    extend: async () => frozen || (await extendRows(leased)) !== 'lost',
    extendAll: () => extendAllRows(leased),
    freeze(on) {
      frozen = on
    },
    replace(message, by) {
      held.delete(message)
      held.add(by)
      queue[queue.indexOf(message)] = by
    },
    async release(parked) {
      if (held.size === 0) return
      const f = [...held].map((message) => ({
        ...failureRow(message, { attempts: 0, delayMs: FIRST_IN_LINE_MS, ...(parked && { parked }) }),
        total: message.attemptsBefore,
      }))
      await db.run(FAIL, { ...who, f })
      held.clear()
      queue.length = 0
    },
    abandon() {
      held.clear()
      queue.length = 0
    },
  }
}

/** A message in the list of a settlement. */
export function settlementOf({ source, id, n }: ClaimedMessage): [source: string, id: string, n: string | null] {
  return [source, id, n]
}

/** Settled messages are nearly always the head of the queue. */
export function removeAll(queue: ClaimedMessage[], held: Set<ClaimedMessage>, done: readonly ClaimedMessage[]): void {
  for (const message of done) held.delete(message)
  if (done.every((message, at) => queue[at] === message)) queue.splice(0, done.length)
  else {
    const gone = new Set(done)
    queue.splice(0, queue.length, ...queue.filter((message) => !gone.has(message)))
  }
}

export function failureRow(message: ClaimedMessage, verdict: Verdict): Record<string, unknown> {
  return {
    s: message.source,
    i: message.id,
    n: verdict.attempts,
    ms: verdict.delayMs ?? 0,
    at: verdict.at,
    p: verdict.parked,
    r: verdict.reason,
    e: verdict.failure && JSON.stringify(verdict.failure),
    h: verdict.failure !== undefined,
  }
}
