/** The producer of a sink: connected when there is something to send, and another one after a failure that it may remember. */
import { within } from '../../backoff.js'
import { inTimeOf } from '../send.js'
import type { PublishLimits } from '../sink.js'
import { createProducer, send, type ForTopic, type KafkaProducer } from './client.js'
import { refusalOf } from './errors.js'
import type { ResolvedSink } from './options.js'

export interface LazyProducer {
  /** Resolves when all in-sync replicas have them. */
  post(topicMessages: ForTopic[], limits: PublishLimits | undefined): Promise<void>
  disconnect(): Promise<void>
}

export function createLazyProducer(options: ResolvedSink): LazyProducer {
  const { client, timeoutMs, idempotent } = options
  let connecting: Promise<KafkaProducer> | undefined

  const disconnect = async (): Promise<void> => {
    const old = connecting
    connecting = undefined
    await old?.then((producer) => producer.disconnect()).catch(() => undefined)
  }

  const inTime = <T>(limits: PublishLimits | undefined, work: Promise<T>): Promise<T> =>
    within(timeoutMs, inTimeOf(limits, work), () =>
      Object.assign(new Error(`kafka: no answer in ${timeoutMs} ms`), { code: 'ETIMEDOUT' }),
    )

  return {
    async post(topicMessages, limits) {
      let isOpen = false
      try {
        const producer = await inTime(limits, (connecting ??= connect(options)))
        isOpen = true
        await inTime(limits, send(client, producer, topicMessages, timeoutMs))
      } catch (error) {
        // What is slow to open is there next time.
        if (!isOpen && limits?.signal.aborted) throw error
        // Under idempotence kafkajs numbers the next records like those that failed, some of which may have arrived: the
        // broker would take the next ones for repetitions, and drop them. A new producer counts anew.
        if (idempotent || refusalOf(error) === undefined) void disconnect()
        throw error
      }
    },
    disconnect,
  }
}

async function connect(options: ResolvedSink): Promise<KafkaProducer> {
  const producer = createProducer(options.client, options)
  try {
    await producer.connect()
  } catch (error) {
    await producer.disconnect().catch(() => undefined)
    throw error
  }
  return producer
}
