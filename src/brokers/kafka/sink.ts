/**
 * Kafka as a sink: events go out in order, in requests that a broker takes with its default settings.
 *
 * An answer is for a whole request. If a broker refuses one, it is cut in halves until the message is found; the others
 * are sent, some of them a second time. What is sent twice has one id, and the inbox at the other end drops it.
 */
import { within } from '../../backoff.js'
import { OnceboxError } from '../../errors.js'
import { createTurns } from '../../in-turn.js'
import type { Message } from '../../message.js'
import { enoughOf, fromTheDestination, inTimeOf, later, NO_PLACE_MS, untried, type Answer } from '../send.js'
import type { PublishLimits, Refusal, Sink } from '../sink.js'
import { createProducer, send, type KafkaProducer, type KafkaRecord } from './client.js'
import { refusalOf } from './errors.js'
import { toRecord } from './message.js'
import type { ResolvedSink } from './options.js'

/** An event on its way, or what kept it from becoming a record. */
type Outgoing =
  { readonly topic: string; readonly record: KafkaRecord; readonly bytes: number } | { readonly error: unknown }

/** Of a request. A broker takes a batch of 1 MiB per partition unless it is told otherwise. */
const REQUEST_BYTES = 768 * 1024
/** What a record takes beside its key, its value and its headers, and a header beside its name and value. */
const RECORD_BYTES = 32

export function createSink(options: ResolvedSink): Sink & { readonly name?: string } {
  const { client, timeoutMs } = options
  let connecting: Promise<KafkaProducer> | undefined
  /** One request at a time: a second one could overtake the first, when that is sent again. */
  const inTurn = createTurns()

  const connect = async (): Promise<KafkaProducer> => {
    const producer = createProducer(client, options)
    try {
      await producer.connect()
    } catch (error) {
      await producer.disconnect().catch(() => undefined)
      throw error
    }
    return producer
  }

  const disconnect = async (): Promise<void> => {
    const old = connecting
    connecting = undefined
    await old?.then((producer) => producer.disconnect()).catch(() => undefined)
  }

  const inTime = <T>(limits: PublishLimits | undefined, work: Promise<T>): Promise<T> =>
    within(timeoutMs, inTimeOf(limits, work), () =>
      Object.assign(new Error(`kafka: no answer in ${timeoutMs} ms`), { code: 'ETIMEDOUT' }),
    )

  const post = async (outgoing: readonly Outgoing[], limits: PublishLimits | undefined): Promise<void> => {
    let isOpen = false
    try {
      const producer = await inTime(limits, (connecting ??= connect()))
      isOpen = true
      await inTime(limits, send(client, producer, byTopic(outgoing), timeoutMs))
    } catch (error) {
      // What is slow to open is there next time.
      if (!isOpen && limits?.signal.aborted) throw error
      // Under idempotence kafkajs numbers the next records like those that failed, some of which may have arrived: the
      // broker would take the next ones for repetitions, and drop them. A new producer counts anew.
      if (options.idempotent || refusalOf(error) === undefined) void disconnect()
      throw error
    }
  }

  const publish = async (batch: readonly Message[], limits?: PublishLimits): Promise<Answer[]> => {
    const enough = enoughOf(limits)
    const outgoing = batch.map((message) => toOutgoing(message, options))
    const answers = new Map<number, Answer>()
    const failedKeys = new Map<string, unknown>()
    const refusedTopics = new Map<string, unknown>()

    const fail = (at: number, refusal: Refusal): void => {
      answers.set(at, refusal)
      const { key } = batch[at]!
      if (key !== undefined && !failedKeys.has(key)) failedKeys.set(key, refusal.error)
    }
    /** Whether it may be sent: it could be written, its topic takes messages, and none of its key has failed. */
    const isFree = (at: number): boolean => {
      const one = outgoing[at]!
      const { key } = batch[at]!
      if (key !== undefined && failedKeys.has(key)) fail(at, untried(failedKeys.get(key)))
      else if ('error' in one) fail(at, { error: one.error, retry: false })
      else if (refusedTopics.has(one.topic)) fail(at, later(refusedTopics.get(one.topic), NO_PLACE_MS))
      else return true
      return false
    }
    const sendAll = async (positions: readonly number[]): Promise<void> => {
      const free = positions.filter(isFree)
      if (free.length === 0) return
      const slow = enough()
      if (slow) throw slow.error
      try {
        await post(
          free.map((at) => outgoing[at]!),
          limits,
        )
        for (const at of free) answers.set(at, undefined)
      } catch (error) {
        const refusal = refusalOf(error)
        if (refusal === undefined) throw error
        // There is no other topic: nobody's attempt counts while it is missing.
        if (refusal === 'topic' && typeof options.topic === 'string') throw error
        if (free.length === 1) {
          const one = outgoing[free[0]!]!
          if (refusal === 'topic' && 'topic' in one) refusedTopics.set(one.topic, error)
          return fail(free[0]!, refusal === 'topic' ? later(error, NO_PLACE_MS) : { error, retry: false })
        }
        const half = Math.ceil(free.length / 2)
        await sendAll(free.slice(0, half))
        await sendAll(free.slice(half))
      }
    }

    try {
      for (const positions of inRequests(outgoing)) await sendAll(positions)
    } catch (error) {
      if (answers.size === 0) throw error
      // Some have their answer; the others wait for the broker.
      return batch.map((_, at) => (answers.has(at) ? answers.get(at) : untried(error)))
    }
    return batch.map((_, at) => answers.get(at))
  }

  const sink: Sink & { name?: string } = {
    publish: (batch, limits) => inTurn(() => publish(batch, limits)).catch(fromTheDestination),
    close: () => inTurn(disconnect),
  }
  if (options.name !== undefined) sink.name = options.name
  return sink
}

/** A codec or a topic function that throws will do so again. */
function toOutgoing(message: Message, options: ResolvedSink): Outgoing {
  try {
    const topic = typeof options.topic === 'string' ? options.topic : options.topic(message)
    if (typeof topic !== 'string' || topic === '') {
      throw new OnceboxError('OPTION_INVALID', `kafka: topic(message) must answer a name; got ${String(topic)}`)
    }
    const record = toRecord(message, options)
    const headers = Object.entries(record.headers).reduce((sum, [name, value]) => sum + sizeOf(name) + sizeOf(value), 0)
    return { topic, record, bytes: record.value.length + sizeOf(record.key ?? '') + headers + RECORD_BYTES }
  } catch (error) {
    return { error }
  }
}

function sizeOf(text: string): number {
  return Buffer.byteLength(text) + 4
}

/** Positions, in order, cut where a request would become too large. */
function inRequests(outgoing: readonly Outgoing[]): number[][] {
  const requests: number[][] = []
  let size = Infinity
  outgoing.forEach((one, at) => {
    const bytes = 'bytes' in one ? one.bytes : 0
    if (size + bytes > REQUEST_BYTES) {
      requests.push([])
      size = 0
    }
    requests.at(-1)!.push(at)
    size += bytes
  })
  return requests
}

function byTopic(outgoing: readonly Outgoing[]): { topic: string; messages: KafkaRecord[] }[] {
  const topics = new Map<string, KafkaRecord[]>()
  for (const one of outgoing) {
    if ('error' in one) continue
    const messages = topics.get(one.topic)
    if (messages) messages.push(one.record)
    else topics.set(one.topic, [one.record])
  }
  return [...topics].map(([topic, messages]) => ({ topic, messages }))
}
