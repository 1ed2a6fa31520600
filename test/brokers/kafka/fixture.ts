/** A Kafka for a test file, and what is delivered from it. */
import { afterAll, beforeAll } from 'vitest'
import type { Incoming, Message, Outcome, Source } from 'oncebox'
import type { Service } from '../../../tools/services/process.mjs'
import * as adapter from './adapter.mjs'

export interface Broker {
  readonly service: Service
  /** librdkafka's mock, for want of the real one. */
  readonly isMock: boolean
  /** A topic and a group of their own. */
  create(): Promise<adapter.Settings>
}

export function useBroker(): Broker {
  let service: Service
  beforeAll(async () => {
    service = await adapter.start()
  }, 300_000)
  afterAll(() => service?.stop())
  return {
    get service() {
      return service
    },
    get isMock() {
      return service.kind === 'mock'
    },
    create: () => adapter.create(service.url),
  }
}

/** A source that runs until the end of the test, and what it delivered. */
export interface Reader {
  readonly batches: readonly (readonly Incoming[])[]
  readonly messages: readonly Incoming[]
  /** What it reported: an error, or undefined when it was back. */
  readonly reports: readonly unknown[]
  stop(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

export type Answer = (batch: readonly Incoming[]) => readonly boolean[] | Promise<readonly boolean[]>

/** Delivers to `answer`, which says for each message whether it may be acknowledged. */
export async function read(source: Source, answer: Answer = (batch) => batch.map(() => true)): Promise<Reader> {
  const batches: (readonly Incoming[])[] = []
  const reports: unknown[] = []
  await source.start(
    async (batch) => {
      batches.push(batch)
      return (await answer(batch)).map((ack, at): Outcome => outcome(batch[at]!.id, ack))
    },
    (problem) => reports.push(problem),
  )
  const stop = (): Promise<void> => source.stop()
  return {
    batches,
    get messages() {
      return batches.flat()
    },
    reports,
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

function outcome(id: string | undefined, ack: boolean): Outcome {
  return { id, ack, status: ack ? 'stored' : 'busy', consumers: [] }
}

/** Texts that say which message they are. */
export function numbered(count: number, key?: (n: number) => string): adapter.Published[] {
  return Array.from({ length: count }, (_, n) => {
    const message = { headers: {}, body: JSON.stringify({ n }) }
    return key ? { ...message, key: key(n) } : message
  })
}

export function numbersOf(messages: readonly Incoming[]): number[] {
  return messages.map(({ body }) => (JSON.parse(Buffer.from(body!).toString()) as { n: number }).n)
}

export function event(id: string, more: Partial<Message> = {}): Message {
  const receivedAt = new Date()
  return {
    id,
    source: 'shop',
    type: 'note',
    data: { id },
    headers: {},
    receivedAt,
    attempt: 1,
    correlationId: id,
    ...more,
  }
}
