/** The producer of a sink: connected when there is something to send, and another one after a failure that it may remember. */
import { backoffMs, sleep, within } from '../../backoff.js'
import { inTimeOf } from '../send.js'
import type { PublishLimits } from '../sink.js'
import { createProducer, isKafkajs, send, type ForTopic, type KafkaProducer } from './client.js'
import { isPassing, refusalOf } from './errors.js'
import type { ResolvedSink } from './options.js'

export interface LazyProducer {
  /**
   * Resolves when all in-sync replicas have them. What fails by something that passes is sent again, all of it, unless there
   * was enough by then.
   */
  post(topicMessages: ForTopic[], limits: PublishLimits | undefined, isEnough: () => boolean): Promise<void>
  disconnect(): Promise<void>
}

/** For a partition that moved to another broker. What takes longer is left to the relay, which has a backoff of its own. */
const MOST_TRIES = 3
const LEAST_WAIT_MS = 100
const MOST_WAIT_MS = 1_000

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

  const opened = async (limits: PublishLimits | undefined): Promise<KafkaProducer> => {
    try {
      return await inTime(limits, (connecting ??= connect(options)))
    } catch (error) {
      // What is slow to open is there next time.
      if (!limits?.signal.aborted) void disconnect()
      throw error
    }
  }

  return {
    async post(topicMessages, limits, isEnough) {
      for (let tries = 1; ; tries++) {
        const producer = await opened(limits)
        const sending = send(client, producer, topicMessages, timeoutMs)
        try {
          return await inTime(limits, sending)
        } catch (error) {
          const isRefused = refusalOf(error) !== undefined
          // An idempotent one may have failed for good.
          if (idempotent || !isRefused) {
            void disconnect().then(() => (isKafkajs(client) ? endAfter(sending, producer) : undefined))
          }
          if (isRefused || !isPassing(error) || tries === MOST_TRIES) throw error
          await sleep(backoffMs(tries - 1, LEAST_WAIT_MS, MOST_WAIT_MS))
          if (isEnough()) throw error
        }
      }
    },
    disconnect,
  }
}

/** For a request that fails after nobody waits for it any more, kafkajs connects again, and nobody would end that. */
async function endAfter(sending: Promise<void>, producer: KafkaProducer): Promise<void> {
  await sending.catch(() => undefined)
  await producer.disconnect().catch(() => undefined)
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
