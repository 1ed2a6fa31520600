/** Unknown: what became of a COMMIT without an answer. */
import { backoffMs, sleep } from '../backoff.js'
import type { Database } from '../postgres/database.js'
import { isConnectionLoss, isPassing, sqlState } from '../postgres/errors.js'
import { CONFIRM } from '../postgres/sql/receive.js'
import { TRANSACTION_STATUS } from '../postgres/sql/settle.js'
import type { Done } from './held.js'
import type { Run } from './run.js'
import type { CommitUnknown } from './transaction.js'

/**
 * Waits until the transaction is over. Aborted, it has settled nothing; else the rows decide, and an unlocked read right
 * away could miss a commit that is still under way.
 * Rejects with it if there is no time to wait.
 */
export async function resolveUnknown(
  { worker, held, abort }: Run,
  unknown: CommitUnknown,
  done: readonly Done[],
): Promise<boolean> {
  const { db } = worker.runtime
  const began = performance.now()
  const end = began + held.commitWaitMs
  for (let attempt = 0; ; attempt++) {
    try {
      const status = await statusOf(db, unknown)
      // After a failover the number may be another transaction's, but then ours is not there either.
      if (status === 'aborted') return false
      if (status !== 'in progress') {
        const settled = await held.isSettled(done, status)
        if (settled) await confirm(db, unknown)
        return settled
      }
    } catch (error) {
      // Whatever keeps the server from telling is nothing that the message has done.
      if (error === unknown || !isPassing(error)) throw unknown
      // While nobody can connect, heartbeats fail too, and end the wait. A question that alone is refused must not last for
      // ever: the claim would be kept, and with it the messages.
      if (!isConnectionLoss(error) && performance.now() - began > worker.consumer.options.leaseMs) throw unknown
    }
    if (abort.aborted || performance.now() > end) throw unknown
    await sleep(backoffMs(attempt, 20, 500))
  }
}

/** Undefined if nobody knows: only rows count then. */
async function statusOf(db: Database, { xid }: CommitUnknown) {
  try {
    const [row] = await db.run(TRANSACTION_STATUS, { xid })
    return row?.status ?? undefined
  } catch (error) {
    // The transaction id is in the future, so this is another server after a failover.
    if (sqlState(error) === '22023') return undefined
    throw error
  }
}

/**
 * A session that the server ended, or a server that crashed and is back, has committed without its standby: what is
 * acknowledged next has to be there too. After a warning nothing is acknowledged.
 */
async function confirm(db: Database, unknown: CommitUnknown): Promise<void> {
  if (unknown.warned) return
  try {
    await db.run(CONFIRM, 'late')
  } catch (error) {
    throw isConnectionLoss(error) ? error : unknown
  }
}
