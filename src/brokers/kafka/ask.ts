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

/** Never rejects. Answers what was in the way, if anything. */
export async function ask(client: KafkaClient, question: (admin: KafkaAdmin) => Promise<void>): Promise<unknown> {
  const admin = client.admin?.()
  if (!admin) return new Error('the client has no admin()')
  try {
    await within(
      ANSWER_MS,
      admin.connect().then(() => question(admin)),
      () => new Error('no answer'),
    )
    return undefined
  } catch (error) {
    // It may not be allowed, or the broker is away: who joins will hear of that.
    return error
  } finally {
    await sleep(
      CLOSE_MS,
      admin.disconnect().catch(() => undefined),
    )
  }
}

/** By partition. */
export async function logsOf(admin: KafkaAdmin, topic: string): Promise<Map<number, Log>> {
  const offsets = await admin.fetchTopicOffsets(topic)
  return new Map(offsets.map(({ partition, low, high }) => [partition, { low: BigInt(low), high: BigInt(high) }]))
}
