/** Claim: leases a batch of due messages to this worker, under one random token. */
import { randomUUID } from 'node:crypto'
import type { Failure, Message, QuarantineReason } from '../message.js'
import type { Row } from '../postgres/database.js'
import { CLAIM, EXTEND } from '../postgres/sql/claim.js'
import { FAIL, SETTLE, SETTLE_ONE, STILL_CLAIMED } from '../postgres/sql/settle.js'
import type { Runtime } from '../runtime.js'
import { sleep } from '../backoff.js'
import { validate, type Validated } from '../validate.js'
import type { ConsumerDeclaration } from './consumer.js'
import { toMessage } from './prepare.js'

export interface ClaimedMessage {
  /** The key in the journal; `message.id` is the producer's. */
  readonly source: string
  readonly id: string
  readonly type: string
  readonly lane: string | undefined
  readonly attempts: number
  /** Its last worker died: it runs alone, its attempt counted first. */
  readonly suspect: boolean
  /** Its attempt was counted before it ran: what to put back if it is released without a verdict. */
  readonly attemptsBefore?: number
  readonly message: Message
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
  /** Extends the lease. Answers false if any of it was lost. */
  extend(): Promise<boolean>
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

export async function claimMessages(
  runtime: Runtime,
  consumer: ConsumerDeclaration,
  limit: number,
  low: string | undefined,
): Promise<Claim | undefined> {
  const token = randomUUID()
  const { leaseMs } = consumer.options
  const rows = await runtime.db.run(CLAIM, { c: consumer.name, k: token, lease: leaseMs, n: limit, low })
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

/** Parses and validates claimed rows. Handlers get the output of this parse. */
export async function decodeRows(runtime: Runtime, rows: readonly Row[]): Promise<ClaimedMessage[]> {
  const messages: ClaimedMessage[] = []
  for (const row of rows) {
    const type = row['type'] as string
    const data = JSON.parse(row['body'] as string) as unknown
    const parsed = validate(runtime.schemaOf(type), data)
    const checked: Validated = parsed instanceof Promise ? await parsed : parsed
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
    messages.push({
      source: row['source'] as string,
      id: row['id'] as string,
      type,
      lane: (row['lane'] ?? undefined) as string | undefined,
      attempts,
      suspect: row['suspect'] === 'true',
      message: toMessage(envelope, 'value' in checked ? checked.value : data),
      problem: 'problem' in checked ? checked.problem : undefined,
    })
  }
  return messages
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
  let frozen = false
  const who = { c: consumer.name, k: token }
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
      const open = { c: consumer.name, k: token, x: xid, g: guard }
      if (done.length !== 1) return db.run(SETTLE, { ...open, d: keys(done) }, tx)
      const { source, id } = done[0]!
      return db.run(SETTLE_ONE, { ...open, s: source, i: id }, tx)
    },
    settled: (done) => removeAll(queue, held, done),
    isSettled: async (done) => (await db.run(STILL_CLAIMED, { ...who, d: keys(done) })).length === 0,
    async fail(message, verdict) {
      const rows = await db.run(FAIL, { ...who, f: [failureRow(message, verdict)] })
      drop(message)
      return rows.length > 0
    },
    extend: () =>
      extendTwice(async () => {
        if (frozen) return true
        const rows = await db.run(EXTEND, { ...who, lease: consumer.options.leaseMs, d: keys(held) })
        return Number(rows[0]!['held']) >= held.size
      }),
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

/**
 * A settlement may have committed a moment before its holder hears of it; then fewer messages carry the token than the
 * holder believes. So a loss has to show twice, with time for the news to arrive.
 */
export async function extendTwice(extend: () => Promise<boolean>): Promise<boolean> {
  if (await extend()) return true
  await sleep(50)
  return extend()
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
