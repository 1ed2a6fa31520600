/**
 * Handle: runs messages on arrival. Dedup mark, handlers' writes and results commit in one transaction per group.
 *
 * The shared pass is optimistic; if anything in it fails, its messages run one transaction each. A copy that is being
 * handled elsewhere holds a lock on its mark: after a bounded wait the answer is `busy`, never a second run.
 */
import { OnceboxError } from '../../errors.js'
import { batchRun } from '../../handler.js'
import type { Outgoing } from '../../outbox/send.js'
import { isConflict } from '../../postgres/errors.js'
import { failpoint, SimulatedCrash } from '../../worker/failpoints.js'
import type { EffectRunner } from '../call.js'
import { busy, type Ackable } from '../outcome.js'
import type { Prepared } from '../prepare.js'
import { classify, identityOf, knownOutcome } from '../receive.js'
import type { Worker } from '../running.js'
import {
  CommitUnknown,
  isAway,
  isUncalled,
  openTransaction,
  SHARED_LOCK_TIMEOUT,
  withoutBlame,
} from '../transaction.js'
import { runOne } from './alone.js'
import { runBatch } from './batch.js'
import { call, handled } from './call.js'
import { recordFailure } from './fail.js'
import { asSafeAs, committed, isOpen } from './known.js'
import { keyOf, mark, settle, type Item } from './mark.js'

/** Runs messages for one consumer. Answers one outcome per message, in order. */
export async function handleFor(worker: Worker, messages: readonly Prepared[]): Promise<Ackable[]> {
  try {
    return await handleAll(worker, messages)
  } catch (error) {
    worker.noteAway(error)
    throw error
  }
}

async function handleAll(worker: Worker, messages: readonly Prepared[]): Promise<Ackable[]> {
  const { consumer } = worker
  const outcomes = new Map<Item, Ackable>()
  const first = new Map<string, Item>()
  const items = messages.map((prepared): Item => {
    const [, source, id] = identityOf(prepared, consumer.name)
    return { prepared, source, id }
  })
  // Copies within the call wait for the first one, and then are duplicates of it.
  const copies: Item[] = []
  const originals: Item[] = []
  for (const item of items) {
    const key = keyOf(item)
    if (first.has(key)) copies.push(item)
    else {
      first.set(key, item)
      originals.push(item)
    }
  }
  let rest = originals
  while (rest.length > 0 && !worker.stopping()) {
    const group = rest.slice(0, worker.pace.share(rest.map(({ prepared }) => prepared.type)))
    const decided = await runGroup(worker, group)
    for (const [item, outcome] of decided) outcomes.set(item, outcome)
    rest = rest.filter((item) => !outcomes.has(item))
  }
  for (const item of copies) if (!worker.stopping()) outcomes.set(item, await runOne(worker, item))
  // A box that stops starts nothing: whoever sent the rest sends it again, to a box that runs.
  return items.map((item) => outcomes.get(item) ?? busy(consumer.name))
}

/** Runs some of the group, at least one, and answers what became of them. */
async function runGroup(worker: Worker, group: readonly Item[]): Promise<Map<Item, Ackable>> {
  const { consumer, pace } = worker
  const decided = new Map<Item, Ackable>()
  const handler = consumer.handlerOf(group[0]!.prepared.type)
  if (batchRun(handler)) {
    const { type } = group[0]!.prepared
    const same = group.filter(({ prepared }) => prepared.type === type && isPlain(prepared))
    if (same.length > 1) {
      await runBatch(worker, same, decided)
      return decided
    }
  }
  const shareable = leading(group, ({ prepared }) => {
    const own = consumer.handlerOf(prepared.type)
    return own !== undefined && !batchRun(own) && !pace.alone.has(prepared.type) && isPlain(prepared)
  })
  if (shareable.length > 1) await runShared(worker, shareable, decided)
  else decided.set(group[0]!, await runOne(worker, group[0]!))
  return decided
}

async function runShared(worker: Worker, group: readonly Item[], decided: Map<Item, Ackable>): Promise<void> {
  const { pace } = worker
  const endTurn = await pace.turn()
  let failure: SharedFailure | undefined
  try {
    for (let tries = 1; ; tries++) {
      failure = await sharedPass(worker, group, decided)
      if (!failure) return pace.succeeded()
      decided.clear()
      // Once more with fewer groups side by side, before anybody pays for a transaction each.
      const collision = isConflict(failure.error)
      if (collision) pace.collided()
      if (!collision || tries === 2 || worker.stopping()) break
    }
  } finally {
    endTurn()
  }
  for (const item of failure.begun) {
    if (worker.stopping()) return
    // It is known who was slow, and it is not called a second time.
    const slow = failure.slow?.item === item
    const outcome = slow ? recordFailure(worker, item, failure.error, failure.slow!.attempts) : runOne(worker, item)
    decided.set(item, await outcome)
  }
}

/** A redelivery after a crash is suspected of having caused it, so it runs alone. */
function isPlain(prepared: Prepared): boolean {
  return prepared.incoming.redelivered !== true
}

function leading<T>(list: readonly T[], fits: (one: T) => boolean): T[] {
  const end = list.findIndex((one) => !fits(one))
  return end < 0 ? [...list] : list.slice(0, end)
}

interface SharedFailure {
  readonly error: unknown
  /** The messages that it had begun, or all if it began none. */
  readonly begun: readonly Item[]
  /** The one that exceeded its deadline, with its attempts before. */
  readonly slow: { readonly item: Item; readonly attempts: number } | undefined
}

/** One transaction for many. Answers with the failure, or nothing if it committed. */
async function sharedPass(
  worker: Worker,
  group: readonly Item[],
  decided: Map<Item, Ackable>,
): Promise<SharedFailure | undefined> {
  const { runtime, consumer, pace } = worker
  const begun: Item[] = []
  const ran: Item[] = []
  let asked = false
  let slow: SharedFailure['slow']
  try {
    await openTransaction(runtime, consumer, SHARED_LOCK_TIMEOUT, async (tx, open) => {
      const marks = await mark(worker, group, false, tx)
      const outgoing: Outgoing[] = []
      const results: [string, string, string][] = []
      const clock = pace.clock()
      for (const item of group) {
        const marked = marks.get(item)
        if (marked === undefined) {
          begun.push(item)
          continue
        }
        const left = group.length - begun.length
        if (ran.length > 0 && (worker.stopping() || !clock.hasTime(item.prepared.type, left))) break
        begun.push(item)
        ran.push(item)
        const effect: EffectRunner = () => {
          asked = true
          pace.alone.add(item.prepared.type)
          return Promise.reject(new OnceboxError('GROUP_ABANDONED', 'effects run in a transaction of their own'))
        }
        const text = await open
          .call(() => call(worker, item, marked.attempts, tx, outgoing, effect))
          .catch((error: unknown) => {
            if (isTimeout(error)) slow = { item, attempts: marked.attempts }
            throw error
          })
        if (asked) throw new OnceboxError('GROUP_ABANDONED', 'effects run in a transaction of their own')
        if (text !== undefined) results.push([item.source, item.id, text])
        decided.set(item, handled(consumer.name, text))
        clock.ran(item.prepared.type)
      }
      const drop = group.slice(begun.length).filter((item) => marks.has(item))
      return settle(worker, { outgoing, results, drop, open, tx, marks })
    })
    failpoint('committed', runtime.db)
  } catch (error) {
    if (error instanceof SimulatedCrash) throw error
    if (error instanceof CommitUnknown) {
      if (!(await committed(worker, error, ran))) return { error, begun, slow }
      for (const item of ran) decided.set(item, asSafeAs(error, decided.get(item)!))
    } else {
      if (isAway(error) || isUncalled(error) || worker.stop.aborted) throw withoutBlame(error)
      return { error, begun: begun.length > 0 ? begun : group, slow }
    }
  }
  await judgeRest(
    worker,
    begun.filter((item) => !decided.has(item)),
    decided,
  )
  return undefined
}

function isTimeout(error: unknown): boolean {
  return error instanceof OnceboxError && error.code === 'HANDLER_TIMEOUT'
}

/** What was not ours to run is known already: judged together, with a fresh view; one by one where its fate is open. */
async function judgeRest(worker: Worker, rest: readonly Item[], decided: Map<Item, Ackable>): Promise<void> {
  if (rest.length === 0) return
  const { name } = worker.consumer
  const known = await classify(
    worker.runtime,
    rest.map(({ prepared }) => ({ consumer: name, message: prepared })),
  )
  for (const [at, item] of rest.entries()) {
    const found = known[at]
    const clear = found?.same && !isOpen(found)
    decided.set(item, clear ? knownOutcome(name, found) : await runOne(worker, item))
  }
}
