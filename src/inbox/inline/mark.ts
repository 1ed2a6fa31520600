/** Marks: the dedup rows of messages that run on arrival, made and settled in the transaction of their handlers. */
import { hashOf } from '../../body.js'
import { isConflict } from '../../postgres/errors.js'
import { OnceboxError } from '../../errors.js'
import {
  DROP_MARKS,
  FAIL_INLINE,
  LOCK_TIMEOUT,
  MARK,
  SETTLE_INLINE,
  TAKE_OVER,
  type ArrivalRow,
  type Horizon,
  type KnownRow,
} from '../../postgres/sql/inline.js'
import { readJson } from '../../postgres/statement.js'
import type { Runtime } from '../../runtime.js'
import type { Arrival, Arrivals } from '../arrival.js'
import { carried } from '../../carried.js'
import { detailsOf } from '../details.js'
import { setAttempts, type Done, type Held } from '../held.js'
import { OthersMet, type OthersQuestion } from '../others.js'
import { busy, failed, handled } from '../outcome.js'
import type { Prepared } from '../prepare.js'
import type { Worker } from '../run.js'
import type { Verdict } from '../verdict.js'
import { classify, horizonOf, judgeKnown } from '../known.js'

/** A sender waits: it is told `busy` after a while, or nothing, in time to deliver again. */
export const ARRIVAL_PATIENCE = {
  patience: { tries: Infinity, ms: 500, pauseMs: 5 },
  commitWaitMs: 10_000,
} as const

/** What is marked and does not run has to be marked again: it is run, though the group takes longer than others. */
const MARKED_STRETCH = 4

/** Marks, and those of the messages that could not be marked: they are known already, or held elsewhere. */
export interface Marks extends Held<Arrival> {
  /** It is not ours: it leaves the queue, to be judged. */
  leaveToOthers(message: Arrival): void
  takeOthers(): Arrival[]
}

export function marksOf(worker: Worker, arrivals: Arrivals, others?: OthersQuestion): Marks {
  const { runtime, consumer, calm } = worker
  const { db } = runtime
  const { queue } = arrivals
  /** Those that are in the transaction that is open, or were in the last. */
  let entered: Arrival[] = []
  let left: Arrival[] = []
  const leaveToOthers = (message: Arrival): void => {
    arrivals.leave(message)
    left.push(message)
  }
  return {
    ...ARRIVAL_PATIENCE,
    queue,
    journaled: true,
    // For a copy in flight, which holds its mark.
    lockTimeout: '5ms',
    stretch: MARKED_STRETCH,
    atOnce: (pace) =>
      Math.min(
        pace.share(queue.map(({ type }) => type)),
        carried(queue, ({ prepared }) => prepared.body.length),
      ),
    async enter(messages, { tx, lockTimeout }) {
      const marking = { ...horizonOf(consumer), calm: calm(), restore: lockTimeout === undefined, others }
      const marks = await mark(runtime, marking, messages, tx)
      entered = []
      for (const [at, message] of messages.entries()) {
        const own = marks[at]
        if (own === undefined) leaveToOthers(message)
        else {
          message.n = own.n
          message.known = own.known
          setAttempts(message, own.attempts)
          entered.push(message)
        }
      }
      return entered
    },
    async settle(done, { xid, guard, tx }) {
      if (done.length < entered.length) await drop(worker, entered, done, tx)
      let numbers = ''
      for (const { message } of done) if (message.n !== null) numbers += numbers === '' ? message.n : ` ${message.n}`
      return { settlement: db.run(SETTLE_INLINE, { xid, guard, handled: numbers }, tx) }
    },
    settled(done, late) {
      for (const { message, result } of done) {
        // What a failover may still take away is not acknowledged: the sender is told what holds when it delivers again.
        arrivals.answer(message, { ...handled(consumer.name, result), ...(late?.warned && { ack: false }) })
      }
    },
    async isSettled(done) {
      const pairs = done.map(({ message: { prepared } }) => ({ consumer: consumer.name, message: prepared }))
      return (await classify(runtime, pairs)).every((known) => known?.state === 'handled' && known.same)
    },
    async fail(message, verdict) {
      const recorded = { ...verdict, retryBy: consumer.options.retryBy }
      // Nobody failed: there is nothing to keep.
      if (!verdict.failure && !verdict.asked) recorded.retryBy = 'source'
      else if (!(await record(worker, message, verdict))) {
        const [answer] = await judgeKnown(runtime, [message.prepared], { horizon: horizonOf(consumer) })
        return void arrivals.answer(message, answer ?? busy(consumer.name))
      }
      arrivals.answer(message, failed(consumer.name, recorded))
      return recorded
    },
    leaveToOthers,
    takeOthers() {
      const taken = left
      left = []
      return taken
    },
  }
}

/** Takes back the marks of those that did not run. */
async function drop(
  { runtime, consumer }: Worker,
  entered: readonly Arrival[],
  done: readonly Done<Arrival>[],
  tx: unknown,
): Promise<void> {
  const ran = new Set(done.map(({ message }) => message))
  const idle = entered.filter((message) => !ran.has(message))
  // A known message that was marked and did not run keeps its row: rolling back is simpler than restoring it.
  if (idle.some(({ known }) => known)) throw new OnceboxError('GROUP_ABANDONED', 'run alone')
  const keys = idle.map(({ source, id }) => [source, id] as const)
  await runtime.db.run(DROP_MARKS, { consumer: consumer.name, drop: keys }, tx)
}

/** A message that is ours to run, with the attempts before this one. */
export interface Mark {
  /** The number of its row in the journal. */
  readonly n: string | null
  readonly attempts: number
  /** It was stored already: dropping its mark would lose it. */
  readonly known: boolean
}

/** A message with its key in the journal. */
export interface Keyed {
  readonly prepared: Prepared
  readonly source: string
  readonly id: string
}

export interface Marking extends Horizon {
  /** Put the lock timeout back that OPEN has found. */
  readonly restore: boolean
  /** Take nothing over that carries a token. */
  readonly calm?: boolean
  /** The caller does not know the type. */
  readonly untyped?: boolean
  /** What the mark asks besides, unless it was asked already. */
  readonly others?: OthersQuestion | undefined
}

/**
 * Marks what is ours to run. Answers by message: undefined if it is known already, or held elsewhere. Throws `OthersMet` if
 * there are other takers.
 */
export async function mark(
  { db }: Runtime,
  marking: Marking,
  messages: readonly Keyed[],
  tx: unknown,
): Promise<readonly (Mark | undefined)[]> {
  const { calm, untyped, others, ...horizon } = marking
  const asked = others?.answered ? undefined : others?.takers
  const [row] = await db.run(MARK, { ...horizon, others: asked, messages: messages.map(markRow) }, tx)
  const { all, some } = row!
  if (row!.others === 'true') throw new OthersMet('there are other takers')
  if (others) others.answered = true
  if (all !== null) return all.split(' ').map((n) => ({ n, attempts: 0, known: false }))
  const marks = new Map<string, Mark>()
  for (const [source, id, n] of readJson(some!)) marks.set(keyOf({ source, id }), { n, attempts: 0, known: false })
  const rest = messages.filter((message) => !marks.has(keyOf(message)))
  const { consumer, restore } = marking
  const taking = { consumer, restore, calm, untyped, messages: rest.map(knownRow) }
  for (const { source, id, n, attempts } of await db.run(TAKE_OVER, taking, tx)) {
    // One row says nothing of a message: it stands for the lock timeout.
    if (source === null || id === null) continue
    marks.set(keyOf({ source, id }), { n, attempts: Number(attempts), known: true })
  }
  return messages.map((message) => {
    const own = marks.get(keyOf(message))
    // A second message of the same key is a copy of the first.
    marks.delete(keyOf(message))
    return own
  })
}

/** Neither part may contain NUL. */
export function keyOf({ source, id }: Pick<Keyed, 'source' | 'id'>): string {
  return `${source}\0${id}`
}

/** With its fingerprint, for statements that compare it. */
export function arrivalRow(message: Keyed): ArrivalRow {
  return journalRow(message, hashOf(message.prepared))
}

function journalRow({ prepared, source, id }: Keyed, hash: ArrivalRow['h']): ArrivalRow {
  const renamed = id !== prepared.id || source !== prepared.source
  return {
    s: source,
    i: id,
    t: prepared.type,
    k: prepared.key,
    b: prepared.body,
    h: hash,
    e: prepared.envelope,
    at: prepared.time,
    os: renamed ? prepared.source : undefined,
    oi: renamed ? prepared.id : undefined,
    w: prepared.reworded,
  }
}

/** What is marked is compared by its text, if a copy comes: it has no fingerprint, unless its source has chosen one. */
export function markRow(message: Keyed): ArrivalRow {
  const { hash } = message.prepared
  return journalRow(message, hash === null ? '' : hash)
}

/** Without what only the journal of a new message needs. */
function knownRow(message: Keyed): KnownRow {
  const { s, i, t, b, h, os, oi, w } = arrivalRow(message)
  return { s, i, t, b, h, os, oi, w }
}

/** Records a failure: its transaction is gone, and its mark with it. False: a copy was handled meanwhile, or is held. */
async function record({ runtime, consumer }: Worker, message: Arrival, verdict: Verdict): Promise<boolean> {
  const { db } = runtime
  const { retryBy } = consumer.options
  const row = {
    consumer: consumer.name,
    message: arrivalRow(message),
    attempts: verdict.attempts,
    delayMs: verdict.delayMs ?? 0,
    at: verdict.at,
    parked: verdict.parked ?? (retryBy === 'source' ? 'failed' : undefined),
    reason: verdict.reason,
    ...detailsOf(message, verdict.failure ?? verdict.asked),
    history: verdict.failure !== undefined,
  }
  try {
    return await db.transaction(async (tx) => {
      await db.run(LOCK_TIMEOUT, { lockTimeout: '1s' }, tx)
      return (await db.run(FAIL_INLINE, row, tx)).length > 0
    })
  } catch (error) {
    // A copy in flight holds the row: its outcome is not known yet, and neither is ours.
    if (isConflict(error)) return false
    throw error
  }
}
