import { sharedByCopies } from '../copies.js'
import { OnceboxError } from '../errors.js'
import type { Message } from '../message.js'
import { lanesOf } from './lanes.js'
import type { PublishLimits, Refusal, Sink } from './sink.js'

export type Answer = Awaited<ReturnType<Sink['publish']>>[number]

/** How long an event waits that its destination has no place for at present: no route to it, a queue that is full. */
export const NO_PLACE_MS = 5_000

/** The destination may be to blame, or this event: that shows by what becomes of others. */
export function down(error: unknown): Refusal {
  return { error, retry: true, down: true }
}

/** The event is not to blame, whatever becomes of others. */
export function later(error: unknown, afterMs: number): Refusal {
  return { error, retry: true, down: true, afterMs }
}

/** Nothing was sent, so there is nothing to judge. */
export function untried(error: unknown): Refusal {
  return { error, retry: true, afterMs: 0 }
}

/**
 * Answers with a function that says why nothing more is to be begun, once half of the time is over: what is on its way has
 * the other half to end. A batch that took longer than it may would be published again while it is still on its way.
 */
export function enoughOf(limits: PublishLimits | undefined): () => { readonly error: unknown } | undefined {
  if (!limits) return () => undefined
  const { timeoutMs, signal } = limits
  const until = performance.now() + timeoutMs / 2
  const what = 'the destination is slow: the rest of the batch goes next time'
  return () =>
    signal.aborted || performance.now() > until ? { error: new OnceboxError('PUBLISH_TIMEOUT', what) } : undefined
}

/** What `work` comes to, unless the time of the call is over before. Then `work` is left alone: it must publish nothing. */
export function inTimeOf<T>(limits: PublishLimits | undefined, work: Promise<T>): Promise<T> {
  if (!limits) return work
  const { signal } = limits
  return new Promise((resolve, reject) => {
    const end = (): void => reject(signal.reason as Error)
    if (signal.aborted) end()
    signal.addEventListener('abort', end)
    void work.then(resolve, reject).finally(() => signal.removeEventListener('abort', end))
  })
}

/** So many refusals in a row that are the destination's, and no more is begun: at once if they take long. */
const IN_A_ROW = 4
const MOST_IN_A_ROW = 64
const AT_ONCE_MS = 1_000

/**
 * Sends a batch: the messages of one key one after the other, and none after one that failed; the others side by side.
 *
 * `send` answers for one message. It throws if the broker cannot be reached: then nothing more is begun, and if no
 * message had an answer yet, the batch as a whole comes back. Nor is more begun after a row of answers that the
 * destination is down, or when half of the time is over. What was not begun is not tried.
 */
export async function sendInLanes(
  batch: readonly Message[],
  concurrency: number,
  send: (message: Message) => Promise<Answer>,
  limits?: PublishLimits,
): Promise<Answer[]> {
  const answers = new Array<Answer>(batch.length).fill(undefined)
  // In random order: a row of events that the destination always fails on must not be the only ones that are ever tried.
  const lanes = shuffle(lanesOf(batch))
  const since = performance.now()
  const enough = enoughOf(limits)
  let answered = false
  let row = 0
  let lost: { error: unknown } | undefined

  const note = (answer: Answer): void => {
    row = answer?.down ? row + 1 : 0
    if (row >= MOST_IN_A_ROW || (row >= IN_A_ROW && performance.now() - since > AT_ONCE_MS)) lost ??= answer
  }
  const runLane = async (lane: readonly number[]): Promise<void> => {
    let failed: { error: unknown } | undefined
    for (const at of lane) {
      const before = failed ?? lost ?? enough()
      if (before) {
        answers[at] = untried(before.error)
        continue
      }
      try {
        failed = answers[at] = await send(batch[at]!)
        answered = true
        note(answers[at])
      } catch (error) {
        failed = lost = { error }
        answers[at] = down(error)
      }
    }
  }
  const work = async (): Promise<void> => {
    for (let lane = lanes.shift(); lane; lane = lanes.shift()) await runLane(lane)
  }
  await Promise.all(Array.from({ length: Math.min(concurrency, lanes.length) }, work))
  if (lost && !answered) throw lost.error
  return answers
}

export function shuffle<T>(list: T[]): T[] {
  for (let at = list.length - 1; at > 0; at--) {
    const other = Math.floor(Math.random() * (at + 1))
    ;[list[at], list[other]] = [list[other]!, list[at]!]
  }
  return list
}

/** Errors of adapters, which throw for nothing but a destination that cannot be reached or used. */
const ofTheDestination = sharedByCopies('errors-of-destinations', () => new WeakSet<object>())

/** True if an adapter has said that this is no event's fault. */
export function isOfTheDestination(error: unknown): boolean {
  return typeof error === 'object' && error !== null && ofTheDestination.has(error)
}

/** Passes on what an adapter throws, and vouches for it. */
export function fromTheDestination(error: unknown): never {
  if (typeof error === 'object' && error !== null) ofTheDestination.add(error)
  throw error
}

/** A sink whose `close` is handed a promise that resolves when the batches under way are through. */
export function createClosable(
  name: string | undefined,
  publish: Sink['publish'],
  close: (finished: Promise<unknown>) => Promise<void>,
): Sink & { readonly name?: string } {
  const batches = new Set<Promise<unknown>>()
  return {
    ...(name !== undefined && { name }),
    publish(batch, limits) {
      const publishing = publish(batch, limits).catch(fromTheDestination)
      batches.add(publishing)
      return publishing.finally(() => batches.delete(publishing))
    },
    close: () => close(Promise.allSettled([...batches])),
  }
}
