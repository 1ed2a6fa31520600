/**
 * One call of `publish`: requests one after the other, and an answer for each event.
 *
 * An answer of the broker is for a whole request. If it refuses one, the request is cut in halves until the message is found;
 * the others are sent, some of them a second time. What is sent twice has one id, and the inbox at the other end drops it.
 */
import { OnceboxError } from '../../errors.js'
import type { Message } from '../../message.js'
import { enoughOf, later, NO_PLACE_MS, untried, type Answer } from '../send.js'
import type { PublishLimits, Refusal } from '../sink.js'
import type { ForTopic, KafkaRecord } from './client.js'
import { refusalOf } from './errors.js'
import { toRecord } from './message.js'
import type { ResolvedSink } from './options.js'
import type { LazyProducer } from './producer.js'

/** An event on its way, or what kept it from becoming a record. */
type Outgoing =
  { readonly topic: string; readonly record: KafkaRecord; readonly bytes: number } | { readonly error: unknown }

/** Of a request. A broker takes a batch of 1 MiB per partition unless it is told otherwise. */
const REQUEST_BYTES = 768 * 1024
/** What a record takes beside its key, its value and its headers, and a header beside its name and value. */
const RECORD_BYTES = 32

export class Publication {
  readonly #options: ResolvedSink
  readonly #producer: LazyProducer
  readonly #limits: PublishLimits | undefined
  readonly #enough: ReturnType<typeof enoughOf>
  readonly #batch: readonly Message[]
  readonly #outgoing: readonly Outgoing[]
  /** By position. */
  readonly #answers = new Map<number, Answer>()
  /** Keys of which an event has failed: what comes behind it is not sent. */
  readonly #failedKeys = new Map<string, unknown>()
  readonly #refusedTopics = new Map<string, unknown>()

  constructor(
    batch: readonly Message[],
    options: ResolvedSink,
    producer: LazyProducer,
    limits: PublishLimits | undefined,
  ) {
    this.#options = options
    this.#producer = producer
    this.#limits = limits
    this.#enough = enoughOf(limits)
    this.#batch = batch
    this.#outgoing = batch.map((message) => toOutgoing(message, options))
  }

  async run(): Promise<Answer[]> {
    try {
      for (const positions of inRequests(this.#outgoing)) await this.#send(positions)
    } catch (error) {
      if (this.#answers.size === 0) throw error
      // Some have their answer; the others wait for the broker.
      return this.#batch.map((_, at) => (this.#answers.has(at) ? this.#answers.get(at) : untried(error)))
    }
    return this.#batch.map((_, at) => this.#answers.get(at))
  }

  /** Sends those of them that may be sent, in one request, or in halves. */
  async #send(positions: readonly number[]): Promise<void> {
    const free = positions.filter((at) => this.#isFree(at))
    if (free.length === 0) return
    const slow = this.#enough()
    if (slow) throw slow.error
    try {
      const messages = byTopic(free.map((at) => this.#outgoing[at]!))
      await this.#producer.post(messages, this.#limits, () => this.#enough() !== undefined)
      for (const at of free) this.#answers.set(at, undefined)
    } catch (error) {
      const refusal = refusalOf(error)
      if (refusal === undefined) throw error
      // There is no other topic: nobody's attempt counts while it is missing.
      if (refusal === 'topic' && typeof this.#options.topic === 'string') throw error
      if (free.length === 1) return this.#refuse(free[0]!, refusal, error)
      const half = Math.ceil(free.length / 2)
      await this.#send(free.slice(0, half))
      await this.#send(free.slice(half))
    }
  }

  /** Whether it may be sent: it could be written, its topic takes messages, and none of its key has failed. */
  #isFree(at: number): boolean {
    const one = this.#outgoing[at]!
    const { key } = this.#batch[at]!
    if (key !== undefined && this.#failedKeys.has(key)) this.#fail(at, untried(this.#failedKeys.get(key)))
    else if ('error' in one) this.#fail(at, { error: one.error, retry: false })
    else if (this.#refusedTopics.has(one.topic)) this.#fail(at, later(this.#refusedTopics.get(one.topic), NO_PLACE_MS))
    else return true
    return false
  }

  #refuse(at: number, refusal: NonNullable<ReturnType<typeof refusalOf>>, error: unknown): void {
    const one = this.#outgoing[at]!
    if (refusal === 'topic' && 'topic' in one) this.#refusedTopics.set(one.topic, error)
    this.#fail(at, refusal === 'topic' ? later(error, NO_PLACE_MS) : { error, retry: false })
  }

  #fail(at: number, refusal: Refusal): void {
    this.#answers.set(at, refusal)
    const { key } = this.#batch[at]!
    if (key !== undefined && !this.#failedKeys.has(key)) this.#failedKeys.set(key, refusal.error)
  }
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

function byTopic(outgoing: readonly Outgoing[]): ForTopic[] {
  const topics = new Map<string, KafkaRecord[]>()
  for (const one of outgoing) {
    if ('error' in one) continue
    const messages = topics.get(one.topic)
    if (messages) messages.push(one.record)
    else topics.set(one.topic, [one.record])
  }
  return [...topics].map(([topic, messages]) => ({ topic, messages }))
}
