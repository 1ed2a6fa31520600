/** Kafka as a sink: an answer per message, in order, in bounded time. */
import { createServer, type Socket } from 'node:net'
import kafkajs, { type Kafka } from 'kafkajs'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Incoming, Message, Sink } from 'oncebox'
import { freePort } from '../../../tools/services/ports.mjs'
import { waitUntil } from '../../support/wait.js'
import { backlog, clientOf, sink, source, withAdmin, type Settings } from './adapter.mjs'
import { inConfluentShape } from './confluent.js'
import { event, read, useBroker } from './fixture.js'

const broker = useBroker()
const TIMEOUT = { timeout: 300_000 }
const PATIENCE = { timeoutMs: 60_000 }

function open(settings: Settings, options: object = {}): Sink & { readonly name?: string } {
  const own = sink(settings, options)
  onTestFinished(() => own.close())
  return own
}

/** Everything in the topic, in order within each key. */
async function sent(settings: Settings): Promise<Incoming[]> {
  await using reader = await read(source(settings))
  await waitUntil(async () => (await backlog(settings)) === 0, PATIENCE)
  return [...reader.messages]
}

/** What was sent of a key, each id where it was first. */
function idsOf(messages: readonly Incoming[], key: string): (string | undefined)[] {
  return [...new Set(messages.filter((message) => message.key === key).map(({ id }) => id))]
}

/** A broker with the limit that Kafka has by default. */
async function createWithLimit(bytes = 1_048_588): Promise<Settings> {
  const settings = await broker.create()
  const configEntries = [{ name: 'max.message.bytes', value: String(bytes) }]
  const resources = [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: settings.topic, configEntries }]
  await withAdmin(settings.url, (admin) => admin.alterConfigs({ validateOnly: false, resources }))
  return settings
}

describe('publish', TIMEOUT, () => {
  test('an event arrives as the CloudEvent that it is, under its key, and is published in order', async () => {
    const settings = await broker.create()
    const own = open(settings)
    const time = new Date('2020-01-02T03:04:05.678Z')
    const headers = { traceparent: '00-1', 'X-Own': 'ä' }
    const batch = Array.from({ length: 300 }, (_, n) => event(`e${n}`, { key: `k${n % 7}`, time, headers }))
    expect(await own.publish(batch)).toEqual(batch.map(() => undefined))
    const messages = await sent(settings)
    expect(messages).toHaveLength(300)
    expect(messages.find(({ id }) => id === 'e0')).toMatchObject({ source: 'shop', type: 'note', key: 'k0', headers })
    expect(new Date(messages[0]!.time!)).toEqual(time)
    for (let k = 0; k < 7; k++) {
      const expected = batch.filter(({ key }) => key === `k${k}`).map(({ id }) => id)
      expect(idsOf(messages, `k${k}`)).toEqual(expected)
    }
  })

  test('an old event is not dated back, or the topic would delete it', async () => {
    const settings = await broker.create()
    await open(settings).publish([event('old', { time: new Date('2001-01-01') })])
    let timestamp: number | undefined
    const map = (raw: { message: { timestamp: string } }, message: Incoming): Incoming => {
      timestamp = Number(raw.message.timestamp)
      return message
    }
    await using reader = await read(source(settings, { map }))
    await waitUntil(() => reader.messages.length === 1, PATIENCE)
    expect(timestamp).toBeGreaterThan(Date.parse('2020-01-01'))
  })

  test('more than a request holds goes in several requests', async ({ skip }) => {
    skip(broker.isMock, 'kafka-mock has no limits')
    const settings = await createWithLimit()
    const data = 'x'.repeat(100_000)
    const batch = Array.from({ length: 30 }, (_, n) => event(`e${n}`, { key: 'k', data }))
    expect(await open(settings).publish(batch)).toEqual(batch.map(() => undefined))
    // Each once: a request that is too large would be cut in halves, and parts of it sent twice.
    expect((await sent(settings)).map(({ id }) => id)).toEqual(batch.map(({ id }) => id))
  })

  test('what cannot be written is dead, and the rest is sent', async () => {
    const settings = await broker.create()
    const codec = {
      contentType: 'text/plain',
      decode: () => null,
      encode(data: unknown): Uint8Array {
        if (data === 'bad') throw new Error('no')
        return Buffer.from(String(data))
      },
    }
    const batch = [event('1'), event('2', { data: 'bad', key: 'k' }), event('3', { key: 'k' }), event('4')]
    expect(await open(settings, { codec }).publish(batch)).toEqual([
      undefined,
      { error: expect.any(Error) as unknown, retry: false },
      { error: expect.any(Error) as unknown, retry: true, afterMs: 0 },
      undefined,
    ])
  })
})

describe.for([false, true])('with idempotent: %s', TIMEOUT, (idempotent) => {
  /** kafkajs is not asked for it. */
  const options = ({ url }: Settings): object =>
    idempotent ? { idempotent, client: inConfluentShape(clientOf(url)) } : { idempotent }

  test('of a message that is too large only that one is refused, and what follows in its key waits', async ({
    skip,
  }) => {
    skip(broker.isMock, 'kafka-mock has no limits, and no idempotent producer')
    // Small enough to share a request with others, and too large for the topic.
    const settings = await createWithLimit(100_000)
    const own = open(settings, options(settings))
    const batch: Message[] = []
    for (let n = 0; n < 60; n++) batch.push(event(`e${n}`, { key: `k${n % 6}` }))
    batch[20] = event('e20', { key: 'k2', data: 'x'.repeat(300_000) })
    const answers = await own.publish(batch)
    const waits = batch.map(({ key }, n) => key === 'k2' && n > 20)
    answers.forEach((answer, n) => {
      if (n === 20) expect(answer).toMatchObject({ retry: false })
      else expect(answer).toEqual(waits[n] ? { error: answers[20]!.error, retry: true, afterMs: 0 } : undefined)
    })
    // Numbers of what was refused are not given to these, or the broker would drop them as repetitions.
    const more = Array.from({ length: 60 }, (_, n) => event(`f${n}`, { key: `k${n % 6}` }))
    expect(await own.publish(more)).toEqual(more.map(() => undefined))
    const messages = await sent(settings)
    for (let k = 0; k < 6; k++) {
      const expected = [...batch.filter((_, n) => n !== 20 && !waits[n]), ...more]
      expect(idsOf(messages, `k${k}`)).toEqual(expected.filter(({ key }) => key === `k${k}`).map(({ id }) => id))
    }
  })

  test('it can be closed, and opens again', async ({ skip }) => {
    skip(broker.isMock && idempotent, 'kafka-mock has no idempotent producer')
    const settings = await broker.create()
    const own = open(settings, options(settings))
    await own.publish([event('1')])
    await own.close()
    expect(await own.publish([event('2')])).toEqual([undefined])
    expect((await sent(settings)).map(({ id }) => id).sort()).toEqual(['1', '2'])
  })
})

describe('topics', TIMEOUT, () => {
  test.for([
    ['kafkajs', (client: Kafka): object => client],
    ['Confluent’s shape', inConfluentShape],
  ] as const)(
    'each event may have one, and a missing one concerns its events alone, with %s',
    async ([, shape], context) => {
      const { skip } = context
      skip(broker.isMock, 'kafka-mock makes topics as they are asked for')
      const [one, other] = [await broker.create(), await broker.create()]
      const client = shape(clientOf(one.url))
      const own = open(one, { client, topic: ({ subject }: Message) => subject! })
      const to = (id: string, topic: string, key?: string): Message =>
        event(id, { subject: topic, ...(key && { key }) })
      const batch = [
        to('1', one.topic),
        to('2', 'none', 'k'),
        to('3', other.topic),
        to('4', one.topic, 'k'),
        to('5', 'none'),
      ]
      const answers = await own.publish(batch)
      expect(answers.map((answer) => answer?.retry)).toEqual([undefined, true, undefined, true, true])
      expect(new Set((await sent(one)).map(({ id }) => id))).toEqual(new Set(['1']))
      expect(new Set((await sent(other)).map(({ id }) => id))).toEqual(new Set(['3']))
    },
  )

  test('if there is but one, and it is missing, nobody is to blame', async ({ skip }) => {
    skip(broker.isMock, 'kafka-mock makes topics as they are asked for')
    const settings = await broker.create()
    await expect(open(settings, { topic: 'none' }).publish([event('1')])).rejects.toThrow()
  })
})

describe('a broker that is away', TIMEOUT, () => {
  test('makes publish reject as a whole', async () => {
    const retry = { retries: 1 }
    const client = new kafkajs.Kafka({ brokers: ['127.0.0.1:1'], logLevel: kafkajs.logLevel.NOTHING, retry })
    await expect(open(await broker.create(), { client }).publish([event('1'), event('2')])).rejects.toThrow()
  })

  test('and comes back is sent to by the same sink', async ({ skip }) => {
    skip(broker.isMock, 'kafka-mock forgets all when it is restarted')
    skip(broker.service.kind === 'given', 'the broker is not ours to restart')
    const settings = await broker.create()
    const own = open(settings)
    const batch = (name: string): Message[] => Array.from({ length: 20 }, (_, n) => event(`${name}${n}`, { key: 'k' }))
    await own.publish(batch('before'))
    await broker.service.restart()
    const isSent = (): Promise<boolean> =>
      own.publish(batch('after')).then(
        (answers) => answers.every((answer) => answer === undefined),
        () => false,
      )
    await waitUntil(isSent, PATIENCE)
    expect(idsOf(await sent(settings), 'k')).toEqual([...batch('before'), ...batch('after')].map(({ id }) => id))
  })

  test('or one that does not answer, within timeoutMs', async () => {
    await using silent = await listenSilently()
    const settings = { ...(await broker.create()), url: `127.0.0.1:${silent.port}` }
    const before = performance.now()
    await expect(open(settings, { timeoutMs: 500 }).publish([event('1')])).rejects.toMatchObject({ code: 'ETIMEDOUT' })
    expect(performance.now() - before).toBeLessThan(3_000)
  })
})

async function listenSilently(): Promise<{ port: number; [Symbol.asyncDispose](): Promise<void> }> {
  const sockets = new Set<Socket>()
  const port = await freePort()
  const server = createServer((socket) => sockets.add(socket.on('error', () => undefined)))
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve())
      for (const socket of sockets) socket.destroy()
    })
  return { port, [Symbol.asyncDispose]: close }
}
