/** Readers: whatever a broker hands out, and whatever the user's functions do with it, the answer is a message. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Incoming } from 'oncebox'
import { sqsLambda } from 'oncebox/sqs'
import { toMessage as readKafka } from '../../src/brokers/kafka/message.js'
import { readMessage as readNats } from '../../src/brokers/nats/event.js'
import { toMessage as readRabbit } from '../../src/brokers/rabbitmq/event.js'
import { readEntry as readRedis } from '../../src/brokers/redis/event.js'
import { readMessage as readSqs } from '../../src/brokers/sqs/event.js'
import { toMessage as readWebhook } from '../../src/brokers/webhook/event.js'
import { resolveSource as resolveWebhook } from '../../src/brokers/webhook/options.js'
import { hostileEvents, judge } from '../../src/testing/broker/hostile-events.js'
import type { RawMessage } from '../../src/testing/broker/bench.js'

/** `ONCEBOX_FUZZ=10000` is the long form. */
const RUNS = Number(process.env['ONCEBOX_FUZZ'] ?? 500)

interface Reader {
  readonly prefix: string
  /** A message in the shape of the broker's client. */
  raw(message: RawMessage): object
  read(raw: never, options: object): Incoming | Promise<Incoming>
}

const READERS: Readonly<Record<string, Reader>> = {
  kafka: {
    prefix: 'ce_',
    raw: ({ headers, body, key }) => ({
      topic: 'orders',
      partition: 0,
      message: { key: key ?? null, value: Buffer.from(body), headers, offset: '7', timestamp: '1767225600000' },
    }),
    read: (raw, options) => readKafka(raw, options, false),
  },
  nats: {
    prefix: 'ce-',
    raw: ({ headers, body }) => ({
      ...{ data: Buffer.from(body), subject: 'orders', seq: 7, timestampNanos: 1n, time: new Date(0) },
      headers: Object.entries(headers).map(([name, value]) => [name, [value]]),
      info: { stream: 'orders', deliveryCount: 1 },
    }),
    read: (raw, { key, ...read }: { key?: unknown }) => readNats(raw, { ...read, key } as never),
  },
  rabbitmq: {
    prefix: 'cloudEvents_',
    raw({ headers: { 'content-type': contentType, ...headers }, body, id }) {
      const fields = { deliveryTag: 1, redelivered: false, exchange: '', routingKey: 'orders' }
      return { content: Buffer.from(body), fields, properties: { headers, contentType, messageId: id } }
    },
    read: (raw, read) => readRabbit(raw, { queue: 'orders', ...read } as never),
  },
  redis: {
    prefix: 'ce_',
    raw({ headers, body }) {
      const fields = Object.entries({ ...headers, data: body }).map(([name, value]) => [name, Buffer.from(value)])
      return { id: '1767225600000-0', stream: 'orders', fields: Object.fromEntries(fields) as object }
    },
    read: (raw, read) => readRedis(raw, false, read as never),
  },
  sqs: {
    prefix: 'ce_',
    raw({ headers, body }) {
      const attributes = Object.entries(headers).map(([name, value]) => [name, { StringValue: value }])
      const MessageAttributes = Object.fromEntries(attributes) as object
      return {
        MessageId: 'm',
        ReceiptHandle: 'r',
        Body: Buffer.from(body).toString(),
        Attributes: {},
        MessageAttributes,
      }
    },
    read: (raw, options) => readSqs(raw, { ...options, queueUrl: 'http://localhost/0/orders', fifo: false }),
  },
  lambda: {
    prefix: 'ce_',
    raw({ headers, body }) {
      const attributes = Object.entries(headers).map(([name, value]) => [name, { stringValue: value }])
      return {
        ...{ messageId: 'm', receiptHandle: 'r', body: Buffer.from(body).toString(), attributes: {} },
        messageAttributes: Object.fromEntries(attributes) as object,
        eventSourceARN: 'arn:aws:sqs:eu-west-1:0:orders',
      }
    },
    async read(raw, { key: _, ...options }: { key?: unknown }) {
      const lambda = sqsLambda(options)
      const got: Incoming[] = []
      await lambda.start(async (batch) => {
        got.push(...batch)
        return batch.map(({ id }) => ({ id, ack: true, status: 'stored', consumers: [] }))
      })
      expect(await lambda.handle({ Records: [raw] })).toEqual({ batchItemFailures: [] })
      return got[0]!
    },
  },
  webhook: {
    prefix: 'ce-',
    raw: ({ body }) => ({ body: Buffer.from(body), id: 'w' }),
    read(signed, { codec: _, key: __, ...options }: { codec?: unknown; key?: unknown }) {
      const resolved = resolveWebhook({
        scheme: 'standard',
        secret: 'whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0',
        ...options,
      })
      const request = new Request('http://localhost/', { method: 'POST', headers: { a: 'b' } })
      return readWebhook(resolved, request, signed, () => undefined)
    },
  },
}

const revoked = Proxy.revocable({}, {})
revoked.revoke()
const refuse = (): never => {
  throw new Error('a trap')
}
const trapped = new Proxy(
  {},
  { get: refuse, has: refuse, ownKeys: refuse, getPrototypeOf: refuse, getOwnPropertyDescriptor: refuse },
)
const cyclic: unknown[] = []
cyclic.push(cyclic)
let deep: unknown = 1
for (let depth = 0; depth < 100_000; depth++) deep = [deep]

/** Values that bite whoever looks at them, in one way or another. */
const THINGS: Readonly<Record<string, () => unknown>> = {
  undefined: () => undefined,
  null: () => null,
  'a symbol': () => Symbol('s'),
  'a big integer': () => 1n,
  'not a number': () => NaN,
  'a lone surrogate': () => '\ud800',
  NUL: () => '\0',
  'an endless text': () => 'x'.repeat(1_100_000),
  'a function': () => refuse,
  'a revoked proxy': () => revoked.proxy,
  'a proxy whose traps throw': () => trapped,
  'an object without a prototype': () => Object.create(null) as object,
  'an object that cannot be text': () => ({ toString: refuse, valueOf: refuse, [Symbol.toPrimitive]: refuse }),
  'an object that cannot be JSON': () => ({ toJSON: refuse }),
  'an object that is JSON once': () => {
    let times = 0
    return { toJSON: () => (times++ === 0 ? 1 : refuse()) }
  },
  'an object whose properties throw': () =>
    Object.defineProperties(
      {},
      Object.fromEntries(['id', 'then', 'message', 'body'].map((name) => [name, { get: refuse, enumerable: true }])),
    ),
  'a cycle': () => cyclic,
  'something deep': () => deep,
  'a thenable that throws': () => ({ then: refuse }),
  'an error that cannot be read': () =>
    Object.create(Error.prototype, {
      message: { get: refuse },
      name: { get: refuse },
      stack: { get: refuse },
    }) as object,
  'an error caused by itself': () => {
    const error = new Error('x')
    error.cause = error
    return error
  },
  'a stack overflow': () => new RangeError('Maximum call stack size exceeded'),
  'a proxy of bytes': () => new Proxy(new Uint8Array(3), {}),
  'a proxy of a date': () => new Proxy(new Date(), {}),
}

const rejected = (): Promise<never> => Promise.reject(new Error('nobody waits'))

const good: RawMessage = { headers: { 'content-type': 'application/json' }, body: '{"n":1}', id: 'b' }

describe.for(Object.entries(READERS))('%s', ([name, reader]) => {
  const read = async (message: RawMessage, options: object = {}): Promise<Incoming> =>
    reader.read(reader.raw(message) as never, options)

  test('reads each hostile event right, or as one for the quarantine', async () => {
    for (const event of hostileEvents(reader.prefix)) {
      // Webhooks take events by their bodies, and these two carry text.
      if (name === 'webhook' && event.headers['content-type'] !== 'application/cloudevents+json') continue
      if (event.binary && (name === 'sqs' || name === 'lambda')) continue
      const { status, body } = await judge(await read(event))
      // Under standard webhooks, what is not an event by its four members is known by the header.
      if (event.ends !== 'either' && name !== 'webhook') expect(status, event.what).toBe(event.ends)
      if (event.data !== undefined && name !== 'webhook') expect(body, event.what).toBe(event.data)
    }
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
  })

  test.for(['map', 'type', 'key', 'codec'])('survives a %s that throws or returns anything', async (option) => {
    for (const [what, thing] of Object.entries({ ...THINGS, 'a rejected promise': rejected })) {
      const throwing = (): never => {
        throw what === 'a rejected promise' ? 'text' : thing()
      }
      for (const run of [throwing, thing]) {
        const codec = { contentType: 'application/x', decode: run, encode: () => new Uint8Array() }
        const message = await read(good, option === 'codec' ? { codec } : { [option]: run })
        const { status, body } = await judge(message)
        if (option === 'map') expect([what, status]).toEqual([what, 'quarantined'])
        // Kept with its bytes, whatever became of it.
        if (run === throwing) expect([what, body]).toEqual([what, '{"n":1}'])
      }
    }
  })

  test('survives a map that returns a message of anything', async () => {
    for (const [what, thing] of Object.entries(THINGS)) {
      for (const field of [
        'id',
        'type',
        'source',
        'key',
        'subject',
        'time',
        'headers',
        'body',
        'data',
        'stray',
        'in',
      ]) {
        const inside = { headers: { a: thing() }, data: { a: thing() } }
        const map = (): unknown => ({ id: '1', type: 't', ...(field === 'in' ? inside : { [field]: thing() }) })
        await judge(await read(good, { map })).catch((error: unknown) => {
          throw new Error(`${what} as ${field}`, { cause: error })
        })
      }
    }
  })

  test('survives a client that hands out anything', async () => {
    const raw = reader.raw(good) as Record<string, unknown>
    for (const [what, thing] of Object.entries(THINGS)) {
      if (what === 'an endless text') continue
      const places = [(): unknown => thing(), ...Object.keys(raw).map((field) => () => ({ ...raw, [field]: thing() }))]
      for (const [at, place] of places.entries()) {
        const reading = async (): Promise<Incoming> => reader.read(place() as never, {})
        const message = await reading().catch((error: unknown) => {
          throw new Error(`${what} at ${at}`, { cause: error })
        })
        expect(typeof message).toBe('object')
      }
    }
  })

  test(`never throws, and what it answers can be stored: ${RUNS} at random`, { timeout: 600_000 }, async () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 20 }),
      fc.constantFrom('', '1.0', '%ff', '"', '__proto__', '\0', '\ud800', '{}', 'null', '-1', '1e400', '9'.repeat(30)),
    )
    const names = [
      'specversion',
      'id',
      'type',
      'source',
      'time',
      'subject',
      'partitionkey',
      'datacontenttype',
      'onceboxheaders',
    ]
    const attribute = fc.oneof(
      fc.constantFrom(...names).map((one) => `${reader.prefix}${one}`),
      fc.constantFrom(
        'content-type',
        'x-death',
        'x-delivery-count',
        'key',
        'id',
        'type',
        'nats-msg-id',
        'content-encoding',
      ),
      text,
    )
    const contentType = fc.constantFrom(
      'application/json',
      'application/cloudevents+json',
      'text/plain',
      'application/xml',
      'a/b',
    )
    const members = fc.dictionary(
      fc.oneof(fc.constantFrom(...names, 'data', 'data_base64'), text),
      fc.anything({ withBigInt: false }),
    )
    const document = members.map((own) => safeJson({ specversion: '1.0', id: '1', source: 's', type: 't', ...own }))
    const body = fc.oneof(document, fc.json(), text, fc.uint8Array({ maxLength: 50 }))
    const message = fc.record({
      headers: fc
        .tuple(fc.dictionary(attribute, text, { maxKeys: 8 }), contentType, fc.boolean())
        .map(([own, type, versioned]) => ({
          'content-type': type,
          ...(versioned && { [`${reader.prefix}specversion`]: '1.0' }),
          ...own,
        })),
      body,
    })
    await fc.assert(
      fc.asyncProperty(message, async (one) => {
        const { status } = await judge(await read(one))
        expect(['stored', 'quarantined']).toContain(status)
      }),
      { numRuns: RUNS, endOnFailure: true },
    )
  })
})

function safeJson(value: unknown): string {
  try {
    return JSON.stringify(value)
  } catch {
    return '{}'
  }
}
