/** Direct: plain execution, for handlers that are idempotent by nature. A transaction, and no record of the message. */
import { SETTLE_INLINE } from '../postgres/sql/inline.js'
import { runAlone } from './alone.js'
import { arrive, Arrivals, type Arrival } from './arrival.js'
import { quarantineInvalid } from './fail.js'
import type { Held } from './held.js'
import { ARRIVAL_PATIENCE } from './inline/mark.js'
import { failed, handled, type Ackable } from './outcome.js'
import type { Prepared } from './prepare.js'
import type { Worker } from './run.js'
import { withoutBlame } from './transaction.js'

/** Answers one outcome per message, in order. */
export async function runDirect(worker: Worker, messages: readonly Prepared[]): Promise<Ackable[]> {
  const list = await arrive(worker, messages)
  const arrivals = new Arrivals(list)
  const run = { worker, held: unrecorded(worker, arrivals), abort: worker.stop }
  for (const message of list) {
    if (worker.stopping() || worker.stop.aborted) break
    try {
      await (message.problem === undefined ? runAlone(run, message) : quarantineInvalid(run, message))
    } catch (error) {
      // Not the message's: the delivery fails, and its sender is told nothing of the message.
      throw withoutBlame(error)
    }
  }
  return arrivals.answers(worker.consumer.name)
}

/** Nothing is known of them before, and nothing is kept of them. */
function unrecorded({ runtime, consumer }: Worker, arrivals: Arrivals): Held<Arrival> {
  return {
    ...ARRIVAL_PATIENCE,
    queue: arrivals.queue,
    journaled: false,
    atOnce: () => 1,
    enter: (messages) => Promise.resolve(messages),
    settle: (_, { xid, guard, tx }) => ({ settlement: runtime.db.run(SETTLE_INLINE, { xid, guard, handled: '' }, tx) }),
    settled(done) {
      for (const { message, result } of done) arrivals.answer(message, handled(consumer.name, result))
    },
    isSettled: (_, status) => Promise.resolve(status === 'committed'),
    fail(message, { failure, ...verdict }) {
      // Its policy is for those who keep count.
      const recorded = { ...(failure ? { attempts: 0, failure } : verdict), retryBy: 'source' as const }
      arrivals.answer(message, failed(consumer.name, recorded))
      return Promise.resolve(recorded)
    },
  }
}
