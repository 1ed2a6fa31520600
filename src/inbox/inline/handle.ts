/**
 * Handle: runs messages on arrival. Dedup mark, handlers' writes and results commit in one transaction per group.
 *
 * They run as stored ones do (group.ts). What is not ours to run is known already, or a copy of it is being handled
 * elsewhere: after a bounded wait the answer is `busy`, never a second run.
 */
import { backoffMs, sleep } from '../../backoff.js'
import { runAlone } from '../alone.js'
import { arrive, Arrivals, type Arrival } from '../arrival.js'
import { runNext } from '../group.js'
import type { OthersQuestion } from '../others.js'
import { busy, type Ackable } from '../outcome.js'
import type { Prepared } from '../prepare.js'
import type { Run, Worker } from '../run.js'
import { withoutBlame } from '../transaction.js'
import { runAdopted, runUnknown } from './adopt.js'
import { horizonOf, judgeKnown } from '../known.js'
import { keyOf, marksOf, type Marks } from './mark.js'

/** How long the copy of a message in flight waits for the other one before it is told `busy`. */
const BUSY_WAIT_MS = 500

/** Runs messages for one consumer. Answers one outcome per message, in order. Its first mark asks for `others`. */
export async function handleFor(
  worker: Worker,
  messages: readonly Prepared[],
  others?: OthersQuestion,
): Promise<Ackable[]> {
  try {
    const arrivals = new Arrivals(await arrive(worker, messages))
    // Copies within the call wait for the first one, and then are duplicates of it.
    const copies = takeCopies(arrivals.queue)
    const on = onArrival(worker, arrivals, others)
    await runAll(on)
    for (const copy of copies) {
      arrivals.queue.push(copy)
      await runAll(on)
    }
    return arrivals.answers(worker.consumer.name)
  } catch (error) {
    worker.noteAway(error)
    throw withoutBlame(error)
  }
}

function takeCopies(queue: Arrival[]): Arrival[] {
  const originals = new Map<string, Arrival>()
  for (const arrival of queue) {
    const key = keyOf(arrival)
    if (!originals.has(key)) originals.set(key, arrival)
  }
  if (originals.size === queue.length) return []
  const copies = queue.filter((arrival) => originals.get(keyOf(arrival)) !== arrival)
  queue.splice(0, queue.length, ...originals.values())
  return copies
}

/** A run of arrivals. */
interface OnArrival extends Run {
  readonly held: Marks
  readonly arrivals: Arrivals
}

function onArrival(worker: Worker, arrivals: Arrivals, others: OthersQuestion | undefined): OnArrival {
  const held = marksOf(worker, arrivals, others)
  const on: OnArrival = { worker, arrivals, abort: worker.stop, held: { ...held, adopt: (one) => adopt(on, one) } }
  return on
}

async function runAll(on: OnArrival): Promise<void> {
  const { queue } = on.held
  while (queue.length > 0 && !isOver(on)) {
    if (mayHaveKilled(queue[0]!)) await runRedelivered(on)
    else await runNext(on)
    await judgeOthers(on)
  }
}

function mayHaveKilled({ suspect, problem }: Arrival): boolean {
  return suspect && problem === undefined
}

/**
 * The head of the queue may have killed its last worker. With those behind it that nobody knows it shares a claim, so that they
 * are told apart should that happen once more; by itself it runs otherwise. Adopting one leaves a row behind, so that what is known
 * is told before.
 */
async function runRedelivered(on: OnArrival): Promise<void> {
  const { worker, held, arrivals } = on
  const arrival = held.queue[0]!
  const end = held.queue.findIndex((one) => !mayHaveKilled(one))
  const some = held.queue.slice(0, Math.min(held.atOnce(worker.pace), end < 0 ? held.queue.length : end))
  const ran = some.length > 1 ? await runUnknown(worker, some) : undefined
  for (const [one, answer] of ran ?? []) {
    if (answer) arrivals.answer(one, answer)
    else held.leaveToOthers(one)
  }
  if (ran && ran.size > 0) return
  const [answer] = await judge(on, [arrival])
  if (answer) on.arrivals.answer(arrival, answer)
  else await adopt(on, arrival)
}

async function adopt({ worker, held, arrivals }: OnArrival, arrival: Arrival): Promise<void> {
  const answer = await runAdopted(worker, arrival)
  if (answer) arrivals.answer(arrival, answer)
  else held.leaveToOthers(arrival)
}

/** A box that stops starts nothing. */
function isOver({ worker, abort }: OnArrival): boolean {
  return worker.stopping() || abort.aborted !== undefined
}

/** What is not ours is judged together, with a fresh view; one by one where its fate is open. */
async function judgeOthers(on: OnArrival): Promise<void> {
  const others = on.held.takeOthers()
  const answers = await judge(on, others)
  for (const [at, arrival] of others.entries()) {
    const answer = answers[at]
    if (answer) on.arrivals.answer(arrival, answer)
    else await waitFor(on, arrival)
  }
}

async function judge({ worker }: OnArrival, arrivals: readonly Arrival[]): Promise<(Ackable | undefined)[]> {
  if (arrivals.length === 0) return []
  const horizon = horizonOf(worker.consumer)
  return judgeKnown(
    worker.runtime,
    arrivals.map(({ prepared }) => prepared),
    { horizon },
  )
}

/** Waits a little for a copy that is in flight elsewhere. */
async function waitFor(on: OnArrival, arrival: Arrival): Promise<void> {
  const { held, arrivals, worker } = on
  const end = performance.now() + BUSY_WAIT_MS
  for (let attempt = 0; !isOver(on) && performance.now() < end; attempt++) {
    held.queue.push(arrival)
    await (arrival.suspect ? adopt(on, arrival) : runAlone(on, arrival))
    const [answer] = await judge(on, held.takeOthers())
    if (answer) arrivals.answer(arrival, answer)
    if (arrivals.has(arrival)) return
    await sleep(backoffMs(attempt, 5, 100))
  }
  arrivals.answer(arrival, busy(worker.consumer.name))
}
