import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { connect, type Channel, type ChannelModel, type ConfirmChannel } from 'amqplib'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Incoming, Message, Outcome, Sink, Source } from 'oncebox'
import { rabbitmq, type RabbitSourceOptions } from 'oncebox/rabbitmq'
import { brokerConformance, type ChannelOptions } from 'oncebox/testing'
import type { PrivateService } from '../../../tools/services/process.mjs'
import { freeze, unfreeze } from '../../support/freeze.js'
import { waitUntil } from '../../support/wait.js'
import { loadAdapter, openBroker, type Settings } from '../adapter.js'

const adapter = await loadAdapter(new URL('./adapter.mjs', import.meta.url))
const TIMEOUT_MS = 240_000

let service: PrivateService
let connection: ChannelModel
let channel: ConfirmChannel
beforeAll(async () => {
  service = (await adapter.start()) as PrivateService
  connection = await connect(service.url)
  channel = await connection.createConfirmChannel()
}, 300_000)
afterAll(async () => {
  await connection?.close().catch(() => undefined)
  await service?.stop()
})

const opened: { stop?: () => Promise<void>; close?: () => Promise<void> }[] = []
afterEach(async () => {
  for (const one of opened.splice(0)) {
    await one.stop?.()
    await one.close?.()
  }
})
function open<T extends Source | Sink>(one: T): T {
  opened.push(one)
  return one
}

/** Classic queues differ in what becomes of deliveries; the rest is the same code of the broker. */
describe.each([
  ['quorum', /./],
  ['classic', /acknowledged|again|order|holds?/],
])('a %s queue', (type, which) => {
  const { capabilities } = adapter
  const create: typeof adapter.create = (url, channel) => adapter.create(url, { ...channel, type })
  const open = (channel?: ChannelOptions) => openBroker({ ...adapter, create }, service.url, channel)
  const suite = brokerConformance({ open, capabilities }).filter(({ name }) => which.test(name))
  for (const { name, run } of suite) test(name, { timeout: TIMEOUT_MS }, run)
})

describe('a source', { timeout: TIMEOUT_MS }, () => {
  test('reads what is no CloudEvent by its properties', async () => {
    const { queue, exchange } = await fresh()
    const properties = {
      messageId: 'by-property',
      type: 'user.created',
      timestamp: 1_767_323_045,
      correlationId: 'the-first',
      contentType: 'application/json',
      headers: { text: 'a', number: 1, flag: true, list: ['x'], 'x-death': [{ count: 1 }] },
    }
    channel.publish(exchange, 'some.key', Buffer.from('{"n":1}'), properties)
    channel.publish(exchange, 'some.key', Buffer.from('{"n":2}'), { messageId: 'bare' })
    const { messages } = await started({ queue })
    await waitUntil(() => messages.length === 2)
    expect(messages[0]).toEqual({
      id: 'by-property',
      source: queue,
      type: 'user.created',
      time: new Date('2026-01-02T03:04:05.000Z'),
      headers: {
        'content-type': 'application/json',
        correlationid: 'the-first',
        text: 'a',
        number: '1',
        flag: 'true',
        list: '["x"]',
      },
      body: Buffer.from('{"n":1}'),
    })
    expect(messages[1]).toMatchObject({ id: 'bare', type: 'some.key', source: queue })
  })

  test('goes on behind a message of which its map makes none', async () => {
    const { queue, exchange } = await fresh()
    const ids = ['m-1', 'm-2', 'm-3']
    for (const messageId of ids) channel.publish(exchange, 'x', Buffer.from('{}'), { messageId })
    const map = (_raw: unknown, message: Incoming): Incoming => (message.id === 'm-2' ? (undefined as never) : message)
    const { messages } = await started({ queue, map })
    await waitUntil(async () => messages.length === 3 && (await adapter.backlog({ url: service.url, queue })) === 0)
    expect(messages.map(({ id }) => id)).toEqual(ids)
    expect(messages[1]!.headers).toMatchObject({ 'oncebox-problem': 'map returned no message' })
  })

  test('acknowledges a batch with one word, and around what stays open one by one', async () => {
    const { queue, exchange } = await fresh()
    for (let n = 0; n < 6; n++) channel.publish(exchange, 'x', Buffer.from('{}'), { messageId: `m-${n}` })
    await channel.waitForConfirms()
    const acks: [tag: number, multiple: boolean][] = []
    const spied = async (url: string) => {
      const real = await connect(url)
      const createChannel = real.createChannel.bind(real)
      real.createChannel = async (options) => {
        const own: Channel = await createChannel(options)
        const ack = own.ack.bind(own)
        own.ack = (message, allUpTo = false) => {
          acks.push([message.fields.deliveryTag, allUpTo])
          ack(message, allUpTo)
        }
        return own
      }
      return real
    }
    const answer = ({ id }: Incoming): boolean => id !== 'm-3' || acks.length > 0
    // A batch that waits to be full, however slowly its messages come in.
    await started({ queue, connect: spied, batch: 6, lingerMs: 60_000 }, { answer })
    await waitUntil(async () => (await channel.checkQueue(queue)).messageCount === 0 && acks.length === 4)
    expect(acks).toEqual([
      [3, true],
      [5, false],
      [6, false],
      [4, true],
    ])
  })

  test('rejects what is quarantined, if it is told to, and the broker moves it', async () => {
    const { queue, exchange } = await fresh({ 'x-dead-letter-exchange': '', 'x-dead-letter-routing-key': 'graveyard' })
    await channel.assertQueue('graveyard', { durable: true })
    const published = ['good', 'bad', 'good-too']
    for (const id of published) channel.publish(exchange, 'x', Buffer.from('{}'), { messageId: id })
    const quarantined = ({ id }: Incoming): Outcome | boolean =>
      id !== 'bad' || { id, ack: true, status: 'quarantined', reason: 'no-id', consumers: [] }
    await started({ queue, deadLetter: true }, { answer: quarantined })
    const dead = await waitUntil(() => channel.get('graveyard', { noAck: true }))
    expect(dead.properties.messageId).toBe('bad')
    await waitUntil(async () => (await adapter.backlog({ url: service.url, queue })) === 0)
    expect(await channel.get('graveyard')).toBe(false)
  })

  test('goes on when its queue is deleted, and made again', async () => {
    const { queue, exchange } = await fresh()
    const { messages, problems } = await started({ queue })
    await channel.deleteQueue(queue)
    await waitUntil(() => problems.some((problem) => problem !== undefined))
    await channel.assertQueue(queue, { durable: true })
    await channel.bindQueue(queue, exchange, '#')
    channel.publish(exchange, 'x', Buffer.from('{}'), { messageId: 'after' })
    await waitUntil(() => messages.some(({ id }) => id === 'after'), { timeoutMs: 90_000 })
    expect(problems.at(-1)).toBeUndefined()
  })

  test('refuses a stream, which would lose what comes while nobody listens, and says so for as long as it is one', async () => {
    const { queue, exchange } = await fresh({}, '#', 'stream')
    const { messages, problems } = await started({ queue })
    channel.publish(exchange, 'x', Buffer.from('{}'), { messageId: 'first' })
    const refusals = (): unknown[] => problems.filter((problem) => String(problem).includes(`${queue} is a stream`))
    await waitUntil(() => refusals().length > 2)
    expect(problems).toEqual(refusals())
    expect(messages).toEqual([])
    expect(String(problems[0])).toContain('bind a quorum queue')
  })

  test('reads a queue into which the messages of a stream were moved', async () => {
    const { queue, exchange } = await fresh()
    const { messages, problems } = await started({ queue })
    channel.publish(exchange, 'x', Buffer.from('{}'), { messageId: 'moved', headers: { 'x-stream-offset': 7 } })
    await waitUntil(() => messages.some(({ id }) => id === 'moved'))
    await waitUntil(() => problems.length > 1)
    expect(problems.at(-1)).toBeUndefined()
    channel.publish(exchange, 'x', Buffer.from('{}'), { messageId: 'next', headers: { 'x-stream-offset': 8 } })
    await waitUntil(() => messages.some(({ id }) => id === 'next'))
    expect(problems).toHaveLength(2)
  })

  test('goes on when its connection is cut', async () => {
    const { queue, exchange } = await fresh()
    const { connect, cut } = cutting()
    const { messages, problems } = await started({ queue, connect })
    for (const id of ['first', 'second', 'third']) {
      channel.publish(exchange, 'x', Buffer.from('{}'), { messageId: id })
      await waitUntil(() => messages.some((message) => message.id === id), { timeoutMs: 90_000 })
      const before = problems.length
      cut()
      await waitUntil(() => problems.length > before)
    }
  })

  test.for([
    ['nested too deep', nested(20_000), /has headers nested too deep .* until it is removed/, RangeError],
    ['of a type that the client does not know', unknown(), /has a header of a type .* until it is removed/, TypeError],
  ] as const)(
    'says so when headers are %s, and goes on when their message is removed',
    async ([, header, told, cause]) => {
      const { queue, exchange } = await fresh({}, '#', 'classic')
      const { messages, problems } = await started({ queue })
      await publishRaw(queue, header)
      await waitUntil(() => problems.some((problem) => problem !== undefined))
      expect(String(problems[0])).toMatch(told)
      expect(problems[0]).toMatchObject({ cause: expect.any(cause) as Error })
      // What a consumer holds is not purged.
      const isPurged = async (): Promise<boolean> => (await channel.purgeQueue(queue)).messageCount > 0
      await waitUntil(isPurged, { timeoutMs: 90_000, everyMs: 1 })
      channel.publish(exchange, 'x', Buffer.from('{}'), { messageId: 'after' })
      await waitUntil(() => messages.some(({ id }) => id === 'after'), { timeoutMs: 90_000 })
    },
  )

  test('is not back while what it is given ends each connection, and is when that is removed', async () => {
    const { queue } = await fresh({}, '#', 'classic')
    const { problems } = await started({ queue })
    await publishRaw(queue, nested(20_000))
    await waitUntil(() => problems.length > 4)
    expect(problems.filter((problem) => problem === undefined)).toEqual([])
    const isPurged = async (): Promise<boolean> => (await channel.purgeQueue(queue)).messageCount > 0
    await waitUntil(isPurged, { timeoutMs: 90_000, everyMs: 1 })
    await waitUntil(() => problems.at(-1) === undefined, { timeoutMs: 90_000 })
  })

  test('waits longer each time while what it is given ends its connection at once', async () => {
    const { queue } = await fresh({}, '#', 'classic')
    await publishRaw(queue, nested(20_000))
    const opened: number[] = []
    const counted = (url: string) => {
      opened.push(performance.now())
      return connect(url)
    }
    await started({ queue, connect: counted })
    await waitUntil(() => opened.length > 5)
    // The fifth pause since it worked: 1 600 ms, or half as many.
    expect(opened[5]! - opened[4]!).toBeGreaterThan(799)
  })

  test('creates what is missing, if it is told to', async () => {
    const queue = `asserted-${Date.now()}`
    const bindings = { [`events-${queue}`]: ['order.*', 'user.#'] }
    const assert = { bindings, deadLetterExchange: 'elsewhere', arguments: { 'x-delivery-limit': 50 } }
    const { messages } = await started({ queue, assert })
    channel.publish(`events-${queue}`, 'order.placed', Buffer.from('{}'), { messageId: 'bound' })
    await waitUntil(() => messages.length === 1)
    const options = { durable: true, deadLetterExchange: 'elsewhere' }
    const quorum = { 'x-queue-type': 'quorum', 'x-delivery-limit': 50 }
    // The broker refuses a declaration that differs from what is there.
    await channel.assertQueue(queue, { ...options, arguments: quorum })
  })

  test('counts nothing against the delivery limit of a queue while the box does not take a message', async () => {
    const { queue, exchange } = await fresh({ 'x-delivery-limit': 1 })
    channel.publish(exchange, 'x', Buffer.from('{}'), { messageId: 'patient' })
    let refusals = 0
    const { messages } = await started({ queue }, { answer: () => ++refusals > 4 })
    await waitUntil(() => refusals > 4, { timeoutMs: 90_000 })
    expect(messages.every(({ id, redelivered }) => id === 'patient' && !redelivered)).toBe(true)
  })

  test('goes on with other keys while a message fails, within its prefetch', async () => {
    const { queue, exchange } = await fresh()
    const publish = (messageId: string, key: string): boolean =>
      channel.publish(exchange, 'x', Buffer.from('{}'), { messageId, headers: { key } })
    publish('fails', 'stuck')
    // More than the prefetch in all, and fewer than it behind the one that fails.
    for (let n = 0; n < 40; n++) publish(`m-${n}`, n % 10 === 0 ? 'stuck' : `key-${n}`)
    await channel.waitForConfirms()
    const done = new Set<string>()
    // It fails until all of the others are done.
    const answer = ({ id, key }: Incoming): boolean => {
      const isTaken = key !== 'stuck' || done.size >= 36
      if (isTaken) done.add(id!)
      return isTaken
    }
    const map = (_raw: unknown, message: Incoming): Incoming => ({ ...message, key: message.headers!['key']! })
    await started({ queue, map, prefetch: 8, batch: 4 }, { answer })
    await waitUntil(() => done.size === 41, { timeoutMs: 30_000 })
    expect([...done].slice(-5)).toEqual(['fails', 'm-0', 'm-10', 'm-20', 'm-30'])
  })

  test('asks for more than its prefetch while messages wait, up to what it may hold, and for less when they are done', async () => {
    const { queue, exchange } = await fresh()
    const publish = async (names: readonly string[]): Promise<void> => {
      for (const messageId of names) channel.publish(exchange, 'x', Buffer.from('{}'), { messageId })
      await channel.waitForConfirms()
    }
    const consumers = async (): Promise<number> => (await channel.checkQueue(queue)).consumerCount
    await publish(Array.from({ length: 100 }, (_, n) => `fails-${n}`))
    let mended = false
    const error = { name: 'Error', message: 'away' }
    const answer = ({ id }: Incoming): Outcome | boolean =>
      mended || { id, ack: false, retryAt: new Date(Date.now() + 1_000), status: 'failed', error, consumers: [] }
    const { messages, warnings } = await started({ queue, prefetch: 8, batch: 4, hold: 24 }, { answer })
    const seen = (): number => new Set(messages.map(({ id }) => id)).size
    await waitUntil(() => seen() === 32, { timeoutMs: 30_000 })
    await waitUntil(() => warnings.length > 0, { timeoutMs: 30_000 })
    // However often they fail: windows that were closed meanwhile are not opened again for others.
    await waitUntil(() => messages.length >= 32 * 4, { timeoutMs: 60_000 })
    expect(seen()).toBe(32)
    mended = true
    await waitUntil(() => seen() === 100, { timeoutMs: 60_000 })
    await waitUntil(async () => (await consumers()) === 1, { timeoutMs: 30_000 })
    await publish(['good'])
    await waitUntil(() => seen() === 101, { timeoutMs: 30_000 })
    expect(messages.some(({ redelivered }) => redelivered)).toBe(false)
  })

  test('hands a queue with a single active consumer over without a delivery counted', async () => {
    const { queue, exchange } = await fresh({ 'x-single-active-consumer': true })
    for (let n = 0; n < 20; n++) channel.publish(exchange, 'x', Buffer.from('{}'), { messageId: `m-${n}` })
    await channel.waitForConfirms()
    const error = { name: 'Error', message: 'away' }
    const later = ({ id }: Incoming): Outcome => {
      return { id, ack: false, retryAt: new Date(Date.now() + 3_600_000), status: 'failed', error, consumers: [] }
    }
    const first = await started({ queue, prefetch: 8, batch: 4 }, { answer: later })
    await waitUntil(() => first.messages.length === 8, { timeoutMs: 30_000 })
    const second = await started({ queue, prefetch: 8, batch: 4 })
    await first.source.stop()
    await waitUntil(() => second.messages.length === 20, { timeoutMs: 30_000 })
    // Those that the first one had; what its further consumers never got was delivered once.
    expect(
      second.messages
        .filter(({ redelivered }) => redelivered)
        .map(({ id }) => id)
        .sort(),
    ).toEqual(first.messages.map(({ id }) => id).sort())
  })

  test('delivers again at the time that a handler asked for, and sooner where none did', async () => {
    const { queue, exchange } = await fresh()
    for (const messageId of ['asks', 'fails']) channel.publish(exchange, 'x', Buffer.from('{}'), { messageId })
    const times = new Map<string, number[]>()
    const error = { name: 'Error', message: 'later' }
    const answer = ({ id }: Incoming): Outcome | boolean => {
      const own = times.get(id!) ?? []
      times.set(id!, [...own, Date.now()])
      const asked = id === 'asks' ? { retryAt: new Date(Date.now() + 2_000) } : {}
      return own.length > 0 || { id, ack: false, ...asked, status: 'failed', error, consumers: [] }
    }
    await started({ queue }, { answer })
    await waitUntil(() => [...times.values()].flat().length === 4)
    const waited = (id: string): number => times.get(id)![1]! - times.get(id)![0]!
    expect(waited('asks')).toBeGreaterThan(1_900)
    expect(waited('fails')).toBeLessThan(waited('asks'))
  })

  test('says at its start what of the queue that it declares would lose messages', async () => {
    const bounded = { 'x-max-length': 10, 'x-message-ttl': 60_000, 'x-expires': 600_000, 'x-delivery-limit': 5 }
    const careless = await started({ queue: `careless-${Date.now()}`, assert: { arguments: bounded } })
    expect(careless.warnings).toEqual([
      'the queue drops a message after 5 deliveries: set assert.deadLetterExchange',
      'the queue drops a message after 60000 ms: remove x-message-ttl',
      'the queue is deleted when nobody has used it for 600000 ms: remove x-expires',
      'the queue drops its oldest message when it is full: set x-overflow to reject-publish',
    ])
    const careful = await started({ queue: `careful-${Date.now()}`, assert: { deadLetterExchange: 'dead' } })
    expect(careful.warnings).toEqual([])
  })

  test('warns of a message that nears the delivery limit', async () => {
    const { queue, exchange } = await fresh()
    channel.publish(exchange, 'x', Buffer.from('{}'), { messageId: 'often' })
    for (let n = 0; n < 10; n++) {
      const got = await waitUntil(() => channel.get(queue))
      channel.nack(got)
    }
    const { warnings } = await started({ queue })
    await waitUntil(() => warnings.length > 0, { timeoutMs: 30_000 })
    expect(warnings).toEqual([expect.stringContaining('x-delivery-limit')])
  })

  test('waits at its stop for what a lost channel had in flight', async () => {
    const { queue, exchange } = await fresh()
    const cuttable = cutting()
    const source = open(rabbitmq({ url: service.url, queue, connect: cuttable.connect }))
    let release = (): void => undefined
    const held = new Promise<void>((resolve) => (release = resolve))
    let began = false
    let ended = false
    const problems: unknown[] = []
    const deliver = async (batch: readonly Incoming[]): Promise<Outcome[]> => {
      if (began) return batch.map(taken)
      began = true
      await held
      ended = true
      return batch.map(taken)
    }
    await source.start(deliver, (problem) => void problems.push(problem))
    channel.publish(exchange, 'x', Buffer.from('{}'), { messageId: 'held' })
    await waitUntil(() => began)
    cuttable.cut()
    await waitUntil(() => problems.length > 0)
    const stopping = source.stop().then(() => ended)
    setTimeout(release, 200)
    expect(await stopping).toBe(true)
  })

  test('delivers nothing again that the box is still busy with since its connection was cut', async () => {
    const { queue, exchange } = await fresh()
    const cuttable = cutting()
    const source = open(rabbitmq({ url: service.url, queue, connect: cuttable.connect }))
    let release = (): void => undefined
    const held = new Promise<void>((resolve) => (release = resolve))
    const ids: unknown[] = []
    const problems: unknown[] = []
    const deliver = async (batch: readonly Incoming[]): Promise<Outcome[]> => {
      ids.push(...batch.map(({ id }) => id))
      if (ids.length === 1) await held
      return batch.map(taken)
    }
    const publish = (id: string): void => {
      const attributes = { specversion: '1.0', id, source: 'elsewhere', type: 'x', partitionkey: `key of ${id}` }
      const headers = Object.fromEntries(
        Object.entries(attributes).map(([name, value]) => [`cloudEvents_${name}`, value]),
      )
      channel.publish(exchange, 'x', Buffer.from('{}'), { headers, contentType: 'application/json' })
    }
    try {
      await source.start(deliver, (problem) => void problems.push(problem))
      publish('held')
      await waitUntil(() => ids.length === 1)
      cuttable.cut()
      await waitUntil(() => problems.length > 0)
      // It is behind the other one in the queue.
      publish('next')
      await waitUntil(() => ids.includes('next'), { timeoutMs: 90_000 })
      expect(ids).toEqual(['held', 'next'])
    } finally {
      release()
    }
    await waitUntil(() => ids.length === 3)
    expect(ids).toEqual(['held', 'next', 'held'])
  })

  describe('that has asked for more than its prefetch', () => {
    const numberOf = (id: string): number => Number(id.slice(2))
    const map = (_raw: unknown, message: Incoming): Incoming => ({ ...message, key: `k-${numberOf(message.id!) % 3}` })
    const error = { name: 'Error', message: 'away' }

    /** 60 messages of three keys, none of which the box takes at first; and those that it took, in their order. */
    async function waiting() {
      const { queue, exchange } = await fresh()
      const ids = Array.from({ length: 60 }, (_, n) => `m-${n}`)
      for (const messageId of ids) channel.publish(exchange, 'x', Buffer.from('{}'), { messageId })
      await channel.waitForConfirms()
      const cuttable = cutting()
      const state = { mended: false }
      const done: string[] = []
      const answer = ({ id }: Incoming): Outcome | boolean => {
        const retryAt = new Date(Date.now() + 500)
        if (!state.mended) return { id, ack: false, retryAt, status: 'failed', error, consumers: [] }
        done.push(id!)
        return true
      }
      const options = { queue, map, prefetch: 8, batch: 4, hold: 64, connect: cuttable.connect }
      const { problems } = await started(options, { answer })
      const consumers = async (): Promise<number> => (await channel.checkQueue(queue)).consumerCount
      await waitUntil(async () => (await consumers()) >= 4, { timeoutMs: 30_000 })
      return { state, done, problems, cut: cuttable.cut }
    }

    async function expectOrder(done: readonly string[]): Promise<void> {
      await waitUntil(() => new Set(done).size === 60, { timeoutMs: 60_000 })
      for (const rest of [0, 1, 2]) {
        const ofKey = [...new Set(done)].map(numberOf).filter((n) => n % 3 === rest)
        expect(ofKey).toEqual(ofKey.toSorted((a, b) => a - b))
      }
    }

    test('keeps the order of keys when it is cut again and again', async () => {
      const { state, done, problems, cut } = await waiting()
      for (let cuts = 1; cuts <= 6; cuts++) {
        const before = problems.filter(Boolean).length
        cut()
        await waitUntil(() => problems.filter(Boolean).length > before, { timeoutMs: 30_000 })
        await waitUntil(() => problems.at(-1) === undefined, { timeoutMs: 30_000 })
      }
      state.mended = true
      await expectOrder(done)
    })
  })

  test('that is started while it starts consumes once', async () => {
    const { queue } = await fresh()
    const source = open(rabbitmq({ url: service.url, queue }))
    const deliver = async (batch: readonly Incoming[]) => batch.map(taken)
    await Promise.all([source.start(deliver), source.stop(), source.start(deliver), source.start(deliver)])
    expect((await channel.checkQueue(queue)).consumerCount).toBe(1)
    await source.stop()
    expect((await channel.checkQueue(queue)).consumerCount).toBe(0)
  })
})

describe('a sink', { timeout: TIMEOUT_MS }, () => {
  test('says of an event that no queue takes it, and publishes the others', async () => {
    const { queue, exchange } = await fresh({}, 'order.*')
    const sink = open(rabbitmq({ url: service.url, exchange }))
    const batch = [event('a'), event('b', { type: 'user.created', key: 'k' }), event('c', { key: 'k' }), event('d')]
    const answers = await sink.publish(batch)
    expect(answers).toMatchObject([
      undefined,
      { error: { code: 'UNROUTABLE' }, down: true, afterMs: 5_000 },
      { retry: true },
      undefined,
    ])
    await waitUntil(async () => (await channel.checkQueue(queue)).messageCount === 2)

    const careless = open(rabbitmq({ url: service.url, exchange, mandatory: false }))
    expect(await careless.publish(batch.slice(1, 2))).toEqual([undefined])
  })

  test.for([
    ['of another type', 'topic', { type: 'user.created' }],
    ['that an exchange tells apart by its headers alone', 'headers', {}],
  ] as const)(
    'tells an event that no queue takes from one of its id %s, confirmed with one word',
    async ([, kind, fields]) => {
      const { queue } = await fresh()
      const exchange = `${kind}-of-${queue}`
      await channel.assertExchange(exchange, kind)
      await channel.bindQueue(queue, exchange, 'order.*', { 'x-match': 'all', cloudEvents_source: 'shop' })
      const sink = open(rabbitmq({ url: service.url, exchange, connect: confirmingTogether(2) }))
      const data = { same: true }
      const batch = [event('order-1', { data }), event('order-1', { source: 'billing', data, ...fields })]
      expect(await sink.publish(batch)).toMatchObject([undefined, { error: { code: 'UNROUTABLE' } }])
      await waitUntil(async () => (await channel.checkQueue(queue)).messageCount === 1)
    },
  )

  test('says of an event that a full queue refuses it', async () => {
    const full = { 'x-max-length': 1, 'x-overflow': 'reject-publish' }
    const { exchange } = await fresh(full, '#', 'classic')
    const sink = open(rabbitmq({ url: service.url, exchange }))
    expect(await sink.publish([event('fits')])).toEqual([undefined])
    expect(await sink.publish([event('not')])).toMatchObject([
      { error: { code: 'REFUSED' }, down: true, afterMs: 5_000 },
    ])
  })

  test('finds the event that the broker cannot take, and publishes the others', async () => {
    const { queue, exchange } = await fresh({}, '#', 'classic')
    const sink = open(rabbitmq({ url: service.url, exchange }))
    const large = event('large', { data: 'x'.repeat(17 * 1024 * 1024), key: 'k' })
    const answers = await sink.publish([
      event('a'),
      event('b', { key: 'k' }),
      large,
      event('c', { key: 'k' }),
      event('d'),
    ])
    expect(answers.map((answer) => answer?.retry)).toEqual([undefined, undefined, true, true, undefined])
    expect((answers[2]!.error as { code?: number }).code).toBe(406)
    const ids = new Set<string>()
    await waitUntil(async () => {
      const got = await channel.get(queue, { noAck: true })
      if (got) ids.add(got.properties.messageId as string)
      return ids.size === 3
    })
    expect([...ids].sort()).toEqual(['a', 'b', 'd'])
  })

  test('rejects while its exchange is missing, and publishes once it is there', async () => {
    const exchange = `late-${Date.now()}`
    const sink = open(rabbitmq({ url: service.url, exchange, mandatory: false }))
    await expect(sink.publish([event('early')])).rejects.toMatchObject({ code: 404 })
    await channel.assertExchange(exchange, 'topic')
    expect(await sink.publish([event('early')])).toEqual([undefined])
    await channel.deleteExchange(exchange)
    const asserting = open(rabbitmq({ url: service.url, exchange, mandatory: false, assert: true }))
    expect(await asserting.publish([event('early')])).toEqual([undefined])
    await channel.checkExchange(exchange)
  })

  test('rejects in time when the broker hangs, and publishes when it is back', async () => {
    const { exchange } = await fresh()
    const sink = open(rabbitmq({ url: service.url, exchange, timeoutMs: 1_000 }))
    await waitUntil(() => isPublished(sink, event('before')), { timeoutMs: 30_000 })
    await freeze(service.pid)
    try {
      await expect(sink.publish([event('meanwhile')])).rejects.toThrow('1000 ms')
      // The next one has to connect first, which hangs as well.
      await expect(sink.publish([event('meanwhile')])).rejects.toThrow()
    } finally {
      unfreeze(service.pid)
    }
    await waitUntil(() => isPublished(sink, event('meanwhile')), { timeoutMs: 90_000 })
  })

  test('writes properties for those who do not read CloudEvents', async () => {
    const { queue, exchange } = await fresh()
    const sink = open(rabbitmq({ url: service.url, exchange, routingKey: ({ key }) => `by.${key}` }))
    const time = new Date('2026-01-02T03:04:05.678Z')
    const long = 'i'.repeat(300)
    await sink.publish([event('short', { key: 'key', time }), event(long, { key: 'key' })])
    const received = await waitUntil(() => channel.get(queue, { noAck: true }))
    expect(received.fields.routingKey).toBe('by.key')
    expect(received.properties).toMatchObject({
      messageId: 'short',
      type: 'order.placed',
      correlationId: 'short',
      contentType: 'application/json',
      deliveryMode: 2,
      timestamp: 1_767_323_045,
      headers: { cloudEvents_id: 'short', cloudEvents_partitionkey: 'key', cloudEvents_time: time.toISOString() },
    })
    const second = await waitUntil(() => channel.get(queue, { noAck: true }))
    expect(second.properties.headers?.['cloudEvents_id']).toBe(long)
    expect((second.properties.messageId as string).length).toBeLessThan(256)
  })

  test('gives up for good on an event that does not fit the protocol', async () => {
    const { exchange } = await fresh()
    const sink = open(rabbitmq({ url: service.url, exchange }))
    const batch = [
      event('fits'),
      event('type', { type: 't'.repeat(300) }),
      event('headers', { headers: { h: 'x'.repeat(70_000) } }),
    ]
    const answers = await sink.publish(batch)
    expect(answers.map((answer) => answer?.retry)).toEqual([undefined, false, false])
  })
})

describe('options', () => {
  const url = 'amqp://localhost'
  test.each<[string, object]>([
    ['no queue or exchange', { url }],
    ['no url', { queue: 'q' }],
    ['another protocol', { url: 'http://localhost', queue: 'q' }],
    ['a typing error', { url, queue: 'q', prefech: 1 }],
    ['an option of sinks for a source', { url, queue: 'q', routingKey: 'k' }],
    ['an option of sources for a sink', { url, exchange: 'e', prefetch: 1 }],
    ['a batch larger than the prefetch', { url, queue: 'q', prefetch: 10, batch: 11 }],
    ['an unknown topology', { url, queue: 'q', assert: { type: 'mirrored' } }],
    ['a long queue name', { url, queue: 'q'.repeat(256) }],
    ['a codec in structured mode', { url, exchange: 'e', mode: 'structured', codec: {} }],
  ])('%s is refused', (_, options) => {
    expect(() => rabbitmq(options as never)).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
  })

  test('without its client it says what to install', async () => {
    const hide = `export const resolve = (name, context, next) => {
      if (name === 'amqplib') throw Object.assign(new Error('hidden'), { code: 'ERR_MODULE_NOT_FOUND' })
      return next(name, context)
    }`
    const script = `
      import { register } from 'node:module'
      register('data:text/javascript,' + encodeURIComponent(${JSON.stringify(hide)}))
      const { rabbitmq } = await import('oncebox/rabbitmq')
      await rabbitmq({ url: 'amqp://localhost', queue: 'q' }).start(() => {}).catch(({ code, message }) => console.log(code, message))`
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script])
    expect(stdout).toMatch(/^OPTION_INVALID .*npm install amqplib/)
  })

  test('a password is not shown', () => {
    const secret = 'amqpp://user:secret@host'
    const error = catching(() => rabbitmq({ url: secret, queue: 'q' }))
    expect(error).toMatchObject({ code: 'OPTION_INVALID' })
    expect(String(error)).not.toContain('secret')
  })
})

function catching(work: () => unknown): unknown {
  try {
    return work()
  } catch (error) {
    return error
  }
}

async function fresh(further: object = {}, pattern = '#', type = 'quorum') {
  const settings = (await adapter.create(service.url, { type, ...further })) as Settings & {
    queue: string
    exchange: string
  }
  if (pattern !== '#') {
    await channel.unbindQueue(settings.queue, settings.exchange, '#')
    await channel.bindQueue(settings.queue, settings.exchange, pattern)
  }
  return settings
}

/** False if the broker did not answer in time. */
function isPublished(sink: Sink, message: Message): Promise<boolean> {
  return sink.publish([message]).then(
    ([answer]) => answer === undefined,
    () => false,
  )
}

function uint(size: 2 | 4, value: number): Buffer {
  const bytes = Buffer.alloc(size)
  bytes.writeUIntBE(value, 0, size)
  return bytes
}

/** An array in an array, and so on: `A`, its length and what is in it; `V`, nothing, in the innermost. */
function nested(depth: number): Buffer {
  const arrays = Array.from({ length: depth }, (_, n) => [Buffer.from('A'), uint(4, 5 * (depth - n - 1) + 1)]).flat()
  return Buffer.concat([...arrays, Buffer.from('V')])
}

/** `L`, an integer of 64 bits: the broker takes it, and other clients send it. */
function unknown(): Buffer {
  return Buffer.concat([Buffer.from('L'), uint(4, 0), uint(4, 1)])
}

/** A message with such a header, in bytes: amqplib cannot encode them, either. */
async function publishRaw(queue: string, header: Buffer): Promise<void> {
  const own = await connect(service.url)
  const opened = (await own.createChannel()) as Channel & { readonly ch: number }
  const { stream } = own.connection as unknown as { stream: { write(bytes: Buffer): void } }
  const short = (text: string): Buffer => Buffer.from([text.length, ...Buffer.from(text)])
  const frame = (type: number, ...parts: Buffer[]): Buffer => {
    const payload = Buffer.concat(parts)
    return Buffer.concat([
      Buffer.from([type]),
      uint(2, opened.ch),
      uint(4, payload.length),
      payload,
      Buffer.from([0xce]),
    ])
  }
  const table = Buffer.concat([short('h'), header])
  const body = Buffer.from('{}')
  stream.write(
    Buffer.concat([
      // basic.publish, to the default exchange.
      frame(1, uint(2, 60), uint(2, 40), uint(2, 0), short(''), short(queue), Buffer.from([0])),
      // Its size, and of the properties the headers alone.
      frame(
        2,
        uint(2, 60),
        uint(2, 0),
        uint(4, 0),
        uint(4, body.length),
        uint(2, 0x2000),
        uint(4, table.length),
        table,
      ),
      frame(3, body),
    ]),
  )
  await waitUntil(async () => (await opened.checkQueue(queue)).messageCount === 1)
  await own.close()
}

/** A connection that can be cut, as if the network had gone. */
function cutting() {
  let cut = (): void => undefined
  return {
    cut: () => cut(),
    async connect(url: string) {
      const own = await connect(url)
      const { stream } = own.connection as unknown as { stream: { destroy(error: Error): void } }
      cut = () => stream.destroy(new Error('cut'))
      return own
    },
  }
}

/** A connection whose confirmations are told so many at a time, in the order of their tags, as the broker may tell them. */
function confirmingTogether(count: number) {
  return async (url: string) => {
    const own = await connect(url)
    const create = own.createConfirmChannel.bind(own)
    own.createConfirmChannel = async (options) => {
      const opened = await create(options)
      const publish = opened.publish.bind(opened)
      const told: (() => void)[] = []
      let tags = 0
      opened.publish = (exchange, key, content, properties, confirmed) => {
        const tag = tags++
        return publish(exchange, key, content, properties, (error: unknown, ok) => {
          told[tag] = () => confirmed?.(error, ok)
          if (Object.keys(told).length === count) for (const tell of told.splice(0)) tell()
        })
      }
      return opened
    }
    return own
  }
}

type Answer = (message: Incoming) => boolean | Outcome

/** A source that runs, and what it brought. True means that the box took it. */
async function started(options: Omit<RabbitSourceOptions, 'url'>, { answer = () => true }: { answer?: Answer } = {}) {
  const source = open(rabbitmq({ url: service.url, ...options }))
  const messages: Incoming[] = []
  const problems: unknown[] = []
  const warnings: string[] = []
  await source.start(
    async (batch) => {
      messages.push(...batch)
      return batch.map((message) => {
        const given = answer(message)
        return typeof given === 'object' ? given : given ? taken(message) : { ...taken(message), ack: false }
      })
    },
    (problem) => void problems.push(problem),
    (text) => void warnings.push(text),
  )
  return { source, messages, problems, warnings }
}

function taken({ id }: Incoming): Outcome {
  return { id, ack: true, status: 'stored', consumers: [] }
}

function event(id: string, fields: Partial<Message> = {}): Message {
  const message = { id, source: 'shop', type: 'order.placed', data: { id }, headers: {}, receivedAt: new Date() }
  return { ...message, attempt: 1, correlationId: id, ...fields }
}
