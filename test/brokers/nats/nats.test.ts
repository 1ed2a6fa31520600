/** What is particular to NATS JetStream. */
import { randomUUID } from 'node:crypto'
import { jetstream, jetstreamManager, type JetStreamManager } from '@nats-io/jetstream'
import { connect, type NatsConnection } from '@nats-io/transport-node'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Incoming, Message, Sink, Source } from 'oncebox'
import { nats, type NatsSinkOptions, type NatsSourceOptions } from 'oncebox/nats'
import type { PrivateService } from '../../../tools/services/process.mjs'
import { start } from '../../../tools/services/nats.mjs'
import { layCable } from '../../support/cable.js'
import { freeze, unfreeze } from '../../support/freeze.js'
import { waitUntil } from '../../support/wait.js'
import { event, gate, openGates, Recorder, settled } from '../recorder.js'

vi.setConfig({ testTimeout: 60_000 })

let service: PrivateService
let nc: NatsConnection
let jsm: JetStreamManager
beforeAll(async () => {
  service = (await start()) as PrivateService
  nc = await connect({ servers: service.url })
  jsm = await jetstreamManager(nc)
}, 300_000)
afterAll(async () => {
  await nc?.close()
  await service?.stop()
})

/** Of each test its own. */
let stream: string
const running = new Set<Source | Sink>()
beforeEach(async () => {
  stream = `s-${randomUUID()}`
  await jsm.streams.add({ name: stream, subjects: [`${stream}.>`] })
  return async () => {
    openGates()
    for (const one of running) await ('stop' in one ? one.stop() : one.close())
    running.clear()
    await jsm.streams.delete(stream).catch(() => undefined)
  }
})

const CONSUMER = 'worker'
const addConsumer = (config: object = {}) =>
  jsm.consumers.add(stream, { durable_name: CONSUMER, ack_policy: 'explicit', ack_wait: 1e9, ...config })
const backlog = async () => {
  const { num_pending, num_ack_pending } = await jsm.consumers.info(stream, CONSUMER)
  return num_pending + num_ack_pending
}
/** As another process gets them, which does not acknowledge them. */
const fetchBodies = async (most: number): Promise<string[]> => {
  const consumer = await jetstream(nc).consumers.get(stream, CONSUMER)
  const bodies: string[] = []
  for await (const one of await consumer.fetch({ max_messages: most, expires: 10_000 })) bodies.push(one.string())
  return bodies
}
const publish = (body: string, id?: string) =>
  jetstream(nc).publish(`${stream}.raw`, body, id === undefined ? {} : { msgID: id })

function source(options: Partial<NatsSourceOptions> = {}): Source {
  const made = nats({ url: service.url, stream, consumer: CONSUMER, ...options })
  running.add(made)
  return made
}
function sink(options: Partial<NatsSinkOptions> = {}): Sink {
  const made = nats({ url: service.url, subject: `${stream}.>`, ...options })
  running.add(made)
  return made
}

describe('a source', () => {
  test('keeps what it holds for as long as the box takes, delivered or fetched ahead', async () => {
    await addConsumer()
    for (let n = 0; n < 10; n++) await publish(`${n}`, `m-${n}`)
    const { passed, open } = gate()
    const recorder = new Recorder(async () => passed)
    await source({ batch: 4 }).start(recorder.deliver)
    await waitUntil(() => recorder.batches.length > 0)
    // Another one would get what is given up.
    const other = new Recorder()
    await source().start(other.deliver)
    await waitUntil(() => other.messages.length > 0, { what: 'the other to get the rest' })
    const heldUntil = Date.now() + 3_000
    await waitUntil(() => Date.now() > heldUntil)
    open()
    await waitUntil(async () => (await backlog()) === 0)
    const ids = [...recorder.messages, ...other.messages].map(({ id }) => id)
    expect(ids.sort()).toEqual(Array.from({ length: 10 }, (_, n) => `m-${n}`))
  })

  test('knows what has no id by its place, also when a stream is made anew', async () => {
    const recorder = new Recorder()
    for (const round of [1, 2]) {
      await addConsumer()
      await publish('{"same":true}')
      const one = source()
      await one.start(recorder.deliver)
      await waitUntil(() => recorder.messages.length === round)
      await one.stop()
      if (round === 1) {
        await jsm.streams.delete(stream)
        await jsm.streams.add({ name: stream, subjects: [`${stream}.>`] })
      }
    }
    const [first, second] = recorder.messages as [Incoming, Incoming]
    expect(first.id).toMatch(/^1@\d{19}$/)
    expect(second.id).toMatch(/^1@\d{19}$/)
    expect(second.id).not.toBe(first.id)
    expect(first).toMatchObject({ source: stream, type: `${stream}.raw` })
  })

  test('waits for a failed message until its retry is due', async () => {
    await addConsumer()
    await publish('1', 'm')
    const times: number[] = []
    const recorder = new Recorder(async (batch) => {
      times.push(Date.now())
      return times.length === 1
        ? batch.map((one) => settled(one, { retryAt: new Date(Date.now() + 2_000) }))
        : undefined
    })
    await source().start(recorder.deliver)
    await waitUntil(async () => (await backlog()) === 0)
    expect(times).toHaveLength(2)
    expect(times[1]! - times[0]!).toBeGreaterThan(1_900)
    // The server was not asked to deliver it again, which a consumer may allow only so often.
    expect(recorder.messages.map(({ redelivered }) => redelivered)).toEqual([undefined, undefined])
  })

  test('what was lost on its way comes again before anything newer of its key', async () => {
    await addConsumer({ ack_wait: 2e9 })
    await using cable = await layCable(service.url)
    const recorder = new Recorder()
    await source({ url: cable.url, key: () => 'k' }).start(recorder.deliver)
    await waitUntil(async () => (await jsm.consumers.info(stream, CONSUMER)).num_waiting > 0)
    cable.hold()
    for (let n = 0; n < 5; n++) await publish(`${n}`, `m-${n}`)
    await waitUntil(async () => (await jsm.consumers.info(stream, CONSUMER)).num_ack_pending === 5)
    await waitUntil(() => cable.heldBytes > 0)
    cable.cut()
    for (let n = 5; n < 10; n++) await publish(`${n}`, `m-${n}`)
    await waitUntil(async () => (await backlog()) === 0, { timeoutMs: 50_000 })
    expect(recorder.messages.map(({ id }) => id)).toEqual(Array.from({ length: 10 }, (_, n) => `m-${n}`))
  })

  test('what comes too late for its request comes again before anything newer of its key', async () => {
    await addConsumer({ ack_wait: 20e9 })
    await using cable = await layCable(service.url)
    const recorder = new Recorder()
    const problems: unknown[] = []
    await source({ url: cable.url, key: () => 'k' }).start(recorder.deliver, (one) => void problems.push(one))
    await waitUntil(async () => (await jsm.consumers.info(stream, CONSUMER)).num_waiting > 0)
    cable.stall()
    for (let n = 0; n < 5; n++) await publish(`${n}`, `m-${n}`)
    await waitUntil(async () => (await jsm.consumers.info(stream, CONSUMER)).num_ack_pending === 5)
    // No heartbeat has come for so long that the client gives its request up; the connection stays.
    await waitUntil(() => problems.length > 0, { what: 'the request to fail', timeoutMs: 40_000 })
    cable.flow()
    for (let n = 5; n < 10; n++) await publish(`${n}`, `m-${n}`)
    await waitUntil(async () => (await backlog()) === 0, { timeoutMs: 50_000 })
    expect(recorder.messages.map(({ id }) => id)).toEqual(Array.from({ length: 10 }, (_, n) => `m-${n}`))
  })

  const numbered = (length: number) => Array.from({ length }, (_, n) => `m-${n}`)

  test('what a process that died held comes before anything newer of its key', async () => {
    await addConsumer({ ack_wait: 2e9 })
    for (let n = 0; n < 5; n++) await publish(`${n}`, `m-${n}`)
    expect(await fetchBodies(5)).toHaveLength(5)
    for (let n = 5; n < 8; n++) await publish(`${n}`, `m-${n}`)
    const recorder = new Recorder()
    await source({ key: () => 'k' }).start(recorder.deliver)
    for (let n = 8; n < 10; n++) await publish(`${n}`, `m-${n}`)
    await waitUntil(async () => (await backlog()) === 0)
    expect(recorder.messages.map(({ id }) => id)).toEqual(numbered(10))
  })

  test('what was given back is waited for no longer than until it has come', async () => {
    await addConsumer({ ack_wait: 600e9 })
    for (let n = 0; n < 5; n++) await publish(`${n}`, `m-${n}`)
    const first = new Recorder(async (batch) =>
      batch.map((one) => settled(one, { retryAt: new Date(Date.now() + 2_000) })),
    )
    const one = source({ key: () => 'k' })
    await one.start(first.deliver)
    await waitUntil(() => first.batches.length > 0)
    await waitUntil(async () => (await jsm.consumers.info(stream, CONSUMER)).num_ack_pending === 5)
    await one.stop()
    for (let n = 5; n < 10; n++) await publish(`${n}`, `m-${n}`)
    const recorder = new Recorder()
    await source({ key: () => 'k' }).start(recorder.deliver)
    await waitUntil(async () => (await backlog()) === 0)
    expect(recorder.messages.map(({ id }) => id)).toEqual(numbered(10))
  })

  test('what another process works on is not waited for', async () => {
    await addConsumer({ ack_wait: 600e9 })
    for (let n = 0; n < 3; n++) await publish(`${n}`, `m-${n}`)
    const { passed, open } = gate()
    const busy = new Recorder(async () => passed)
    await source({ batch: 1 }).start(busy.deliver)
    // One is with the box, one was fetched ahead, and it asks for no more.
    await waitUntil(async () => (await jsm.consumers.info(stream, CONSUMER)).num_ack_pending === 2)
    const recorder = new Recorder()
    await source().start(recorder.deliver)
    await waitUntil(async () => (await jsm.consumers.info(stream, CONSUMER)).num_ack_pending === 3)
    expect(recorder.messages).toEqual([])
    open()
    await waitUntil(async () => (await backlog()) === 0)
    expect(recorder.messages.map(({ id }) => id)).toEqual(['m-2'])
  })

  test('a failure without a time of its own comes again later each time', async () => {
    await addConsumer()
    await publish('1', 'm')
    const times: number[] = []
    const recorder = new Recorder(async (batch) => {
      times.push(performance.now())
      const error = { name: 'Error', message: 'no' }
      if (times.length < 4) return batch.map(({ id }) => ({ id, ack: false, status: 'failed', error, consumers: [] }))
    })
    await source().start(recorder.deliver)
    await waitUntil(async () => (await backlog()) === 0)
    const pauses = times.slice(1).map((time, at) => time - times[at]!)
    expect(pauses[2]).toBeGreaterThan(950)
  })

  test.each<[string, object, object, RegExp[]]>([
    ['none', {}, {}, []],
    ['a limit of deliveries', { max_deliver: 3 }, {}, [/max_deliver/]],
    ['little time', { ack_wait: 1e9 }, {}, [/ack_wait/]],
    ['little room', { max_ack_pending: 50 }, {}, [/max_ack_pending/]],
    ['strict order', { max_ack_pending: 1 }, {}, []],
    ['a consumer that is forgotten', { inactive_threshold: 60e9 }, {}, [/inactive_threshold/]],
    ['a stream in memory', {}, { storage: 'memory' }, [/storage/]],
    ['limits', {}, { max_msgs: 100, max_age: 3600e9 }, [/max_msgs 100, max_age 3600 s/]],
    ['limits that refuse', {}, { max_msgs: 100, discard: 'new' }, []],
  ])('warns of what would lose messages: %s', async (_, consumer, config, expected) => {
    await jsm.streams.delete(stream)
    await jsm.streams.add({ name: stream, subjects: [`${stream}.>`], ...config })
    await addConsumer({ ack_wait: 30e9, ...consumer })
    const warnings: string[] = []
    const recorder = new Recorder()
    await source().start(recorder.deliver, undefined, (text) => void warnings.push(text))
    await publish('1', 'm')
    await waitUntil(() => recorder.messages.length === 1 && warnings.length >= expected.length)
    expect(warnings).toEqual(expected.map((one) => expect.stringMatching(one)))
  })

  test('says which message the server has given up', async () => {
    await addConsumer({ max_deliver: 1 })
    await publish('1', 'm')
    // Somebody takes it, and dies.
    await (await jetstream(nc).consumers.get(stream, CONSUMER)).next()
    const reports: unknown[] = []
    await source().start(new Recorder().deliver, (problem) => void reports.push(problem))
    await waitUntil(() => reports.length >= 2)
    expect(reports).toEqual([expect.objectContaining({ code: 'NOT_FOUND' }), undefined])
    expect(String(reports[0])).toContain(`message 1 of ${stream}`)
  })

  test('is not back because it says which message the server has given up', async () => {
    await addConsumer()
    const reports: unknown[] = []
    await source().start(new Recorder().deliver, (problem) => void reports.push(problem))
    await jsm.streams.delete(stream)
    await waitUntil(() => reports.at(-1) !== undefined)
    const before = reports.length
    const advisory = JSON.stringify({ stream_seq: 7, deliveries: 1 })
    nc.publish(`$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.${stream}.${CONSUMER}`, advisory)
    await waitUntil(() => reports.slice(before).some((problem) => String(problem).includes('message 7')))
    expect(reports.slice(before)).not.toContain(undefined)
  })

  test('says when those that wait leave no room for others', async () => {
    await addConsumer({ max_ack_pending: 3 })
    for (let n = 0; n < 4; n++) await publish(`${n}`, `m-${n}`)
    const later = { retryAt: new Date(Date.now() + 3_600_000) }
    const recorder = new Recorder(async (batch) => batch.map((one) => settled(one, later)))
    const warnings = new Set<string>()
    await source({ batch: 1 }).start(recorder.deliver, undefined, (text) => void warnings.add(text))
    await waitUntil(() => [...warnings].some((text) => text.startsWith('nothing more is fetched')))
    expect(recorder.messages).toHaveLength(3)
  })

  test('gives back what it fetched ahead when it is stopped', async () => {
    await addConsumer({ ack_wait: 600e9 })
    for (let n = 0; n < 10; n++) await publish(`${n}`, `m-${n}`)
    const { passed, open } = gate()
    const recorder = new Recorder(async () => passed)
    const one = source({ batch: 2 })
    await one.start(recorder.deliver)
    const ahead = async () => (await jsm.consumers.info(stream, CONSUMER)).num_ack_pending - recorder.messages.length
    await waitUntil(async () => recorder.batches.length > 0 && (await ahead()) > 0)
    const stopping = one.stop()
    open()
    await stopping
    const other = new Recorder()
    await source().start(other.deliver)
    await waitUntil(async () => (await backlog()) === 0, { what: 'the other to get the rest at once' })
    expect(new Set([...recorder.messages, ...other.messages].map(({ id }) => id)).size).toBe(10)
  })

  test('gives a key back in its order when it is stopped while the first of it waits', async () => {
    await addConsumer({ ack_wait: 600e9 })
    await publish('0', 'm-0')
    const later = { retryAt: new Date(Date.now() + 2_000) }
    const recorder = new Recorder(async (batch) => batch.map((one) => settled(one, later)))
    const one = source({ key: () => 'k' })
    await one.start(recorder.deliver)
    await waitUntil(() => recorder.batches.length > 0)
    for (let n = 1; n < 5; n++) await publish(`${n}`, `m-${n}`)
    await waitUntil(async () => (await jsm.consumers.info(stream, CONSUMER)).num_ack_pending === 5)
    await one.stop()
    expect(recorder.messages).toHaveLength(1)
    expect(await fetchBodies(5)).toEqual(['0', '1', '2', '3', '4'])
  })

  test('gives all of it back at once when it is stopped while it waits for more', async () => {
    await addConsumer({ ack_wait: 600e9 })
    await publish('0', 'm-0')
    const { passed, open } = gate()
    const recorder = new Recorder(async () => passed)
    const one = source()
    await one.start(recorder.deliver)
    await waitUntil(() => recorder.batches.length > 0)
    for (let n = 1; n < 5; n++) await publish(`${n}`, `m-${n}`)
    await waitUntil(async () => (await jsm.consumers.info(stream, CONSUMER)).num_ack_pending === 5)
    const stopping = one.stop()
    open()
    await stopping
    expect(await fetchBodies(4)).toEqual(['1', '2', '3', '4'])
  })

  test('finds its consumer again when that was deleted, and says so', async () => {
    const recorder = new Recorder()
    const reports: unknown[] = []
    const assert = { stream: { subjects: [`${stream}.>`] }, consumer: { ack_wait: 1e9 } }
    await source({ assert }).start(recorder.deliver, (problem) => void reports.push(problem))
    await publish('1', 'before')
    await waitUntil(async () => (await backlog()) === 0)
    await jsm.consumers.delete(stream, CONSUMER)
    await waitUntil(() => reports.length >= 2, { what: 'the loss and the return', timeoutMs: 90_000 })
    await publish('2', 'after')
    await waitUntil(() => recorder.messages.some(({ id }) => id === 'after'))
    expect(reports[0]).toBeInstanceOf(Error)
    expect(reports.at(-1)).toBeUndefined()
  })

  test('skips nothing when its consumer is made anew that was to begin with new messages', async () => {
    await publish('0', 'history')
    const recorder = new Recorder()
    await source({ assert: { consumer: { deliver_policy: 'new' } } }).start(recorder.deliver)
    await publish('1', 'before')
    await waitUntil(() => recorder.messages.length === 1)
    await jsm.consumers.delete(stream, CONSUMER)
    await publish('2', 'between')
    await waitUntil(() => recorder.messages.some(({ id }) => id === 'between'))
    // Nor does it bring what was there before it.
    expect(recorder.messages.map(({ id }) => id)).not.toContain('history')
  })

  test('skips nothing of a stream that is made anew with other messages', async () => {
    for (let n = 0; n < 5; n++) await publish(`${n}`)
    const recorder = new Recorder()
    await source({ assert: { consumer: { deliver_policy: 'new' } } }).start(recorder.deliver)
    await jsm.streams.delete(stream)
    await jsm.streams.add({ name: stream, subjects: [`${stream}.>`] })
    await publish('5', 'first')
    await waitUntil(() => recorder.messages.some(({ id }) => id === 'first'))
  })

  test('finds its stream again when that was deleted', async () => {
    const recorder = new Recorder()
    const assert = { stream: { subjects: [`${stream}.>`] }, consumer: {} }
    await source({ assert }).start(recorder.deliver)
    await jsm.streams.delete(stream)
    await waitUntil(() => jsm.consumers.info(stream, CONSUMER).catch(() => undefined), { timeoutMs: 90_000 })
    await publish('2', 'after')
    await waitUntil(() => recorder.messages.some(({ id }) => id === 'after'))
  })

  test.each([
    ['is missing', undefined, { code: 10_014 }],
    ['pushes', { deliver_subject: 'inbox' }, { code: 'OPTION_INVALID' }],
    ['acknowledges by itself', { ack_policy: 'none' as const, ack_wait: undefined }, { code: 'OPTION_INVALID' }],
  ])('does not start with a consumer that %s', async (_, config, error) => {
    if (config) await addConsumer(config)
    await expect(source().start(new Recorder().deliver)).rejects.toMatchObject(error)
  })

  test('a key that cannot be found out leaves a message with its id, unmapped', async () => {
    await addConsumer()
    await publish('1', 'm')
    const recorder = new Recorder()
    const key = () => {
      throw new Error('no key')
    }
    await source({ key }).start(recorder.deliver)
    await waitUntil(async () => (await backlog()) === 0)
    expect(recorder.messages[0]).toMatchObject({ id: 'm', headers: { 'oncebox-problem': 'key threw: Error: no key' } })
  })
})

describe('a sink', () => {
  const stored = async () => (await jsm.streams.info(stream)).state.messages

  test('publishes a copy that the stream drops', async () => {
    const to = sink()
    expect(await to.publish([event('a'), event('b')])).toEqual([undefined, undefined])
    expect(await to.publish([event('a')])).toEqual([undefined])
    expect(await stored()).toBe(2)
  })

  test('has its events told apart by subject, source and id', async () => {
    const events: [Message, string][] = [
      [event('c', { source: 'a/b' }), 'x'],
      [event('b/c', { source: 'a' }), 'x'],
      [event('b/c', { source: 'a' }), 'y'],
    ]
    for (const [message, word] of events) {
      expect(await sink({ subject: `${stream}.${word}` }).publish([message])).toEqual([undefined])
    }
    expect(await stored()).toBe(3)
  })

  test('puts the type in place of the wildcard', async () => {
    await sink().publish([event('a', { type: 'order.placed' })])
    await sink({ subject: ({ key }) => `${stream}.by-key.${key}` }).publish([event('b', { key: 'k' })])
    const subjects = await Promise.all([1, 2].map((seq) => jsm.streams.getMessage(stream, { seq })))
    expect(subjects.map((one) => one?.subject)).toEqual([`${stream}.order.placed`, `${stream}.by-key.k`])
  })

  test('refuses for good what can be no subject, and what is too large for the server or the stream', async () => {
    const large = event('large', { data: 'x'.repeat(9_000_000) })
    const answers = await sink().publish([event('a'), event('b', { type: 'two words' }), large, event('c')])
    expect(answers).toMatchObject([
      undefined,
      { error: { code: 'OPTION_INVALID' }, retry: false },
      { error: { code: 'MESSAGE_TOO_LARGE' }, retry: false },
      undefined,
    ])
    await jsm.streams.update(stream, { max_msg_size: 1_000 })
    const second = await sink().publish([event('d', { data: 'x'.repeat(2_000) }), event('e')])
    expect(second).toMatchObject([{ error: { code: 10_054 }, retry: false }, undefined])
    expect(await stored()).toBe(3)
  })

  test('tries again what no stream takes, and publishes the rest; nothing after it within its key', async () => {
    const nowhere = `nowhere-${randomUUID()}`
    const to = sink({ subject: ({ type }) => (type === 'lost' ? nowhere : `${stream}.x`) })
    const lost = (id: string) => event(id, { type: 'lost', key: 'k' })
    const answers = await to.publish([event('a'), lost('b'), event('c', { key: 'k' }), event('d')])
    expect(answers.map((answer) => answer?.retry)).toEqual([undefined, true, true, undefined])
    expect(await stored()).toBe(2)
    await jsm.streams.update(stream, { subjects: [`${stream}.>`, nowhere] })
    expect(await to.publish([lost('b')])).toEqual([undefined])
  })

  test.for(['{"ok":true}', '{"stream":"","seq":1}', '{"stream":"other","seq":0}', 'null', 'OK', ''])(
    'takes no answer of somebody else for a confirmation: %j',
    async (reply) => {
      const nowhere = `nowhere-${randomUUID()}`
      const service = nc.subscribe(nowhere, { callback: (_, message) => void message.respond(reply) })
      await nc.flush()
      const to = sink({ subject: ({ type }) => (type === 'lost' ? nowhere : `${stream}.x`) })
      const lost = (id: string) => event(id, { type: 'lost', key: 'k' })
      const answers = await to.publish([event('a'), lost('b'), lost('c')])
      service.unsubscribe()
      expect(answers).toMatchObject([
        undefined,
        { retry: true, down: true, afterMs: 5_000 },
        { retry: true, afterMs: 0 },
      ])
      expect(String(answers[1]!.error)).toContain(`no stream answered for ${nowhere}`)
    },
  )

  test('says that no stream takes a subject to which somebody listens', async () => {
    const nowhere = `nowhere-${randomUUID()}`
    const listener = nc.subscribe(nowhere, { callback: () => undefined })
    await nc.flush()
    const to = sink({ subject: nowhere, timeoutMs: 500 })
    // On a busy machine the server may not even answer which stream there is.
    const answers = await waitUntil(() => to.publish([event('a')]).catch(() => undefined), { timeoutMs: 30_000 })
    listener.unsubscribe()
    expect(answers).toMatchObject([{ retry: true, down: true, afterMs: 5_000 }])
    expect(String(answers[0]!.error)).toContain(`no stream takes ${nowhere}`)
  })

  test('waits for a stream that is full', async () => {
    await jsm.streams.update(stream, { max_msgs: 1, discard: 'new' })
    const answers = await sink().publish([event('a', { key: 'k' }), event('b', { key: 'k' })])
    expect(answers).toMatchObject([undefined, { down: true, retry: true, afterMs: 5_000 }])
  })

  test('makes the stream that it is to assert, also when that is deleted later', async () => {
    await jsm.streams.delete(stream)
    const to = sink({ stream, assert: { stream: { subjects: [`${stream}.>`] } } })
    expect(await to.publish([event('a')])).toEqual([undefined])
    await jsm.streams.delete(stream)
    expect(await to.publish([event('b')])).toMatchObject([{ down: true, afterMs: 5_000 }])
    expect(await to.publish([event('b')])).toEqual([undefined])
  })

  test('rejects in time when the server is there and does not answer, and recovers', async () => {
    const to = sink({ timeoutMs: 500 })
    // On a busy machine an answer may take longer than that.
    const untilPublished = (...batch: Message[]): Promise<unknown> =>
      waitUntil(
        () =>
          to.publish(batch).then(
            (answers) => answers.every((answer) => answer === undefined),
            () => false,
          ),
        { timeoutMs: 30_000 },
      )
    await untilPublished(event('a'))
    await freeze(service.pid)
    try {
      await expect(to.publish([event('b'), event('c')])).rejects.toThrow()
    } finally {
      unfreeze(service.pid)
    }
    await untilPublished(event('b'), event('c'))
    // What was published in vain has arrived after all, and was known.
    await waitUntil(async () => (await stored()) === 3)
  })
})

describe('options', () => {
  const url = 'nats://localhost:4222'
  test.each<[string, object | undefined]>([
    ['none at all', undefined],
    ['neither a consumer nor a subject', { url }],
    ['no url', { subject: 'a' }],
    ['an empty list of urls', { url: [], subject: 'a' }],
    ['a url of something else', { url: 'http://localhost:4222', subject: 'a' }],
    ['one such url among others', { url: [url, 'amqp://localhost'], stream: 's', consumer: 'c' }],
    ['an unknown one', { url, subject: 'a', retries: 3 }],
    ['one of sources for a sink', { url, subject: 'a', batch: 3 }],
    ['one of sinks for a source', { url, stream: 's', consumer: 'c', timeoutMs: 3 }],
    ['a consumer without its stream', { url, consumer: 'c' }],
    ['a stream with a dot', { url, stream: 'a.b', consumer: 'c' }],
    ['a subject with a space', { url, subject: 'a b' }],
    ['a wildcard in the middle', { url, subject: 'a.>.b' }],
    ['another wildcard', { url, subject: 'a.*' }],
    ['no room for a batch', { url, stream: 's', consumer: 'c', batch: 0 }],
    ['a key that is no function', { url, stream: 's', consumer: 'c', key: 'k' }],
    ['a codec in structured mode', { url, subject: 'a', mode: 'structured', codec: codec() }],
    ['a stream to assert without its name', { url, subject: 'a', assert: { stream: {} } }],
    ['something else to assert', { url, subject: 'a', assert: { queue: {} } }],
  ])('%s is refused', (_, options) => {
    expect(() => nats(options as NatsSinkOptions)).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
  })

  test('a source and a sink in one', () => {
    const both = nats({ url, stream: 's', consumer: 'c', subject: 'a', name: 'both' })
    expect(Object.keys(both).sort()).toEqual(['close', 'name', 'publish', 'start', 'stop'])
  })
})

function codec() {
  return { contentType: 'text/plain', decode: String, encode: () => Buffer.from('') }
}
