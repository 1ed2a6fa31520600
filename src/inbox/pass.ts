/**
 * Pass: one transaction for some of what is held.
 *
 *     open → enter → call their handlers → settle → COMMIT → settled
 *
 * What handlers wrote, sent and returned commits together with the settlement, or none of it happened.
 */
import { writeOutgoing } from '../outbox/send.js'
import { STORE_RESULTS } from '../postgres/sql/settle.js'
import type { PassTrace } from '../telemetry/pass.js'
import { failpoint } from '../worker/failpoints.js'
import type { Done, HeldMessage } from './held.js'
import type { Run } from './run.js'
import { CommitFailed, CommitUnknown, openTransaction, type Opened, type Settlement } from './transaction.js'
import { resolveUnknown } from './unknown.js'

/** What is to happen in the transaction: which messages enter it, and how their handlers are called. */
export interface Pass {
  readonly messages: readonly HeldMessage[]
  /** How long handlers may wait for a row lock; undefined for as long as the server lets them. */
  readonly lockTimeout?: string
  /** Calls the handlers of those that are ours. Answers those that ran. */
  call(open: Opened, ours: readonly HeldMessage[]): Promise<readonly Done[]>
}

/** Resolves once everything is settled. Rejects if nothing is, or if nobody knows (CommitUnknown). */
export async function pass(run: Run, what: Pass): Promise<void> {
  const { runtime, consumer } = run.worker
  const trace = runtime.traces.pass(consumer.name, what.messages)
  try {
    await commit(run, what, trace)
    trace.committed()
  } catch (error) {
    trace.failed(error)
    throw error
  }
}

async function commit(run: Run, what: Pass, trace: PassTrace): Promise<void> {
  const { held } = run
  const { runtime, metrics } = run.worker
  const started = performance.now()
  let done: readonly Done[] = []
  let outgoing: Opened['outgoing'] = []
  const settled = (late?: CommitUnknown): void => {
    held.settled(done, late)
    metrics.settled(done, performance.now() - started)
    runtime.metrics.wrote(outgoing)
  }
  try {
    await openTransaction(run, what.lockTimeout, async (open) => {
      outgoing = open.outgoing
      done = await what.call(open, await held.enter(what.messages, open))
      failpoint('handled', runtime.db)
      return trace.settling(done, () => settle(run, open, done))
    })
    failpoint('committed', runtime.db)
    settled()
  } catch (error) {
    if (!(error instanceof CommitUnknown)) throw error
    if (!(await resolveUnknown(run, error, done))) throw new CommitFailed(error)
    settled(error)
  }
}

/** Everything that belongs to the same commit: what was sent, the results, the settlement. */
async function settle({ worker, held }: Run, open: Opened, done: readonly Done[]): Promise<Settlement> {
  const { runtime, consumer } = worker
  if (open.outgoing.length > 0) await writeOutgoing(runtime, open.outgoing, open.tx)
  const results: [source: string, id: string, result: string][] = []
  for (const { message, result } of done) if (result !== undefined) results.push([message.source, message.id, result])
  if (results.length > 0 && held.journaled) {
    await runtime.db.run(STORE_RESULTS, { consumer: consumer.name, results }, open.tx)
  }
  return held.settle(done, open)
}
