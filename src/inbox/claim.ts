/** Claim: leases a batch of due messages to this worker, under one random token. */
import { randomUUID } from 'node:crypto'
import type { Retrial } from '../hooks.js'
import type { Row } from '../postgres/database.js'
import { CLAIM, EXTEND, EXTEND_ONE } from '../postgres/sql/claim.js'
import { FAIL, SETTLE, SETTLE_ONE, STILL_CLAIMED } from '../postgres/sql/settle.js'
import type { Runtime } from '../runtime.js'
import { validate, type Validated } from '../validate.js'
import type { ConsumerDeclaration } from './consumer.js'
import { leaseOf, waitText } from './extend.js'
import { removeAll, type Claim, type Done, type HeldMessage } from './held.js'
import { toMessage } from './prepare.js'
import type { Verdict } from './verdict.js'

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
  return looseClaim(runtime, consumer, token, { messages })
}

function byKey(a: HeldMessage, b: HeldMessage): number {
  const left = a.message.key ?? ''
  const right = b.message.key ?? ''
  return left < right ? -1 : left > right ? 1 : 0
}

/** The messages of claimed rows, with their bodies, but for suspects: to read a body may be what killed their worker. */
export async function decodeRows(runtime: Runtime, rows: readonly Row[]): Promise<HeldMessage[]> {
  const messages: HeldMessage[] = []
  for (const row of rows) {
    const message = toHeld(row)
    if (message.suspect) message.read = () => readBody(runtime, row, message)
    else await readBody(runtime, row, message)
    messages.push(message)
  }
  return messages
}

/** Handlers get the output of this parse. */
async function readBody(runtime: Runtime, row: Row, message: HeldMessage): Promise<void> {
  message.read = undefined
  const data = JSON.parse(row['body'] as string) as unknown
  const parsed = validate(runtime.schemaOf(message.type), data)
  const checked: Validated = parsed instanceof Promise ? await parsed : parsed
  message.problem = 'problem' in checked ? checked.problem : undefined
  message.message = { ...message.message, data: 'value' in checked ? checked.value : data }
}

function toHeld(row: Row): HeldMessage {
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
    message: toMessage(envelope, undefined),
    problem: undefined,
  }
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
  const held = new Set(queue)
  /** Their settlement or failure was sent, and may have committed before we hear of it. */
  let leaving = new Set<HeldMessage>()
  const who = { c: name, k: token }
  const { leaseMs } = options
  const parked = retryBy === 'source' ? 'failed' : undefined
  const keys = (list: readonly HeldMessage[]): [string, string][] => list.map(({ source, id }) => [source, id])
  const record = async (f: readonly object[]): Promise<boolean> => (await db.run(FAIL, { ...who, f })).length > 0
  return {
    queue,
    journaled: true,
    patience: LEASED_PATIENCE,
    commitWaitMs: Infinity,
    lease: leaseOf<HeldMessage>(token, {
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
    }),
    atOnce: (pace) => pace.limit,
    enter: (messages) => Promise.resolve(messages),
    settle(done, { xid, guard, tx }) {
      leaving = new Set(done.map(({ message }) => message))
      const open = { ...who, x: xid, g: guard }
      if (done.length !== 1) return { settlement: db.run(SETTLE, { ...open, d: done.map(settlementOf) }, tx) }
      const { source, id, n } = done[0]!.message
      return { settlement: db.run(SETTLE_ONE, { ...open, s: source, i: id, n }, tx) }
    },
    settled(done) {
      for (const { message } of done) held.delete(message)
      removeAll(queue, done)
    },
    async isSettled(done) {
      const d = keys(done.map(({ message }) => message))
      return (await db.run(STILL_CLAIMED, { ...who, d })).length === 0
    },
    async fail(message, verdict) {
      leaving.add(message)
      const recorded = await record([failureRow(message, verdict, verdict.parked ?? parked)])
      held.delete(message)
      const at = queue.indexOf(message)
      if (at >= 0) queue.splice(at, 1)
      return recorded ? { ...verdict, retryBy } : undefined
    },
    async release() {
      if (held.size === 0) return
      const verdict = { attempts: 0, delayMs: FIRST_IN_LINE_MS }
      await record([...held].map((one) => ({ ...failureRow(one, verdict, parked), total: one.attemptsBefore })))
      held.clear()
      queue.length = 0
    },
    abandon() {
      held.clear()
      queue.length = 0
    },
  }
}

/** After a few collisions in a row a message goes back to the queue. */
export const LEASED_PATIENCE = { tries: 5, ms: Infinity }

/** A message in the list of a settlement. */
export function settlementOf({ message: { source, id, n } }: Done): [source: string, id: string, n: string | null] {
  return [source, id, n]
}

/** `parked`: whom it waits for; undefined if it runs again by itself. */
export function failureRow(message: HeldMessage, verdict: Verdict, parked: string | undefined): object {
  return {
    s: message.source,
    i: message.id,
    n: verdict.attempts,
    ms: verdict.delayMs ?? 0,
    at: verdict.at,
    p: parked,
    r: verdict.reason,
    e: verdict.failure && JSON.stringify(verdict.failure),
    h: verdict.failure !== undefined,
  }
}
