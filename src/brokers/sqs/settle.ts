/** What becomes of messages after their delivery: deleted, or visible again after a while. */
import { backoffMs, sleep } from '../../backoff.js'
import type { Outcome } from '../../message.js'
import { MAX_ENTRIES, type Queue, type Refusal } from './client.js'
import { receiveCount } from './event.js'
import type { Held } from './visibility.js'

const TRIES = 5
/** A failing message comes back after 1, 2, 4 … seconds, and after this at the latest. */
const MOST_SECONDS = 300
/** Unless its consumer asked for more. */
const MOST_ASKED_SECONDS = 3_600

/** Deletes messages. What cannot be deleted comes back, is a duplicate then, and is deleted again. */
export async function remove(queue: Queue, some: readonly Held[]): Promise<void> {
  await insist(some, (chunk) => queue.remove(chunk.map(({ receipt }) => receipt)))
}

/** Makes messages visible again. Where that fails they come back by themselves, when their time is up. */
export async function giveBack(
  queue: Queue,
  some: readonly { readonly held: Held; readonly seconds: number }[],
): Promise<void> {
  await insist(some, (chunk) => queue.hide(chunk.map(({ held: { receipt }, seconds }) => ({ receipt, seconds }))))
}

/** When to deliver it again. Without an outcome the source was stopped. */
export function delaySeconds({ raw }: Held, outcome?: Outcome, now = Date.now()): number {
  if (outcome?.status === 'busy') return 1
  const askedSeconds = Math.ceil(((outcome?.retryAt?.getTime() ?? 0) - now) / 1_000)
  if (askedSeconds > 0) return Math.min(askedSeconds, MOST_ASKED_SECONDS)
  return Math.min(2 ** (Math.max(1, receiveCount(raw)) - 1), MOST_SECONDS)
}

/** Tries again what SQS could not do, a few times. What it will never do, such as use an old receipt, is left. */
async function insist<T>(some: readonly T[], call: (chunk: T[]) => Promise<Refusal[]>): Promise<void> {
  let left = [...some]
  let problem: unknown
  const tryChunk = async (chunk: T[]): Promise<T[]> => {
    try {
      const again = (await call(chunk)).filter(({ error }) => !error.senderFault)
      problem = again[0]?.error ?? problem
      return again.map(({ at }) => chunk[at]!)
    } catch (error) {
      problem = error
      return chunk
    }
  }
  for (let attempt = 0; left.length > 0; attempt++) {
    if (attempt === TRIES) throw problem
    if (attempt > 0) await sleep(backoffMs(attempt - 1, 100, 2_000))
    const chunks: T[][] = []
    for (let at = 0; at < left.length; at += MAX_ENTRIES) chunks.push(left.slice(at, at + MAX_ENTRIES))
    left = (await Promise.all(chunks.map(tryChunk))).flat()
  }
}
