/** What in the configuration of a stream and its consumer would lose messages, each with the setting to change. */
import type { ConsumerConfig, StreamConfig } from '@nats-io/jetstream'
import type { Warn } from '../source.js'
import type { Connection, FoundConsumer } from './client.js'
import type { ResolvedSource } from './options.js'

/** A process may pause for longer than that: a blocked event loop, a snapshot of its machine. */
const LEAST_ACK_WAIT_MS = 5_000

/** Beside the work: a client without the right to look at the stream waits for an answer in vain, and is told nothing. */
export async function sayWarnings(
  { jsm }: Connection,
  options: ResolvedSource,
  { found, warn }: { found: FoundConsumer; warn: Warn },
): Promise<void> {
  try {
    const { config } = await jsm.streams.info(options.stream)
    for (const text of warningsOf(found.config, config, options)) warn(text)
  } catch {
    // It warns, and fails nothing.
  }
}

function warningsOf(consumer: ConsumerConfig, stream: StreamConfig, { batch }: ResolvedSource): string[] {
  const name = consumer.durable_name ?? consumer.name ?? ''
  const warnings: string[] = []
  const { max_deliver = -1, max_ack_pending = -1, inactive_threshold = 0 } = consumer
  if (max_deliver > 0) {
    warnings.push(
      `NATS drops a message that it has delivered ${max_deliver} times; set max_deliver of the consumer ${name} to -1`,
    )
  }
  const ackWaitMs = Math.min(...[consumer.ack_wait ?? 30e9, ...(consumer.backoff ?? [])]) / 1e6
  if (ackWaitMs < LEAST_ACK_WAIT_MS) {
    warnings.push(
      `NATS delivers again what a process that pauses for ${ackWaitMs} ms holds; set ack_wait of the consumer ${name} to 30 s`,
    )
  }
  // One is the way to strict order, and meant so.
  if (max_ack_pending > 1 && max_ack_pending < 2 * batch) {
    warnings.push(
      `messages that wait for their retry keep others from being delivered; set max_ack_pending of the consumer ${name} to at least ${10 * batch}`,
    )
  }
  if (consumer.durable_name === undefined) {
    warnings.push(`NATS forgets the consumer ${name}, and how far it came, when nobody uses it; make it a durable one`)
  } else if (inactive_threshold > 0) {
    warnings.push(
      `NATS forgets the consumer ${name}, and how far it came, after ${inactive_threshold / 1e9} s without a process; set no inactive_threshold`,
    )
  }
  if (stream.storage === 'memory') {
    warnings.push(`a restart of NATS loses the stream ${stream.name}, which is in memory; set its storage to file`)
  }
  const dropping = limitsOf(stream)
  if (dropping.length > 0) {
    warnings.push(
      `the stream ${stream.name} drops its oldest messages, handled or not, by ${dropping.join(', ')}; allow for the longest outage, or set discard to new`,
    )
  }
  return warnings
}

function limitsOf({ discard, max_msgs, max_bytes, max_msgs_per_subject, max_age }: StreamConfig): string[] {
  const limits = { max_msgs, max_bytes, max_msgs_per_subject }
  const bySize = Object.entries(limits).filter(([, limit]) => discard !== 'new' && limit > 0)
  const all = bySize.map(([name, limit]) => `${name} ${limit}`)
  // Age knows no discard.
  return max_age > 0 ? [...all, `max_age ${max_age / 1e9} s`] : all
}
