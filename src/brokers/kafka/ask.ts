/** Questions to the broker, by an admin of their own. A broker may not allow them, so none may be needed to go on. */
import { sleep, within } from '../../backoff.js'
import type { KafkaAdmin, KafkaClient } from './client.js'

const ANSWER_MS = 5_000
const CLOSE_MS = 1_000

/** The offsets that a partition has, from the first to the one behind the last. */
export interface Log {
  readonly low: bigint
  readonly high: bigint
}

/** Who asked may have gone on without the answer. It is for then that a question asks whether anybody waits, before it acts. */
export type Question = (admin: KafkaAdmin, isAwaited: () => boolean) => Promise<void>

/** Never rejects. Answers what was in the way, if anything. */
export async function ask(client: KafkaClient, question: Question): Promise<unknown> {
  const admin = client.admin?.()
  if (!admin) return new Error('the client has no admin()')
  let isAwaited = true
  let isOver = false
  const close = (): Promise<void> => admin.disconnect().catch(() => undefined)
  const answering = admin
    .connect()
    .then(() => (isAwaited ? question(admin, () => isAwaited) : undefined))
    .finally(() => (isOver = true))
  try {
    await within(ANSWER_MS, answering, () => new Error('no answer'))
    return undefined
  } catch (error) {
    // It may not be allowed, or the broker is away: who joins will hear of that.
    return error
  } finally {
    isAwaited = false
    // What is still under way may connect again, and nobody would end that connection.
    if (!isOver) void answering.then(close, close)
    await sleep(CLOSE_MS, close())
  }
}

/** By partition. */
export async function logsOf(admin: KafkaAdmin, topic: string): Promise<Map<number, Log>> {
  const offsets = await admin.fetchTopicOffsets(topic)
  return new Map(offsets.map(({ partition, low, high }) => [partition, { low: BigInt(low), high: BigInt(high) }]))
}
