/** What the cases of the broker conformance suite work with: a channel of a broker, and a box that is played by hand. */
import assert from 'node:assert/strict'
import type { Sink } from '../../brokers/sink.js'
import type { Deliver, Source } from '../../brokers/source.js'
import type { Incoming, Message, Outcome } from '../../message.js'

/** A message as another producer publishes it, past our sink. */
export interface RawMessage {
  /** `content-type` among them, wherever the broker keeps it. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array | string
  readonly key?: string
  /** Goes to the broker's own field for an id, if it has one. */
  readonly id?: string
}

/** One queue, topic or stream of a real broker, fresh and empty. */
export interface BrokerUnderTest {
  /** With the options of the adapter's own, such as `codec`. */
  source(options?: object): Source
  sink(options?: object): Sink
  /** The same at an address where nobody listens. */
  unreachable(): { source: Source; sink: Sink }
  /** Through the broker's client, past our sink. */
  publish(messages: readonly RawMessage[]): Promise<void>
  /** What the broker has not seen acknowledged: queued and in flight. It may lag. */
  backlog(): Promise<number>
  close(): Promise<void>
}

/** How a channel is to be made, where its broker can be told so. */
export interface ChannelOptions {
  /** After so many deliveries the broker drops a message, or puts it aside. */
  readonly deliveryLimit?: number
  /** What is not acknowledged for so long the broker delivers again, or gives to another. */
  readonly ackMs?: number
}

export interface BrokerCapabilities {
  /** How attributes of CloudEvents in binary mode begin: `ce-`, `ce_`, `cloudEvents_`. Default: 'ce-'. */
  prefix?: string | undefined
  /** The broker keeps an id of its own for what is no CloudEvent. Default false. */
  messageId?: boolean | undefined
  /** What has no id is known by its place in a log, which stays the same. Default false. */
  position?: boolean | undefined
  /** The broker says that it delivered a message before. Default true. */
  redelivered?: boolean | undefined
  /** Messages of one key come in the order in which they were published. Default true. */
  order?: boolean | undefined
  /** Bodies may be any bytes. Default true. */
  binary?: boolean | undefined
  /** Two sources share a channel at once; on a log perhaps only once it is rebalanced. Default true. */
  shared?: boolean | undefined
  /** The largest body that the suite may publish. Default 5 MiB. */
  maxBytes?: number | undefined
  /** A message that waits for its retry holds up no other key; on a log it holds up what is behind it. Default true. */
  independent?: boolean | undefined
  /** How long anything may take: a rebalance, a redelivery. Default 30 000. */
  waitMs?: number | undefined
  /** How long the database is away. Default: `ONCEBOX_OUTAGE_MS` of the environment, else 5 000. */
  outageMs?: number | undefined
}

export type Capabilities = Required<BrokerCapabilities>

/** Adds a case. `needs` decides from the capabilities whether it applies. */
export type Add = (
  name: string,
  run: (bench: BrokerBench) => Promise<void>,
  needs?: (capabilities: Capabilities) => boolean,
  channel?: ChannelOptions,
) => unknown

/** A `deliver` that notes what it was given, and answers as it is told; by default it takes everything. */
export class Recorder {
  readonly batches: (readonly Incoming[])[] = []
  /** In the order of their deliveries, those that came again included. */
  get messages(): Incoming[] {
    return this.batches.flat()
  }
  get ids(): (string | undefined)[] {
    return this.messages.map(({ id }) => id)
  }
  answer: (batch: readonly Incoming[]) => Promise<readonly Outcome[]> = async (batch) => batch.map(taken)

  readonly deliver: Deliver = async (batch) => {
    this.batches.push(batch)
    return this.answer(batch)
  }
}

export function taken({ id }: Incoming): Outcome {
  return { id, ack: true, status: 'stored', consumers: [] }
}

export function busy({ id }: Incoming): Outcome {
  return { id, ack: false, status: 'busy', consumers: [] }
}

/** Its handler has thrown, and its consumer's policy says when to try it again. */
export function failed({ id }: Incoming, retryAt: Date): Outcome {
  const error = { name: 'Error', message: 'the handler has thrown' }
  return {
    id,
    ack: false,
    retryAt,
    status: 'failed',
    error,
    consumers: [{ consumer: 'c', status: 'failed', error, retryAt }],
  }
}

/** The cases' view of a broker. Whatever a case starts is stopped when it ends. */
export class BrokerBench {
  readonly #sources = new Set<Source>()
  readonly #sinks = new Set<Sink>()
  /** What sources have said of their broker: an error, or undefined when it was back. */
  readonly reports: unknown[] = []

  constructor(
    readonly broker: BrokerUnderTest,
    readonly can: Capabilities,
  ) {}

  /** A source that runs. */
  async start(recorder: Recorder, options?: object): Promise<Source> {
    const source = this.broker.source(options)
    this.#sources.add(source)
    await source.start(recorder.deliver, (problem) => void this.reports.push(problem))
    return source
  }

  sink(options?: object): Sink {
    const sink = this.broker.sink(options)
    this.#sinks.add(sink)
    return sink
  }

  /** Publishes through a sink, and expects that all of it is confirmed. */
  async send(messages: readonly Message[], options?: object): Promise<void> {
    const answers = await this.sink(options).publish(messages)
    assert.deepEqual(
      answers,
      messages.map(() => undefined),
    )
  }

  async until(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
    const deadline = performance.now() + this.can.waitMs
    while (!(await condition())) {
      if (performance.now() > deadline) assert.fail(`waited ${this.can.waitMs} ms in vain for ${what}`)
      await pause(20)
    }
  }

  /** Until the broker has seen so many unacknowledged. */
  untilBacklog(count: number): Promise<void> {
    return this.until(async () => (await this.broker.backlog()) === count, `a backlog of ${count}`)
  }

  /** Holds for longer than the broker's figures lag. */
  async stays(condition: () => boolean | Promise<boolean>, what: string, ms = 1_000): Promise<void> {
    const end = performance.now() + ms
    do {
      if (!(await condition())) assert.fail(`it did not stay so: ${what}`)
      await pause(50)
    } while (performance.now() < end)
  }

  async clean(): Promise<void> {
    await Promise.all([...this.#sources].map((source) => source.stop()))
    await Promise.all([...this.#sinks].map((sink) => sink.close()))
  }
}

/** An event, as the relay hands it to a sink. */
export function event(id: string, fields: Partial<Message> = {}): Message {
  return {
    id,
    source: 'shop',
    type: 'order.placed',
    data: { id },
    headers: {},
    receivedAt: new Date(),
    attempt: 1,
    correlationId: id,
    ...fields,
  }
}

/** A CloudEvent of another producer, in binary mode. */
export function rawEvent(prefix: string, id: string, body = JSON.stringify({ id }), key?: string): RawMessage {
  const attributes = { specversion: '1.0', id, source: 'elsewhere', type: 'order.placed' }
  const headers: Record<string, string> = { 'content-type': 'application/json' }
  for (const [name, value] of Object.entries(attributes)) headers[`${prefix}${name}`] = value
  if (key !== undefined) headers[`${prefix}partitionkey`] = key
  return { headers, body, id, ...(key !== undefined && { key }) }
}

/** The data, whichever way it came. */
export function dataOf({ data, body }: Incoming): unknown {
  if (body === undefined) return data
  return JSON.parse(typeof body === 'string' ? body : Buffer.from(body).toString()) as unknown
}

/** Held until it is let go. */
export function gate(): { readonly passed: Promise<void>; open(): void } {
  let open = (): void => undefined
  const passed = new Promise<void>((resolve) => (open = resolve))
  return { passed, open }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
