/** The transaction in which handlers run: it opens, its work settles, it commits; or none of it happened. */
import { OnceboxError, ownError } from '../errors.js'
import { causes, someCause } from '../failure.js'
import type { Database } from '../postgres/database.js'
import {
  isConflict,
  isConnectionLoss,
  isDenied,
  isFromTheDatabase,
  isGuard,
  isServersState,
  isServersStateAtCommit,
  isUnavailable,
  notTheDatabase,
  sqlState,
} from '../postgres/errors.js'
import type { Outgoing } from '../outbox/send.js'
import { ALIVE, OPEN, RIGHTS } from '../postgres/sql/settle.js'
import { failpoint, SimulatedCrash } from '../worker/failpoints.js'
import type { Lease } from './held.js'
import type { Run } from './run.js'
import { explainLoss } from './session.js'

/**
 * A run that ended for a reason that is not its message's: no handler was called, or one of our own statements failed
 * because of the server's state. No call, no verdict: nothing is recorded, and the message runs again. The cause says what
 * happened.
 */
export class Blameless extends Error {
  override readonly name = 'Blameless'
  constructor(
    /** False if no handler was called: then nothing would come of trying the next message. */
    readonly called: boolean,
    cause: unknown,
  ) {
    super('the message is not to blame', { cause })
  }
}

/** No handler was called, and nothing but the server kept us from it: trying another way would not help. */
export function isUncalled(error: unknown): boolean {
  return error instanceof Blameless && !error.called && !isConflict(error)
}

/** What happened, as whoever watches the box wants to hear it. */
export function withoutBlame(error: unknown): unknown {
  if (error instanceof CommitFailed) return error.cause.cause
  return error instanceof Blameless ? error.cause : error
}

/** An open transaction, for whoever runs handlers in it. */
export interface Opened {
  readonly tx: unknown
  readonly xid: string
  /** The place of the row that refuses a COMMIT before the settlement. */
  readonly guard: string
  /** How long handlers wait for a row lock; undefined if that is the server's to say. */
  readonly lockTimeout: string | undefined
  /** What handlers have sent. */
  readonly outgoing: Outgoing[]
  /** A handler is about to be called. */
  calls(): void
  /** What a call has failed with is the handler's doing; whatever else fails is judged by what it is. */
  threw(error: unknown): void
}

/** The last statement of a transaction, which may still be on its way: a driver that pipelines sends COMMIT behind it. */
export interface Settlement {
  readonly settlement: Promise<unknown>
}

/** The server's answer to COMMIT never came, or came with a warning. */
export class CommitUnknown extends Error {
  override readonly name = 'CommitUnknown'
  constructor(
    readonly xid: string,
    cause: unknown,
  ) {
    super('the connection was lost during COMMIT', { cause })
  }

  /** It committed here, and perhaps not where it would be looked for after a failover. */
  get warned(): boolean {
    return isUncertain(this.cause)
  }
}

/** A COMMIT without an answer has come to nothing, as is known by now: what it was for may run again at once. */
export class CommitFailed extends Error {
  override readonly name = 'CommitFailed'
  constructor(override readonly cause: CommitUnknown) {
    super('the COMMIT came to nothing', { cause })
  }
}

/**
 * Runs handlers in a transaction; `work` answers with the settlement. Under a stronger isolation level a heartbeat would
 * change the very rows that the transaction settles, and fail it every time: it is sent before, for a lease that covers
 * the whole transaction.
 */
export function openTransaction(
  run: Run,
  lockTimeout: string | undefined,
  work: (open: Opened) => Promise<Settlement>,
): Promise<void> {
  const { lease } = run.held
  if (!lease || run.worker.consumer.options.isolation === 'read committed') return open(run, lockTimeout, work)
  return underLease(lease, () => open(run, lockTimeout, work))
}

/** Frozen for the time of the transaction, for which it was extended. */
async function underLease(lease: Lease, work: () => Promise<void>): Promise<void> {
  if (!(await lease.extendAll())) throw ownError('CLAIM_LOST', 'another worker claimed the message; raise leaseMs')
  lease.frozen = true
  try {
    return await work()
  } finally {
    lease.frozen = false
  }
}

async function open(
  { worker, held }: Run,
  lockTimeout: string | undefined,
  work: (open: Opened) => Promise<Settlement>,
): Promise<void> {
  const { db } = worker.runtime
  const { timeoutMs, isolation } = worker.consumer.options
  let xid: string | undefined
  const course: Course = { finished: false }
  const calls = (): void => {
    course.called ??= performance.now()
  }
  const threw = (error: unknown): void => {
    // Of several that run side by side the first has failed, and the others perhaps because of it.
    course.thrown ??= { error }
  }
  try {
    await db.transactionForHandlers(async (tx) => {
      const limits = { lockTimeout: lockTimeout ?? held.lockTimeout ?? null, idleMs: timeoutMs + 5_000 }
      const [row] = await db.run(OPEN, limits, tx)
      const [id, guard, idle] = row!.opened.split(' ') as [string, string, string]
      xid = id
      course.idle = idle
      failpoint('opened', db)
      const opened = { tx, xid, guard, lockTimeout, outgoing: [], calls, threw }
      const { settlement } = await work(opened).catch((error: unknown) => judge(db, tx, error))
      settlement.catch((error: unknown) => {
        course.unsettled = { error }
      })
      if (!db.driver.pipelines) await settlement
      failpoint('settled', db)
      course.finished = true
    }, isolation)
  } catch (error) {
    if (course.finished && xid !== undefined && isUnknown(error))
      throw new CommitUnknown(xid, explainLoss(error, course))
    const blamed = await blame(db, error, course)
    throw blamed instanceof Blameless ? blamed : explainLoss(blamed, course)
  }
}

/** How far the work in a transaction came. */
interface Course {
  /** When the first handler was called. */
  called?: number
  /** How long the session may be idle in it by its owner's word, in the server's words: '0' if there is no limit. */
  idle?: string
  /** All but the COMMIT. */
  finished: boolean
  /** What a handler rejected with. */
  thrown?: { readonly error: unknown }
  /** What the settlement rejected with, perhaps behind a COMMIT that was sent with it. */
  unsettled?: { readonly error: unknown }
}

/** Whose fault it is. The one place that decides, whichever way a message runs. */
async function blame(db: Database, last: unknown, course: Course): Promise<unknown> {
  if (last instanceof SimulatedCrash) return last
  // A COMMIT that was sent behind a settlement fails because of it.
  const error = course.unsettled ? course.unsettled.error : last
  if (course.called === undefined) return new Blameless(false, translate(error))
  // What could open the transaction could settle it, had nobody changed its role, or its rights meanwhile.
  if (isDenied(error)) return (await hasRights(db)) ? roleChanged(error) : new Blameless(true, error)
  const ofHandler = course.thrown !== undefined && course.thrown.error === error
  if (ofHandler) return translateThrown(error)
  // The connection is gone, and with it whatever the server would have said.
  if (someCause(error, isConnectionLoss)) return translate(error)
  const atCommit = course.finished && !course.unsettled
  return (atCommit ? isServersStateAtCommit(error) : isServersState(error))
    ? new Blameless(true, error)
    : translate(error)
}

/** Whose fault a statement of ours is that failed beside every transaction, where no handler can have broken anything. */
export function blameOf(error: unknown): unknown {
  const servers = isUnavailable(error) || isDenied(error) || isServersState(error)
  return servers ? new Blameless(false, error) : error
}

async function hasRights(db: Database): Promise<boolean> {
  const [row] = await db.run(RIGHTS, null)
  return row!.complete === 'true'
}

/** A handler's own connections break with the same errors as ours: asking the server tells them apart. */
async function judge(db: Database, tx: unknown, error: unknown): Promise<never> {
  // What a driver vouches for needs no question: a lost node of a cluster is told over a connection in good order.
  if (isAway(error) && !someCause(error, isFromTheDatabase)) {
    const alive = await db.run(ALIVE, null, tx).then(
      () => true,
      (probe: unknown) => sqlState(probe) !== undefined && !isConnectionLoss(probe),
    )
    if (alive) for (const cause of causes(error)) notTheDatabase(cause)
  }
  throw error
}

function isUnknown(error: unknown): boolean {
  return isUncertain(error) || isConnectionLoss(error)
}

function isUncertain(error: unknown): boolean {
  return error instanceof OnceboxError && error.code === 'COMMIT_UNCERTAIN'
}

/** Errors that our own SQL raises, in our own words. */
function translate(error: unknown): unknown {
  const state = sqlState(error)
  if (state === 'OB001') {
    return ownError('CLAIM_LOST', 'another worker claimed the message before it settled; raise leaseMs', {
      cause: error,
    })
  }
  return state === 'OB002' ? handlerCommitted(error) : translateThrown(error)
}

/** What a handler has thrown, in our own words where it is PostgreSQL's. None of our own SQL has raised it. */
function translateThrown(error: unknown): unknown {
  if (isGuard(error)) return handlerCommitted(error)
  if (sqlState(error) === '25P02') {
    return new OnceboxError(
      'TRANSACTION_ABORTED',
      'a handler swallowed an SQL error, after which PostgreSQL refuses to commit; let it throw',
      { cause: error },
    )
  }
  return error
}

function handlerCommitted(cause: unknown): OnceboxError {
  const text = 'a handler ended the transaction that oncebox opened; remove its COMMIT or ROLLBACK'
  return new OnceboxError('HANDLER_COMMITTED', text, { cause })
}

function roleChanged(cause: unknown): OnceboxError {
  return new OnceboxError(
    'SESSION_CHANGED',
    'a handler changed its role to one under which oncebox cannot settle; put it back with SET LOCAL ROLE NONE before it returns',
    { cause },
  )
}

/** The connection broke under us or the server cannot serve, wherever in the chain of causes it shows. */
export function isAway(error: unknown): boolean {
  // Judged already: the server was there, and short of something.
  if (error instanceof Blameless && error.called) return false
  return someCause(error, isUnavailable)
}
