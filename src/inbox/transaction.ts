/** The transaction in which handlers run: it opens, its work settles, it commits; or none of it happened. */
import { OnceboxError } from '../errors.js'
import { causes } from '../failure.js'
import { isDenied, type Database } from '../postgres/database.js'
import { isConnectionLoss, isFromTheDatabase, isUnavailable, notTheDatabase, sqlState } from '../postgres/errors.js'
import { ALIVE, OPEN, TRANSACTION_STATUS } from '../postgres/sql/settle.js'
import type { Runtime } from '../runtime.js'
import { backoffMs, sleep } from '../backoff.js'
import { failpoint } from '../worker/failpoints.js'
import type { Claim, OpenGroup } from './claim.js'
import type { ConsumerDeclaration } from './consumer.js'
import type { Worker } from './running.js'

/** Longer waits for a row lock end a shared group; detecting a deadlock would take a second. */
export const SHARED_LOCK_TIMEOUT = '20ms'

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
  work: (tx: unknown, open: OpenGroup) => Promise<{ result: R; settlement: Promise<unknown> }>,
): Promise<R> {
  let xid: string | undefined
  let finished = false
  try {
    return await db.transaction(async (tx) => {
      const idle = consumer.options.timeoutMs + 5_000
      const rows = await db.run(OPEN, { lock: lockTimeout ?? null, idle: String(idle) }, tx)
      const [id, guard] = (rows[0]!['opened'] as string).split(' ') as [string, string]
      xid = id
      failpoint('opened', db)
      const { result, settlement } = await work(tx, { xid, guard }).catch((error: unknown) => judge(db, tx, error))
      if (db.driver.pipelines) settlement.catch(() => undefined)
      else await settlement
      failpoint('settled', db)
      finished = true
      return result
    }, consumer.options.isolation)
  } catch (error) {
    if (finished && xid !== undefined && isUnknown(error)) throw new CommitUnknown(xid, error)
    // What could open the transaction could settle it, had nobody changed its role.
    throw xid !== undefined && isDenied(error) ? roleChanged(error) : translate(error)
  }
}

/**
 * The same for claimed messages. Under a stronger isolation level a heartbeat would change the very rows that the
 * transaction settles, and fail it every time: it is sent before, for a lease that covers the whole transaction.
 */
export async function openClaimed<R>(
  { runtime, consumer }: Worker,
  claim: Claim,
  lockTimeout: string | undefined,
  work: (tx: unknown, open: OpenGroup) => Promise<{ result: R; settlement: Promise<unknown> }>,
): Promise<R> {
  if (consumer.options.isolation === 'read committed') return openTransaction(runtime, consumer, lockTimeout, work)
  if (!(await claim.extendAll()))
    throw new OnceboxError('CLAIM_LOST', 'another worker claimed the message; raise leaseMs')
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
  if (isAway(error) && ![...causes(error)].some(isFromTheDatabase)) {
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
    return new OnceboxError('CLAIM_LOST', 'another worker claimed the message before it settled; raise leaseMs', {
      cause: error,
    })
  }
  if (state === 'OB002' || isGuard(error)) {
    return new OnceboxError(
      'HANDLER_COMMITTED',
      'a handler ended the transaction that oncebox opened; remove its COMMIT or ROLLBACK',
      { cause: error },
    )
  }
  if (state === '25P02') {
    return new OnceboxError(
      'TRANSACTION_ABORTED',
      'a handler swallowed an SQL error, after which PostgreSQL refuses to commit; let it throw',
      { cause: error },
    )
  }
  return error
}

function roleChanged(cause: unknown): OnceboxError {
  return new OnceboxError(
    'SESSION_CHANGED',
    'a handler changed its role to one under which oncebox cannot settle; put it back with SET LOCAL ROLE NONE before it returns',
    { cause },
  )
}

/** The guard of open_group: see migration 004. */
function isGuard(error: unknown): boolean {
  const violation = sqlState(error) === '23503' && error instanceof Error
  return violation && error.message.includes('a_handler_must_not_end_its_transaction')
}

/** Deadlock, lock timeout, serialization failure: nobody's fault, and worth another try. */
export function isConflict(error: unknown): boolean {
  for (const cause of causes(error)) {
    const state = sqlState(cause)
    if (state === '40P01' || state === '55P03' || state === '40001') return true
  }
  return false
}

/** The connection broke under us or the server cannot serve, wherever in the chain of causes it shows. */
export function isAway(error: unknown): boolean {
  for (const cause of causes(error)) if (isUnavailable(cause)) return true
  return false
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
