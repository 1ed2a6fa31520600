/**
 * Held: messages that are ours to run, and how their fate is recorded. There are four kinds, which run in the same way:
 *
 * - a claim of messages (claim.ts), under a lease;
 * - a claim of lanes (lanes.ts), under a lease;
 * - marks, which messages that run on arrival get in the transaction of their handlers (inline/mark.ts);
 * - messages of which there is no record (direct.ts).
 *
 *     queue ──enter──> in a transaction ──settle──> COMMIT ──settled──> handled
 *       │                    └─ rolled back: in the queue, as before
 *       ├──fail──> to run again, or to wait for a person
 *       └──release──> given back
 */
import type { Retrial } from '../hooks.js'
import type { Message } from '../message.js'
import type { Processed } from '../telemetry/process.js'
import type { Pace } from '../worker/pace.js'
import type { CommitUnknown, Opened, Settlement } from './transaction.js'
import type { Verdict } from './verdict.js'

export interface HeldMessage extends Processed {
  /** The key in the journal; `message.id` is the producer's. */
  readonly source: string
  readonly id: string
  /** The number of its row in the journal; null if it was stored before rows had one, or is not stored yet. */
  n: string | null
  readonly type: string
  readonly lane: string | undefined
  /** Attempts that have failed, or were counted before they ran. */
  attempts: number
  /** It may have killed its last worker: it runs alone, its attempt counted first. */
  suspect: boolean
  /** Its attempt was counted before it ran: what to put back if it is released without a verdict. */
  attemptsBefore?: number
  message: Message
  /** Reads its body, which of a suspect is done after its attempt was counted, or it was given up. */
  read?: (() => Promise<void>) | undefined
  /** How long its last call took, if that failed. */
  ranMs?: number
  /** Why it cannot be given to a handler: its schema refuses it. */
  problem: string | undefined
  /** The fields that its schema refuses. */
  fields?: readonly string[] | undefined
}

/** A message whose handler has returned, and the JSON text of its result. */
export interface Done<M extends HeldMessage = HeldMessage> {
  readonly message: M
  readonly result: string | undefined
}

/** A verdict as it was recorded, with who runs the message again if anybody does. */
export type Recorded = Verdict & Pick<Retrial, 'retryBy'>

export interface Held<M extends HeldMessage = HeldMessage> {
  /** What is still to run, in order. Settling and failing remove from it. */
  readonly queue: M[]
  /** Undefined where nothing but a transaction keeps others away. */
  readonly lease?: Lease
  /** Is there a record of its messages, for results and effects? */
  readonly journaled: boolean
  /** How often, for how long, and after which pause a message that collides is tried again before it is given back. */
  readonly patience: { readonly tries: number; readonly ms: number; readonly pauseMs: number }
  /** How long a COMMIT without an answer may be asked about. */
  readonly commitWaitMs: number
  /** How long entering waits for a lock, where handlers may wait for longer. */
  readonly lockTimeout?: string
  /** How many times the time of a group may be taken to finish what has entered it, if that is to be more than usual. */
  readonly stretch?: number
  /** How many messages of the queue may enter one transaction. */
  atOnce(pace: Pace): number
  /** Takes messages of the queue into a transaction. Answers those that are ours to run; the others have left the queue. */
  enter(messages: readonly M[], open: Opened): Promise<readonly M[]>
  /** Issues the settlement of those that ran, of all that entered. */
  settle(done: readonly Done<M>[], open: Opened): Settlement | Promise<Settlement>
  /** The settlement has committed; `late` if the answer to COMMIT was none, or a warning. */
  settled(done: readonly Done<M>[], late?: CommitUnknown): void
  /** After a COMMIT without an answer: did it take effect? `status` is the server's word; only rows outlive a failover. */
  isSettled(done: readonly Done<M>[], status: string | null | undefined): Promise<boolean>
  /** Records a failure. Answers what was recorded: nothing if somebody else decides the fate of the message by now. */
  fail(message: M, verdict: Verdict): Promise<Recorded | undefined>
  /** Runs a message under a lease, where it has none and cannot do without. */
  adopt?(message: M): Promise<void>
}

/** What is held under a lease, for as long as it is extended. */
export interface Claim extends Held {
  readonly lease: Lease
  /** Gives back everything that is not settled, due at once. */
  release(): Promise<void>
  /** Forgets everything without a word to the database, as a crash would. */
  abandon(): void
}

export interface Lease {
  readonly token: string
  /** While frozen, nothing touches its rows: it is not extended. */
  frozen: boolean
  /** Extends it, as far as its rows are not locked for too long: nobody else gets at those either. False: some was lost. */
  extend(): Promise<boolean>
  /** Extends all of it, however long its rows are locked. Answers false if any of it was lost. */
  extendAll(): Promise<boolean>
}

/** What became of a message. */
export type Ended = (message: HeldMessage, fate: Recorded | Done, late?: CommitUnknown) => void

/** The same claim, and `ended` is told what becomes of its messages. */
export function watched(claim: Claim, ended: Ended): Claim {
  return {
    ...claim,
    settled(done, late) {
      claim.settled(done, late)
      for (const one of done) ended(one.message, one, late)
    },
    async fail(message, verdict) {
      const recorded = await claim.fail(message, verdict)
      if (recorded) ended(message, recorded)
      return recorded
    },
  }
}

/** Its attempt was counted before it ran. */
export function isCounted({ attemptsBefore }: HeldMessage): boolean {
  return attemptsBefore !== undefined
}

/** So many attempts have been made before the one that is to come, or that was counted already. */
export function setAttempts(message: HeldMessage, attempts: number): void {
  if (message.attempts === attempts) return
  message.attempts = attempts
  message.message = { ...message.message, attempt: attempts + (isCounted(message) ? 0 : 1) }
}

/** Settled messages are nearly always the head of the queue. */
export function removeAll<M extends HeldMessage>(queue: M[], done: readonly Done<M>[]): void {
  if (done.every(({ message }, at) => queue[at] === message)) queue.splice(0, done.length)
  else {
    const gone = new Set(done.map(({ message }) => message))
    queue.splice(0, queue.length, ...queue.filter((message) => !gone.has(message)))
  }
}
