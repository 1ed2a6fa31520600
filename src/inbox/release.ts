/**
 * Release: messages leave the quarantine through the front door, for the consumers that they were meant for.
 *
 * They are locked, received and removed in one transaction: never are they in both places, or in neither, and whoever
 * comes second finds them gone. By the time that he looks, the copy that came first may be forgotten.
 */
import { backoffMs, sleep } from '../backoff.js'
import type { Incoming, Outcome } from '../message.js'
import { isConflict, sqlState } from '../postgres/errors.js'
import {
  LOCK_QUARANTINED, READ_QUARANTINED, REMOVE_QUARANTINED, type LockedRow, type QuarantinedRow,
} from '../postgres/sql/bulk.js' // prettier-ignore
import { readJson, type Statement } from '../postgres/statement.js'
import { tell, type Runtime } from '../runtime.js'
import { writeAudit, type Deed } from './audit.js'
import type { ConsumerDeclaration } from './consumer.js'
import { releasedFrom } from './origin.js'
import { prepare, type Prepared, type Refused } from './prepare.js'
import { NO_CONSUMER } from './quarantine.js'
import { receive } from './receive.js'

export interface ReleaseOptions {
  readonly consumers: readonly ConsumerDeclaration[]
  /** A person has judged their age. A start has not: what may have been forgotten, or has waited as long, is too old. */
  readonly by: 'person' | 'start'
  /** Lanes of which something stayed behind: what comes after it stays too, or it would come before it. */
  readonly heldBack?: Set<string>
}

/** A row of the quarantine, as it was found. */
export interface Held {
  readonly n: string
  readonly state: 'quarantined' | 'discarded'
}

export interface Released {
  /** Messages that were stored for a consumer. */
  readonly stored: number
  /** Messages that left the quarantine, or moved on to another reason. */
  readonly removed: number
}

/** Releases rows in the order of their numbers, in as many calls as it takes. */
export type Release = (held: readonly Held[]) => Promise<Released>

interface Candidate extends Held {
  readonly consumer: string
  readonly message: Prepared | Refused
}

/** Bodies may be large, those that were too large among them. */
const READ_AT_ONCE = { person: 50, start: 500 }

/** Data takes many times the room of its text: a quarantine full of large bodies must not keep a process from starting. */
const BYTES_AT_ONCE = 4 * 1024 * 1024

/** How long to wait for somebody who holds one of the rows. */
const LOCK_WAIT = { batch: '1s', alone: '100ms' }

/** So often a deadlock or a serialization failure is tried again before each goes by itself. */
const TRIES = 4

/** Of those that a version before this one refused, these have the fingerprint of their source for a hash. */
const PREPARED: readonly string[] = ['conflict', 'too-old', 'unrouted']

/** As it is it has not been through `map`: nobody knows its id, its type or its source. */
const UNMAPPED =
  'unmapped messages are not released: their source has read them without map; hand in what map makes of them with box.receive, then discard them'

export function createRelease(runtime: Runtime, options: ReleaseOptions): Release {
  const { heldBack = new Set<string>() } = options
  return async (held) => {
    const size = READ_AT_ONCE[options.by]
    let stored = 0
    let removed = 0
    for (let at = 0; at < held.length;) {
      const some = held.slice(at, at + size)
      const rows = await readRows(runtime, some)
      const last = rows.at(-1)
      // What did not fit any more comes next; what is in no answer is gone.
      at += last?.more === 'true' ? some.findIndex(({ n }) => n === last.n) + 1 : some.length
      const candidates = await prepareRows(runtime, rows, some, options)
      const released = await releaseSome(runtime, candidates, options, heldBack)
      stored += released.stored
      removed += released.removed
    }
    return { stored, removed }
  }
}

function readRows(runtime: Runtime, held: readonly Held[]): Promise<readonly QuarantinedRow[]> {
  return runtime.db.run(READ_QUARANTINED, { rows: held.map(({ n }) => n), bytes: BYTES_AT_ONCE })
}

/** What they are is judged as for any other message, before the transaction: schemas and identities may take their time. */
async function prepareRows(
  runtime: Runtime,
  rows: readonly QuarantinedRow[],
  held: readonly Held[],
  options: ReleaseOptions,
): Promise<Candidate[]> {
  const states = new Map(held.map(({ n, state }) => [n, state]))
  const candidates: Candidate[] = []
  for (const row of rows) {
    const { n, consumer, via, reason } = row
    if (reason === 'unmapped') {
      runtime.warnOnce('release unmapped', { reason }, UNMAPPED)
      continue
    }
    const consumers = options.consumers.filter(({ name }) => consumer === NO_CONSUMER || name === consumer)
    const { lane, ...incoming } = toIncoming(row)
    const origin = via === null ? undefined : releasedFrom(via)
    const prepared = await prepare(runtime, incoming, { consumers, anySize: true, lane, origin })
    const refused = 'reason' in prepared
    // What a person releases in vain stays as it is; by itself, a message moves on to the reason that holds now.
    if (refused && options.by === 'person') continue
    candidates.push({
      n,
      state: states.get(n)!,
      consumer,
      message: refused ? prepared : asItWas(prepared, row, options),
    })
  }
  return candidates
}

/** With the fingerprint that it had, and its age: by itself nothing leaves that has waited for too long. */
function asItWas(prepared: Prepared, row: QuarantinedRow, { by }: ReleaseOptions): Prepared {
  const { reason, since } = row
  const fingerprint = row.fingerprint ?? (PREPARED.includes(reason) ? row.hash : null)
  const hash = fingerprint === null ? prepared.hash : fingerprint || null
  return { ...prepared, hash, ...(by === 'start' && { heldSince: since }) }
}

/** All of them at once; if somebody is in the way, one after the other. */
async function releaseSome(
  runtime: Runtime,
  candidates: readonly Candidate[],
  options: ReleaseOptions,
  heldBack: Set<string>,
): Promise<Released> {
  const free = candidates.filter((candidate) => !isHeldBack(candidate, heldBack))
  for (let tries = 1; free.length > 0; tries++) {
    try {
      return await move(runtime, free, options)
    } catch (error) {
      if (!isConflict(error)) throw error
      // To wait for a lock once more would take as long again.
      if (sqlState(error) === '55P03' || tries === TRIES) break
      await sleep(backoffMs(tries, 2, 50))
    }
  }
  if (free.length <= 1) {
    if (free[0]) holdBack(free[0], heldBack)
    return { stored: 0, removed: 0 }
  }
  let stored = 0
  let removed = 0
  for (const one of free) {
    const released = await releaseSome(runtime, [one], options, heldBack)
    stored += released.stored
    removed += released.removed
  }
  return { stored, removed }
}

/** A key is held back for whom its message was meant: for one consumer, or for all. */
function holdBack({ consumer, message: { key, lane = key } }: Candidate, heldBack: Set<string>): void {
  if (lane === undefined) return
  heldBack.add(JSON.stringify([consumer, lane]))
  heldBack.add(JSON.stringify([null, lane]))
}

function isHeldBack({ consumer, message: { key, lane = key } }: Candidate, heldBack: ReadonlySet<string>): boolean {
  if (lane === undefined) return false
  // What is meant for all waits behind what is meant for any of them, and the other way round.
  const behind = consumer === NO_CONSUMER ? [null] : [consumer, NO_CONSUMER]
  return behind.some((whose) => heldBack.has(JSON.stringify([whose, lane])))
}

async function move(runtime: Runtime, candidates: readonly Candidate[], options: ReleaseOptions): Promise<Released> {
  const byNumber = new Map(candidates.map((candidate) => [candidate.n, candidate]))
  const alone = candidates.length === 1
  const late: (() => void)[] = []
  const work = async (tx: unknown): Promise<Released> => {
    const rows = candidates.map(({ n, state }) => [n, state] as const)
    const wait = alone ? LOCK_WAIT.alone : LOCK_WAIT.batch
    const locked = await runtime.db.run(LOCK_QUARANTINED, { rows, wait }, tx)
    const inside = within(runtime, tx, late)
    const gone: string[] = []
    let stored = 0
    for (const { only, some } of runsOf(locked, byNumber)) {
      const messages = some.map(({ message }) => message)
      const force = options.by === 'person'
      const how = { consumers: options.consumers, only, unrouted: 'skip', force, atomic: true, alone } as const
      const outcomes = await receive(inside, messages, how)
      some.forEach(({ n, consumer }, at) => {
        if (isThrough(outcomes[at]!, consumer !== NO_CONSUMER)) gone.push(n)
        if (outcomes[at]!.consumers.some(({ status }) => status === 'stored')) stored++
      })
    }
    if (gone.length > 0) await runtime.db.run(REMOVE_QUARANTINED, gone, tx)
    // What a person does is written down by the admin.
    if (gone.length > 0 && options.by === 'start') await writeAudit(runtime, deedOf(gone, byNumber, options), tx)
    return { stored, removed: gone.length }
  }
  const released = await runtime.db.transaction(work, 'read committed')
  for (const say of late) say()
  return released
}

/** That they left by themselves, for people who wonder why a handler ran. */
function deedOf(
  gone: readonly string[],
  byNumber: ReadonlyMap<string, Candidate>,
  { consumers }: ReleaseOptions,
): Deed {
  const types = [...new Set(gone.map((n) => byNumber.get(n)!.message.type))].sort()
  const names = consumers.map(({ name }) => name)
  return { action: 'release', detail: { by: 'start', reason: 'unrouted', types, consumers: names, count: gone.length } }
}

interface Run {
  /** For these consumers; undefined for all. */
  readonly only: readonly string[] | undefined
  readonly some: Candidate[]
}

/** Neighbours that are for the same consumers: to sort them by consumer would mix up the order of a key. */
function runsOf(locked: readonly LockedRow[], byNumber: ReadonlyMap<string, Candidate>): Run[] {
  const runs: Run[] = []
  let last: string | undefined
  for (const { n, meant } of locked) {
    const candidate = byNumber.get(n)!
    const all = meant === null ? undefined : readJson(meant)
    const only = candidate.consumer === NO_CONSUMER ? all : [candidate.consumer]
    const label = JSON.stringify(only) ?? 'all'
    if (label !== last) runs.push({ only, some: [] })
    runs.at(-1)!.some.push(candidate)
    last = label
  }
  return runs
}

/** Every statement in this transaction; what is to be said of it is said after the commit. */
function within(runtime: Runtime, tx: unknown, late: (() => void)[]): Runtime {
  const { db, log } = runtime
  return {
    ...runtime,
    db: {
      ...db,
      run: <In, Out>(statement: Statement<In, Out>, param: In) => db.run(statement, param, tx),
    },
    hooks: { quarantined: (entry) => void late.push(() => tell(runtime, 'quarantined', entry)) },
    log: {
      debug: (about, text) => log.debug(about, text),
      info: (about, text) => log.info(about, text),
      warn: (about, text) => void late.push(() => log.warn(about, text)),
      error: (about, text) => log.error(about, text),
    },
  }
}

/**
 * Is the message safe elsewhere? For one consumer, if it is stored for it, or was with the same body. For all, if any
 * wants it, for a consumer that refuses it has put it in its own quarantine, or if it is kept for another reason now.
 */
function isThrough({ status, consumers }: Outcome, one: boolean): boolean {
  if (consumers.length === 0) return status === 'quarantined'
  return !one || consumers.every((outcome) => outcome.status !== 'quarantined')
}

/** A quarantined row as it once came in. */
function toIncoming({ id, source, type, key, body, bytes, envelope }: QuarantinedRow): Incoming & { lane?: string } {
  return {
    ...((envelope ? JSON.parse(envelope) : {}) as Partial<Incoming> & { lane?: string }),
    id: id || undefined,
    source,
    type,
    ...(key !== null && { key }),
    data: undefined,
    body: body ?? Buffer.from(bytes ?? '', 'base64'),
  }
}
