import type { Message } from '../message.js'
import { lanesOf } from './lanes.js'
import type { Sink } from './sink.js'

export type Answer = Awaited<ReturnType<Sink['publish']>>[number]

/**
 * Sends a batch: the messages of one key one after the other, and none after one that failed; the others side by side.
 *
 * `send` answers for one message. It throws if the broker cannot be reached: then nothing more is begun, and if no
 * message had an answer yet, the batch as a whole comes back, and nobody's attempt is counted.
 */
export async function sendInLanes(
  batch: readonly Message[],
  concurrency: number,
  send: (message: Message) => Promise<Answer>,
): Promise<Answer[]> {
  const answers = new Array<Answer>(batch.length).fill(undefined)
  const lanes = lanesOf(batch)
  let answered = false
  let lost: { error: unknown } | undefined

  const runLane = async (lane: readonly number[]): Promise<void> => {
    let failed: { error: unknown } | undefined
    for (const at of lane) {
      const before = failed ?? lost
      if (before) {
        answers[at] = { error: before.error, retry: true }
        continue
      }
      try {
        failed = answers[at] = await send(batch[at]!)
        answered = true
      } catch (error) {
        failed = lost = { error }
        answers[at] = { error, retry: true }
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

/** A sink whose `close` is handed a promise that resolves when the batches under way are through. */
export function createClosable(
  name: string | undefined,
  publish: Sink['publish'],
  close: (finished: Promise<unknown>) => Promise<void>,
): Sink & { readonly name?: string } {
  const batches = new Set<Promise<unknown>>()
  return {
    ...(name !== undefined && { name }),
    publish(batch) {
      const publishing = publish(batch)
      batches.add(publishing)
      return publishing.finally(() => batches.delete(publishing))
    },
    close: () => close(Promise.allSettled([...batches])),
  }
}
