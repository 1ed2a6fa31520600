/** What in the configuration of a queue would lose messages, each with the setting to change. */
import { queueName, type Queue } from './client.js'

/** Deliveries that a queue should allow: processes die, and what fails on arrival comes back. */
const LEAST_RECEIVES = 100
const LEAST_RETENTION_SECONDS = 86_400

/** Needs a right that nothing else does: without it nothing is said. */
export async function findWarnings(queueUrl: string, queue: Queue, signal: AbortSignal): Promise<string[]> {
  const names = ['RedrivePolicy', 'MessageRetentionPeriod']
  const { RedrivePolicy, MessageRetentionPeriod } = await queue.attributes(names, signal).catch(() => ({}) as never)
  const name = queueName(queueUrl)
  const warnings: string[] = []
  const most = receivesOf(RedrivePolicy)
  if (most < LEAST_RECEIVES) {
    warnings.push(
      `SQS takes a message out of ${name} when it was received ${most} times, handled or not; set maxReceiveCount of its redrive policy to 1000, or no policy`,
    )
  }
  if (Number(MessageRetentionPeriod) < LEAST_RETENTION_SECONDS) {
    warnings.push(
      `SQS drops messages of ${name} after ${MessageRetentionPeriod} s, handled or not; set its MessageRetentionPeriod to 1209600`,
    )
  }
  return warnings
}

function receivesOf(policy: string | undefined): number {
  try {
    return Number((JSON.parse(policy ?? '{}') as { maxReceiveCount?: unknown }).maxReceiveCount ?? Infinity)
  } catch {
    return Infinity
  }
}
