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
import { ALIVE, OPEN, RIGHTS, TRANSACTION_STATUS } from '../postgres/sql/settle.js'
import type { Runtime } from '../runtime.js'
import { backoffMs, sleep } from '../backoff.js'
import { failpoint, SimulatedCrash } from '../worker/failpoints.js'
import type { Claim, OpenGroup } from './claim.js'
import type { ConsumerDeclaration } from './consumer.js'
import type { Worker } from './running.js'

/** Longer waits for a row lock end a shared group; detecting a deadlock would take a second. */
export const SHARED_LOCK_TIMEOUT = '20ms'

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
  return error instanceof Blameless ? error.cause : error
}

/** An open transaction, for whoever runs handlers in it. */
export interface Opened extends OpenGroup {
  /** Makes a call. What it rejects with is the handler's doing; whatever else fails is judged by what it is. */
  call<R>(handler: () => Promise<R>): Promise<R>
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
    return this.cause instanceof OnceboxError
  }
}

/**
 * Runs handlers in a transaction. `work` answers with its result and the settlement, the last statement, which may
 * still be on its way: a driver that pipelines sends it together with COMMIT.
 */
export async function openTransaction<R>(
  { db }: Runtime,
  consumer: ConsumerDeclaration,
  lockTimeout: string | undefined,
  work: (tx: unknown, open: Opened) => Promise<{ result: R; settlement: Promise<unknown> }>,
): Promise<R> {
  let xid: string | undefined
  let finished = false
  const run: Run = { called: false }
  const call = <T>(handler: () => Promise<T>): Promise<T> => {
    run.called = true
    return handler().catch((error: unknown) => {
      run.thrown = { error }
      throw error
    })
  }
  try {
    return await db.transaction(async (tx) => {
      const idle = consumer.options.timeoutMs + 5_000
      const rows = await db.run(OPEN, { lock: lockTimeout ?? null, idle: String(idle) }, tx)
      const [id, guard] = (rows[0]!['opened'] as string).split(' ') as [string, string]
      xid = id
      failpoint('opened', db)
      const { result, settlement } = await work(tx, { xid, guard, call }).catch((error: unknown) =>
        judge(db, tx, error),
      )
      settlement.catch((error: unknown) => {
        run.unsettled = { error }
      })
      if (!db.driver.pipelines) await settlement
      failpoint('settled', db)
      finished = true
      return result
    }, consumer.options.isolation)
  } catch (error) {
    if (finished && xid !== undefined && isUnknown(error)) throw new CommitUnknown(xid, error)
    throw await blame(db, error, run, finished)
  }
}

/** How far a run came. */
interface Run {
  called: boolean
  /** What a handler rejected with. */
  thrown?: { readonly error: unknown }
  /** What the settlement rejected with, perhaps behind a COMMIT that was sent with it. */
  unsettled?: { readonly error: unknown }
}

/** Whose fault it is. The one place that decides, whichever way a message runs. */
async function blame(db: Database, last: unknown, run: Run, finished: boolean): Promise<unknown> {
  if (last instanceof SimulatedCrash) return last
  // A COMMIT that was sent behind a settlement fails because of it.
  const error = run.unsettled ? run.unsettled.error : last
  if (!run.called) return new Blameless(false, translate(error))
  // What could open the transaction could settle it, had nobody changed its role, or its rights meanwhile.
  if (isDenied(error)) return (await hasRights(db)) ? roleChanged(error) : new Blameless(true, error)
  const ofHandler = run.thrown !== undefined && run.thrown.error === error
  if (ofHandler) return translateThrown(error)
  // The connection is gone, and with it whatever the server would have said.
  if (someCause(error, isConnectionLoss)) return translate(error)
  const atCommit = finished && !run.unsettled
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
  const rows = await db.run(RIGHTS, null)
  return rows[0]!['complete'] === 'true'
}

/**
 * The same for claimed messages. Under a stronger isolation level a heartbeat would change the very rows that the
 * transaction settles, and fail it every time: it is sent before, for a lease that covers the whole transaction.
 */
export async function openClaimed<R>(
  { runtime, consumer }: Worker,
  claim: Claim,
  lockTimeout: string | undefined,
  work: (tx: unknown, open: Opened) => Promise<{ result: R; settlement: Promise<unknown> }>,
): Promise<R> {
  if (consumer.options.isolation === 'read committed') return openTransaction(runtime, consumer, lockTimeout, work)
  if (!(await claim.extendAll())) throw ownError('CLAIM_LOST', 'another worker claimed the message; raise leaseMs')
  claim.freeze(true)
  try {
    return await openTransaction(runtime, consumer, lockTimeout, work)
  } finally {
    claim.freeze(false)
  }
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
  return (error instanceof OnceboxError && error.code === 'COMMIT_UNCERTAIN') || isConnectionLoss(error)
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

/**
 * Finds out what became of a COMMIT without an answer: waits until the transaction is over, then trusts the rows.
 * An unlocked read right away could miss a commit that is still under way.
 */
export async function resolveUnknown(
  { db }: Runtime,
  unknown: CommitUnknown,
  read: () => Promise<boolean>,
  until: { readonly aborted: Error | undefined },
): Promise<boolean> {
  for (let attempt = 0; ; attempt++) {
    try {
      const rows = await db.run(TRANSACTION_STATUS, [unknown.xid])
      if (rows[0]?.['status'] !== 'in progress') return await read()
    } catch (error) {
      if (!isConnectionLoss(error) && sqlState(error) !== '22023') throw error
      // 22023: the transaction id is in the future, so this is another server after a failover; only rows count.
      if (sqlState(error) === '22023') return read()
    }
    if (until.aborted) throw unknown
    await sleep(backoffMs(attempt, 20, 500))
  }
}
