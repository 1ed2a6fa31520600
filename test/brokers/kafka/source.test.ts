/** Kafka as a source: what is committed, and when. */
import kafkajs, { type ConsumerConfig, type ConsumerRunConfig } from 'kafkajs'
import { describe, expect, onTestFinished, test, type TestContext } from 'vitest'
import type { Incoming } from 'oncebox'
import { kafka } from 'oncebox/kafka'
import { waitUntil } from '../../support/wait.js'
import { gate, settled } from '../recorder.js'
import { backlog, clientOf, committedOffsets, publish, sink, source, withAdmin, type Settings } from './adapter.mjs'
import { inConfluentShape } from './confluent.js'
import { event, numbered, numbersOf, read, useBroker, type Reader } from './fixture.js'

const broker = useBroker()
const TIMEOUT = { timeout: 300_000 }
const PATIENCE = { timeoutMs: 60_000 }

/** All of them have one key, and so one partition. */
const oneKey = (): string => 'k'

/** The committed offset of the one partition that anything was committed of; 0 if there is none. */
async function committed(settings: Settings): Promise<number> {
  const offsets = [...(await committedOffsets(settings)).values()].filter((offset) => offset > 0)
  expect(offsets.length).toBeLessThan(2)
  return offsets[0] ?? 0
}

const isDone = (settings: Settings) => waitUntil(async () => (await backlog(settings)) === 0, PATIENCE)

const CLIENTS: [string, (settings: Settings) => object][] = [
  ['kafkajs', ({ url }) => clientOf(url)],
  ['Confluent’s shape', ({ url }) => inConfluentShape(clientOf(url))],
]

describe('commits', TIMEOUT, () => {
  test('only what leads the partition without a gap is committed, and what follows the gap is delivered again', async () => {
    const settings = await broker.create()
    await publish(settings, numbered(100, oneKey))
    let refused = 40
    await using reader = await read(source(settings), (batch) => numbersOf(batch).map((n) => n !== refused))
    await waitUntil(() => numbersOf(reader.messages).filter((n) => n === 40).length >= 3, PATIENCE)
    expect(await committed(settings)).toBe(40)
    expect(numbersOf(reader.messages).filter((n) => n === 39)).toHaveLength(1)
    expect(numbersOf(reader.messages).filter((n) => n === 99).length).toBeGreaterThan(1)
    refused = -1
    await isDone(settings)
    expect(await committed(settings)).toBe(100)
  })

  test('if deliver rejects nothing is committed, and it is tried again more and more slowly', async () => {
    const settings = await broker.create()
    await publish(settings, numbered(10, oneKey))
    let away = true
    const times: number[] = []
    await using reader = await read(source(settings), (batch) => {
      times.push(performance.now())
      if (away) throw new Error('the database is away')
      return batch.map(() => true)
    })
    await waitUntil(() => times.length >= 5, PATIENCE)
    // Half of 100, 200, 400 and 800 ms at least.
    expect(times[4]! - times[0]!).toBeGreaterThan(740)
    expect(await backlog(settings)).toBe(10)
    expect(await committed(settings)).toBe(0)
    away = false
    await isDone(settings)
    expect(numbersOf(reader.batches.at(-1)!)).toEqual(Array.from({ length: 10 }, (_, n) => n))
  })

  test('a partition waits until the time that a handler asked for', async () => {
    const settings = await broker.create()
    await publish(settings, numbered(1, oneKey))
    const times: number[] = []
    const own = source(settings)
    onTestFinished(() => own.stop())
    await own.start(async (batch) => {
      times.push(Date.now())
      return batch.map((message) =>
        settled(message, times.length === 1 ? { retryAt: new Date(Date.now() + 3_000) } : undefined),
      )
    })
    await isDone(settings)
    expect(times).toHaveLength(2)
    expect(times[1]! - times[0]!).toBeGreaterThan(2_900)
  })

  test('a partition that waits holds up no other', async () => {
    const settings = await broker.create()
    const keys = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']
    await publish(
      settings,
      numbered(80, (n) => keys[n % keys.length]!),
    )
    let stuck: string | undefined
    const placeOf = ({ id }: Incoming): string => id!.split(':')[1]!
    await using reader = await read(source(settings), (batch) => {
      stuck ??= placeOf(batch[0]!)
      return batch.map((message) => placeOf(message) !== stuck)
    })
    const rest = () => reader.messages.filter((message) => placeOf(message) !== stuck)
    const own = () => new Set(reader.messages.filter((message) => placeOf(message) === stuck).map(({ id }) => id))
    await waitUntil(() => own().size + rest().length === 80, PATIENCE)
    await waitUntil(async () => (await backlog(settings)) === own().size, PATIENCE)
    expect(own().size).toBeGreaterThan(0)
    expect(rest().length).toBeGreaterThan(0)
  })

  test.each(CLIENTS)('a delivery that takes long holds up no other partition, with %s', async (_, clientAt) => {
    const settings = await broker.create()
    const keyed = (n: number): string => `k${n % 12}`
    await publish(settings, numbered(60, keyed))
    const placeOf = ({ id }: Incoming): string => id!.split(':')[1]!
    const { passed, open } = gate()
    onTestFinished(open)
    let slow: string | undefined
    const ended: Incoming[] = []
    await using reader = await read(source(settings, { client: clientAt(settings) }), async (batch) => {
      slow ??= placeOf(batch[0]!)
      if (placeOf(batch[0]!) === slow) await passed
      ended.push(...batch)
      return batch.map(() => true)
    })
    await waitUntil(() => ended.length > 0, PATIENCE)
    // What the client has not fetched yet.
    await publish(settings, numbered(60, keyed))
    const others = () => ended.filter((message) => placeOf(message) !== slow).length
    const left = () => 120 - others()
    const places = await committedOffsets(settings)
    expect(places.has(Number(slow))).toBe(false)
    await waitUntil(async () => left() > 0 && (await backlog(settings)) === left() && others() > 60, PATIENCE)
    expect(ended.every((message) => placeOf(message) !== slow)).toBe(true)
    open()
    await isDone(settings)
    const own = reader.messages
      .filter((message) => placeOf(message) === slow)
      .map(({ id }) => Number(id!.split(':')[2]))
    expect(own).toEqual(Array.from(own, (_, n) => n))
    expect(reader.messages).toHaveLength(120)
  })

  test('no more partitions than its concurrency are at work, and each gets its turn', async () => {
    const settings = await broker.create()
    await publish(
      settings,
      numbered(60, (n) => `k${n % 12}`),
    )
    let inFlight = 0
    let most = 0
    await using reader = await read(source(settings, { concurrency: 1, batch: 5 }), async (batch) => {
      most = Math.max(most, ++inFlight)
      await new Promise((resolve) => setTimeout(resolve, 150))
      inFlight--
      return batch.map(() => true)
    })
    await isDone(settings)
    expect(most).toBe(1)
    expect(reader.messages).toHaveLength(60)
  })

  test('large fetches are delivered in parts, in order, one at a time per partition', async () => {
    const settings = await broker.create()
    await publish(settings, numbered(500, oneKey))
    let inFlight = 0
    await using reader = await read(source(settings, { batch: 30 }), async (batch) => {
      expect(++inFlight).toBe(1)
      await new Promise((resolve) => setImmediate(resolve))
      inFlight--
      return batch.map(() => true)
    })
    await isDone(settings)
    expect(Math.max(...reader.batches.map((batch) => batch.length))).toBe(30)
    expect(numbersOf(reader.messages)).toEqual(Array.from({ length: 500 }, (_, n) => n))
  })
})

describe('the group', TIMEOUT, () => {
  test('stop waits for what is in flight and commits it, and a second start goes on after it', async () => {
    const settings = await broker.create()
    await publish(settings, numbered(10, oneKey))
    const own = source(settings)
    let release = (): void => undefined
    const released = new Promise<void>((resolve) => (release = resolve))
    let begun = false
    const reader = await read(own, async (batch) => {
      begun = true
      await released
      return batch.map(() => true)
    })
    onTestFinished(() => own.stop())
    await waitUntil(() => begun, PATIENCE)
    let stopped = false
    const stopping = own.stop().then(() => (stopped = true))
    await committed(settings)
    expect(stopped).toBe(false)
    release()
    await stopping
    expect(await backlog(settings)).toBe(10 - reader.messages.length)

    await publish(settings, numbered(5, oneKey))
    await using again = await read(own)
    await isDone(settings)
    expect(again.messages.length + reader.messages.length).toBe(15)
  })

  test('a delivery that takes longer than the session keeps its partition, for the heartbeat goes on', async () => {
    const settings = await broker.create()
    await publish(settings, numbered(3, oneKey))
    const sessionMs = settings.consumer['sessionTimeout'] as number
    await using reader = await read(source(settings), async (batch) => {
      await new Promise((resolve) => setTimeout(resolve, sessionMs * 2))
      return batch.map(() => true)
    })
    await isDone(settings)
    expect(numbersOf(reader.messages)).toEqual([0, 1, 2])
    expect(reader.reports).toEqual([])
  })

  test('a second member joins in the middle: nothing is lost, nothing stalls, no offset goes back', async () => {
    const settings = await broker.create()
    const total = 3_000
    await publish(
      settings,
      numbered(total, (n) => `k${n % 60}`),
    )
    const slowly = async (batch: readonly Incoming[]): Promise<boolean[]> => {
      await new Promise((resolve) => setTimeout(resolve, 30))
      return batch.map(() => true)
    }
    const options = { batch: 25 }
    await using first = await read(source(settings, options), slowly)
    await waitUntil(() => first.messages.length > 200, PATIENCE)

    let watching = true
    const highest = new Map<number, number>()
    const watch = (async () => {
      while (watching) {
        for (const [partition, offset] of await committedOffsets(settings)) {
          expect(offset).toBeGreaterThanOrEqual(highest.get(partition) ?? 0)
          highest.set(partition, offset)
        }
      }
    })()
    onTestFinished(() => void (watching = false))
    await using second = await read(source(settings, options), slowly)
    await waitUntil(() => second.messages.length > 0, PATIENCE)
    await isDone(settings)
    watching = false
    await watch
    const seen = new Set(numbersOf([...first.messages, ...second.messages]))
    expect(seen.size).toBe(total)
    expect([...highest.values()].every((offset) => offset > 0)).toBe(true)
    // A member that leaves hands its partitions over, too.
    await second.stop()
    await publish(
      settings,
      numbered(30, (n) => `k${n}`),
    )
    await isDone(settings)
  })

  test('a member that was given up commits nothing any more, and comes back', async () => {
    const settings = await broker.create()
    await publish(settings, numbered(60, oneKey))
    let release = (): void => undefined
    const released = new Promise<void>((resolve) => (release = resolve))
    let held = true
    const frozen = await read(source(settings, { client: hanging(settings, released) }), async (batch) => {
      if (held) await released
      return batch.map(() => true)
    })
    onTestFinished(() => frozen.stop())
    await waitUntil(() => frozen.batches.length > 0, PATIENCE)
    await using other = await read(source(settings))
    await publish(settings, numbered(40, oneKey))
    await isDone(settings)
    expect(await committed(settings)).toBe(100)
    expect(new Set(numbersOf(other.messages)).size).toBe(60)

    const alone = other.messages.length
    held = false
    release()
    await other.stop()
    await publish(settings, numbered(5, oneKey))
    await waitUntil(async () => {
      expect(await committed(settings)).toBeGreaterThanOrEqual(100)
      return (await backlog(settings)) === 0
    }, PATIENCE)
    expect(other.messages.length).toBe(alone)
    expect(frozen.reports.filter((report) => report !== undefined)).toEqual([])
  })
})

describe('a consumer that crashes', TIMEOUT, () => {
  const problems = ({ reports }: Reader): unknown[] => reports.filter((problem) => problem !== undefined)

  test('of a message that it cannot read is made anew more and more slowly, and works when one is delivered', async () => {
    const settings = await broker.create()
    const codecs = kafkajs.CompressionCodecs
    const { GZIP, Snappy } = kafkajs.CompressionTypes
    const gzip = codecs[GZIP] as () => unknown
    const restore = (): unknown => (codecs[GZIP] = gzip)
    onTestFinished(() => void restore())
    const producer = clientOf(settings.url).producer()
    await producer.connect()
    await producer.send({ topic: settings.topic, compression: GZIP, messages: [{ value: '{"n":1}' }] })
    await producer.disconnect()

    // As if it were a codec that kafkajs does not have.
    codecs[GZIP] = codecs[Snappy]
    await using reader = await read(source(settings))
    await waitUntil(() => problems(reader).length > 0, PATIENCE)
    const begun = performance.now()
    await waitUntil(() => problems(reader).length >= 8, PATIENCE)
    expect(reader.reports.map(String)).toEqual(
      Array.from({ length: 8 }, () => expect.stringContaining('compression not implemented') as string),
    )
    // Half of 100, 200, 400, 800, 1 600, 3 200 and 5 000 ms at least.
    expect(performance.now() - begun).toBeGreaterThan(5_600)

    restore()
    await isDone(settings)
    expect(numbersOf(reader.messages)).toEqual([1])
    expect(reader.reports.at(-1)).toBeUndefined()
  })

  test('and then lasts works, also where nothing is to be read', async () => {
    const settings = await broker.create()
    const { client, crash } = crashing(settings)
    await using reader = await read(source(settings, { client }))
    const problem = new Error('crashed')
    crash(problem)
    await waitUntil(() => reader.reports.length > 1, PATIENCE)
    expect(reader.reports).toEqual([problem, undefined])
  })
})

/** A client whose last consumer can be told that it has crashed. */
function crashing({ url }: Settings): { client: object; crash(error: Error): void } {
  const client = clientOf(url)
  let crash: (error: Error) => void = () => undefined
  return {
    crash: (error) => crash(error),
    client: {
      logger: () => client.logger(),
      producer: () => client.producer(),
      consumer(config: ConsumerConfig) {
        const consumer = client.consumer(config)
        const on = (event: typeof consumer.events.CRASH, listener: (event: object) => void): void => {
          if (event === consumer.events.CRASH) crash = (error) => listener({ payload: { error } })
          consumer.on(event, listener)
        }
        return { ...consumer, on }
      },
    },
  }
}

/** A process that hangs while it delivers, as the group sees it: it sends no heartbeat until then. */
function hanging({ url }: Settings, until: Promise<void>): object {
  const client = clientOf(url)
  return {
    logger: () => client.logger(),
    producer: () => client.producer(),
    consumer(config: ConsumerConfig) {
      const consumer = client.consumer(config)
      const run = ({ eachBatch, ...rest }: ConsumerRunConfig) =>
        consumer.run({
          ...rest,
          async eachBatch(payload) {
            await Promise.all([eachBatch!({ ...payload, heartbeat: () => Promise.resolve() }), until])
          },
        })
      return { ...consumer, run }
    },
  }
}

describe('what the box gets', TIMEOUT, () => {
  async function received(messages: Parameters<typeof publish>[1], options: object = {}): Promise<Incoming[]> {
    const settings = await broker.create()
    await publish(settings, messages)
    await using reader = await read(source(settings, options))
    await isDone(settings)
    return reader.messages.map((message) => ({ ...message, source: message.source?.replace(settings.topic, 'orders') }))
  }

  test('a record without an id is known by its place, its type is the header or the topic, its time the timestamp', async () => {
    const before = Date.now()
    const [message] = await received([{ headers: { type: 'order.placed', n: '1' }, body: '{"a":1}', key: 'k' }])
    expect(message).toMatchObject({
      id: expect.stringMatching(/^orders-[0-9a-f-]+:\d:0$/) as string,
      source: 'orders',
      type: 'order.placed',
      key: 'k',
      headers: { type: 'order.placed', n: '1' },
    })
    expect((message!.time as Date).getTime()).toBeGreaterThanOrEqual(before - 1)
    expect((message!.time as Date).getTime()).toBeLessThanOrEqual(Date.now())
    const [other] = await received([{ headers: {}, body: '1' }])
    expect(other!.type).toMatch(/^orders-/)
    expect(other!.key).toBeUndefined()
  })

  test('a CloudEvent says itself who it is', async () => {
    const ce = { ce_specversion: '1.0', ce_id: '7', ce_source: 'shop', ce_type: 'order.placed', traceparent: '00-1' }
    const [message] = await received([{ headers: ce, body: '{"a":1}', key: 'k' }])
    expect(message).toMatchObject({ id: '7', source: 'shop', type: 'order.placed', key: 'k' })
    expect(message!.headers).toEqual({ traceparent: '00-1' })
  })

  test('keys and headers are text: bytes that are none are base64, and of two values the last counts', async () => {
    const binary = Buffer.from([0, 255, 1])
    const headers = { text: Buffer.from('ä'), binary, twice: ['1', '2'], zero: Buffer.from('a\0b') }
    const [message] = await received([{ headers, body: '1', key: binary }])
    expect(message!.headers).toEqual({ text: 'ä', binary: 'AP8B', twice: '2', zero: 'YQBi' })
    expect(message!.key).toBe('AP8B')
  })

  test('a tombstone is a message whose data is null, codec or not', async () => {
    const codec = { contentType: 'x/y', decode: (body: Uint8Array) => body.length, encode: () => Buffer.from('') }
    for (const options of [{}, { codec }]) {
      const [message] = await received([{ headers: { 'content-type': 'text/plain' }, body: null, key: 'k' }], options)
      expect(message!.key).toBe('k')
      expect(Buffer.from(message!.body!).toString()).toBe('null')
    }
  })

  test('source, type and map decide otherwise', async () => {
    const map = (raw: { partition: number }, message: Incoming): Incoming => ({
      ...message,
      subject: String(raw.partition),
    })
    const [message] = await received([{ headers: {}, body: '1' }], { source: 'legacy', type: 'note', map })
    expect(message).toMatchObject({ source: 'legacy', type: 'note', subject: message!.id!.split(':')[1] })
  })

  test('the first messages after an assignment are suspects, the next ones are not', async () => {
    const settings = await broker.create()
    await publish(settings, numbered(30, oneKey))
    await using reader = await read(source(settings, { batch: 10 }))
    await isDone(settings)
    expect(reader.messages.map(({ redelivered = false }) => redelivered)).toEqual(
      Array.from({ length: 30 }, (_, n) => n < 10),
    )
  })

  test.each(CLIENTS)('after each assignment, with %s', async (_, clientAt) => {
    const settings = await broker.create()
    await publish(settings, numbered(10, oneKey))
    await using reader = await read(source(settings, { client: clientAt(settings) }))
    await isDone(settings)
    // Has them for a while, or makes the first one join again at least.
    await using other = await read(source(settings))
    await other.stop()
    await publish(settings, numbered(10, oneKey))
    await isDone(settings)
    expect(reader.batches.at(-1)!.map(({ redelivered }) => redelivered)).toContain(true)
  })
})

describe('what is gone from the log', TIMEOUT, () => {
  const told = (reader: Reader): string[] => reader.reports.filter(Boolean).map((problem) => (problem as Error).message)
  const needsReal = ({ skip }: TestContext): void => skip(broker.isMock, 'kafka-mock keeps everything')
  const partitionOf = ({ id }: Incoming): number => Number(id!.split(':')[1])
  const trim = ({ url, topic }: Settings, partition: number, offset: number): Promise<void> =>
    withAdmin(url, async (admin) => {
      // The client has to know the topic first.
      await admin.fetchTopicOffsets(topic)
      await admin.deleteTopicRecords({ topic, partitions: [{ partition, offset: String(offset) }] })
    })

  test('while nobody read is told at the start, once, with its number', async (context) => {
    needsReal(context)
    const settings = await broker.create()
    await publish(settings, numbered(4, oneKey))
    const own = source(settings)
    const before = await read(own)
    await isDone(settings)
    await own.stop()
    await publish(settings, numbered(10, oneKey))
    const partition = partitionOf(before.messages[0]!)
    await trim(settings, partition, 11)
    await using after = await read(own)
    await isDone(settings)
    expect(after.messages).toHaveLength(3)
    expect(told(after)).toEqual([expect.stringMatching(/offset 4: 7 messages were deleted.*retention\.ms/)])
    expect(after.reports[0]).toMatchObject({ code: 'NOT_FOUND' })
    // It is in order again at once.
    expect(after.reports.at(-1)).toBeUndefined()
  })

  test('while a message waited for its retry is told when it is missed', async (context) => {
    needsReal(context)
    const settings = await broker.create()
    await publish(settings, numbered(10, oneKey))
    let mended = false
    await using reader = await read(source(settings, { batch: 5 }), (batch) =>
      numbersOf(batch).map((n) => mended || n < 3),
    )
    await waitUntil(() => reader.messages.length > 0, PATIENCE)
    await waitUntil(async () => (await committed(settings)) === 3, PATIENCE)
    await trim(settings, partitionOf(reader.messages[0]!), 8)
    mended = true
    await isDone(settings)
    await waitUntil(() => told(reader).length > 0, PATIENCE)
    expect(told(reader)).toEqual([expect.stringMatching(/offset 3: 5 messages were deleted/)])
  })

  test('and an offset beyond its end, of a topic that was made anew, are told', async (context) => {
    needsReal(context)
    const settings = await broker.create()
    await publish(settings, numbered(10, oneKey))
    const { topic, groupId } = settings
    const partitions = [0, 1, 2].map((partition) => ({ partition, offset: '100' }))
    await withAdmin(settings.url, (admin) => admin.setOffsets({ groupId, topic, partitions }))
    await using reader = await read(source(settings))
    await waitUntil(() => reader.messages.length === 10, PATIENCE)
    expect(told(reader)).toHaveLength(3)
    expect(told(reader)[0]).toMatch(/offset 100: the log ends at .* made anew/)
  })

  test('in a day, or by compaction, is warned of', async (context) => {
    needsReal(context)
    const settings = await broker.create()
    const configEntries = [
      { name: 'retention.ms', value: '600000' },
      { name: 'cleanup.policy', value: 'compact,delete' },
    ]
    await withAdmin(settings.url, (admin) =>
      admin.alterConfigs({ validateOnly: false, resources: [{ type: 2, name: settings.topic, configEntries }] }),
    )
    const warnings: string[] = []
    const own = source(settings)
    onTestFinished(() => own.stop())
    await own.start(
      async () => [],
      () => undefined,
      (text) => warnings.push(text),
    )
    expect(warnings).toEqual([
      `topic ${settings.topic} is compacted: of one key only the last message is kept; set cleanup.policy to delete`,
      `topic ${settings.topic} keeps messages for 10 minutes, and a longer outage loses some; raise retention.ms`,
    ])
  })
})

test('a client of Confluent’s shape is spoken to in its own way', TIMEOUT, async () => {
  const settings = await broker.create()
  const client = inConfluentShape(clientOf(settings.url))
  const out = sink(settings, { client })
  onTestFinished(() => out.close())
  const events = Array.from({ length: 20 }, (_, n) => event(`e${n}`, { key: 'k' }))
  expect(await out.publish(events)).toEqual(events.map(() => undefined))
  let refused = 'e5'
  const consumer = { ...settings.consumer, 'js.consumer.max.batch.size': 10 }
  await using reader = await read(source(settings, { client, consumer }), (batch) =>
    batch.map(({ id }) => id !== refused),
  )
  await waitUntil(() => reader.messages.filter(({ id }) => id === 'e5').length > 1, PATIENCE)
  expect(await committed(settings)).toBe(5)
  refused = ''
  await isDone(settings)
  expect(new Set(reader.messages.map(({ id }) => id)).size).toBe(20)
})

describe('a start that fails', TIMEOUT, () => {
  test('rejects when there is no broker, and can be stopped while it tries', async () => {
    const settings = await broker.create()
    const client = new kafkajs.Kafka({
      brokers: ['127.0.0.1:1'],
      logLevel: kafkajs.logLevel.NOTHING,
      retry: { retries: 1 },
    })
    const nowhere = source(settings, { client })
    await expect(read(nowhere)).rejects.toThrow()
    const trying = read(nowhere)
    const before = performance.now()
    await nowhere.stop()
    expect(performance.now() - before).toBeLessThan(1_000)
    await expect(trying).rejects.toThrow()
  })

  test('rejects when there is no such topic', async ({ skip }) => {
    skip(broker.isMock, 'kafka-mock makes topics as they are asked for')
    const settings = await broker.create()
    const client = clientOf(settings.url)
    await expect(read(kafka({ client, groupId: settings.groupId, topics: 'none' }))).rejects.toThrow()
    expect(await withAdmin(settings.url, (admin) => admin.listTopics())).not.toContain('none')
  })
})
