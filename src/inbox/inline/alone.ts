/** One message, one transaction; waits a little for a copy in flight. */
import { EffectJournal } from '../../effects/journal.js'
import { ownError, type OnceboxError } from '../../errors.js'
import type { Outgoing } from '../../outbox/send.js'
import { backoffMs, sleep } from '../../backoff.js'
import { isConflict } from '../../postgres/errors.js'
import { failpoint, SimulatedCrash } from '../../worker/failpoints.js'
import { busy, type Ackable } from '../outcome.js'
import type { Worker } from '../running.js'
import { Blameless, CommitUnknown, isAway, openTransaction, withoutBlame } from '../transaction.js'
import { runAdopted, tryRedelivered } from './adopt.js'
import { call, handled } from './call.js'
import { recordFailure } from './fail.js'
import { asSafeAs, committed, judgeKnown } from './known.js'
import { mark, settle, type Item } from './mark.js'

/** How long the copy of a message in flight waits for the other one before it is told `busy`. */
const BUSY_WAIT_MS = 500
/** How long one look at a contended mark waits for its lock. */
const MARK_LOCK_TIMEOUT = '5ms'

export async function runOne(worker: Worker, item: Item): Promise<Ackable> {
  const { consumer } = worker
  if (consumer.handlerOf(item.prepared.type) === undefined) {
    return recordFailure(worker, item, missingHandler(worker, item), 0)
  }
  const attemptOne = item.prepared.incoming.redelivered === true ? tryRedelivered : tryOne
  const end = performance.now() + BUSY_WAIT_MS
  for (let attempt = 0; ; attempt++) {
    const outcome = await attemptOne(worker, item)
    if (outcome) return outcome
    if (performance.now() > end || worker.stopping()) return busy(consumer.name)
    await sleep(backoffMs(attempt, 5, 100))
  }
}

function missingHandler({ consumer }: Worker, { prepared }: Item): OnceboxError {
  return ownError('HANDLER_MISSING', `consumer ${consumer.name} has no handler for ${prepared.type}`)
}

/** Answers undefined if a copy of the message is in flight elsewhere. */
async function tryOne(worker: Worker, item: Item): Promise<Ackable | undefined> {
  const { runtime, consumer, pace } = worker
  let attempts = 0
  let text: string | undefined
  const journal = new EffectJournal(runtime, { consumer: consumer.name, source: item.source, id: item.id })
  try {
    const outcome = await openTransaction(runtime, consumer, MARK_LOCK_TIMEOUT, async (tx, open) => {
      const marks = await mark(worker, [item], true, tx)
      const own = marks.get(item)
      const none = { outgoing: [], results: [], drop: [], marks, open, tx }
      if (own === undefined) return { ...(await settle(worker, none)), result: undefined }
      attempts = own.attempts
      const outgoing: Outgoing[] = []
      const started = performance.now()
      text = await open.call(async () => {
        const result = await call(worker, item, attempts, tx, outgoing, journal.runIn(tx))
        journal.check()
        return result
      })
      pace.took(item.prepared.type, performance.now() - started)
      const results: [string, string, string][] = text === undefined ? [] : [[item.source, item.id, text]]
      return { ...(await settle(worker, { ...none, outgoing, results })), result: handled(consumer.name, text) }
    })
    failpoint('committed', runtime.db)
    if (outcome) return outcome
  } catch (error) {
    if (error instanceof SimulatedCrash) throw error
    if (journal.takeWanted()) {
      pace.alone.add(item.prepared.type)
      return runAdopted(worker, item)
    }
    if (error instanceof CommitUnknown) {
      return (await committed(worker, error, [item])) ? asSafeAs(error, handled(consumer.name, text)) : undefined
    }
    // The mark is locked by a copy in flight, or rows that the handler needs are by others.
    if (isConflict(error)) return undefined
    if (isAway(error) || error instanceof Blameless || worker.stop.aborted) throw withoutBlame(error)
    return recordFailure(worker, item, error, attempts)
  }
  return judgeKnown(worker, item)
}
