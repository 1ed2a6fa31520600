/** A queue as a sink, against a real server: what is sent, in which order, and what becomes of what SQS refuses. */
import { ReceiveMessageCommand } from '@aws-sdk/client-sqs'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Codec, Incoming, Message } from 'oncebox'
import type { SqsClient, SqsMessage, SqsQueue } from 'oncebox/sqs'
import { freeze, unfreeze } from '../../support/freeze.js'
import { waitUntil } from '../../support/wait.js'
import * as adapter from './adapter.mjs'
import { collect, event, useService } from './open.js'

const given = useService()
const events = (count: number, fields: (n: number) => Partial<Message> = () => ({})): Message[] =>
  Array.from({ length: count }, (_, n) => event(`e${n}`, fields(n)))

function open(settings: adapter.Settings, options: Parameters<typeof adapter.sink>[1] = {}): SqsQueue {
  const sink = adapter.sink(settings, options)
  onTestFinished(() => sink.close())
  return sink
}

async function receiveAll(settings: adapter.Settings, count: number): Promise<readonly Incoming[]> {
  const source = adapter.source(settings)
  const seen = await collect(source)
  await waitUntil(() => seen.messages.length >= count)
  await source.stop()
  return seen.messages
}

/** Counts requests, and lets a test answer them. */
function watch(answer: (sent: { Id: string; MessageBody: string }[]) => object | undefined): {
  client: SqsClient
  sizes: number[]
} {
  const sizes: number[] = []
  const client: SqsClient = {
    async send(command: { input: { Entries?: { Id: string; MessageBody: string }[] } }, options) {
      const { Entries = [] } = command.input
      sizes.push(Entries.length)
      return answer(Entries) ?? given.client.send(command as never, options)
    },
  }
  return { client, sizes }
}

describe('publishing', () => {
  test('events arrive, ten in a request', async () => {
    const settings = await adapter.create(given.service.url)
    const { client, sizes } = watch(() => undefined)
    expect(await open(settings, { client }).publish(events(25))).toEqual(Array(25).fill(undefined))
    expect(sizes).toEqual([10, 10, 5])
    const messages = await receiveAll(settings, 25)
    expect(new Set(messages.map(({ id }) => id)).size).toBe(25)
  })

  test('events of a key arrive in a FIFO queue in their order', async () => {
    const settings = await adapter.create(given.service.url, { fifo: true })
    await open(settings).publish(events(30, (n) => ({ key: `k${n % 3}` })))
    const messages = await receiveAll(settings, 30)
    for (const key of ['k0', 'k1', 'k2']) {
      const numbers = messages.filter((message) => message.key === key).map(({ id }) => Number(id!.slice(1)))
      expect(numbers).toEqual([...numbers].sort((a, b) => a - b))
      expect(numbers).toHaveLength(10)
    }
  })

  test('an event that is published again is in a FIFO queue once', async () => {
    const settings = await adapter.create(given.service.url, { fifo: true })
    const sink = open(settings)
    await sink.publish(events(12))
    await sink.publish(events(12))
    expect(await adapter.backlog(settings)).toBe(12)
  })

  test('large events share no request', async () => {
    const settings = await adapter.create(given.service.url)
    const { client, sizes } = watch(() => undefined)
    const large = events(4, () => ({ data: 'x'.repeat(200_000) }))
    expect(await open(settings, { client }).publish([...large, ...events(2)])).toEqual(Array(6).fill(undefined))
    expect(sizes).toHaveLength(4)
  })
})

describe('what SQS refuses', () => {
  test('an event that is too large is dead, and only what is behind it in its key waits', async () => {
    const settings = await adapter.create(given.service.url)
    const batch = [
      event('a1', { key: 'a' }),
      event('a2', { key: 'a', data: 'x'.repeat(1_100_000) }),
      event('a3', { key: 'a' }),
      event('b1', { key: 'b' }),
    ]
    const answers = await open(settings).publish(batch)
    expect(answers.map((answer) => answer?.retry)).toEqual([undefined, false, true, undefined])
    expect(answers[1]!.error).toMatchObject({ code: 'MessageTooLong' })
    expect(await adapter.backlog(settings)).toBe(2)
  })

  test('one that the queue itself finds too large is dead as well', async () => {
    const attributes = { MaximumMessageSize: '1024' }
    const settings = await adapter.create(given.service.url, { attributes })
    const answers = await open(settings).publish([event('a'), event('b', { data: 'x'.repeat(2_000) }), event('c')])
    expect(answers.map((answer) => answer?.retry)).toEqual([undefined, false, undefined])
  })

  test('an entry that failed on the side of SQS is tried again, and nothing of its key is sent behind it', async () => {
    const settings = await adapter.create(given.service.url)
    const { client } = watch((sent) => {
      const failed = sent.filter(({ MessageBody }) => MessageBody.includes('"a1"'))
      return failed.length === 0
        ? undefined
        : { Failed: failed.map(({ Id }) => ({ Id, Code: 'InternalError', SenderFault: false })) }
    })
    const answers = await open(settings, { client }).publish([event('a1', { key: 'a' }), event('a2', { key: 'a' })])
    expect(answers.map((answer) => answer?.retry)).toEqual([true, true])
    expect(await adapter.backlog(settings)).toBe(0)
  })

  test.for([
    ['nothing', (): object => ({})],
    ['that one failed that was not sent', (): object => ({ Failed: [{ Id: 'other', Code: 'InternalError' }] })],
  ] as const)('an entry of which SQS says %s is tried again, and nothing of its key behind it', async ([, further]) => {
    const settings = await adapter.create(given.service.url)
    const requests: string[][] = []
    const { client } = watch((sent) => {
      requests.push(sent.map(({ MessageBody }) => (JSON.parse(MessageBody) as Message).id))
      const taken = sent.filter(({ MessageBody }) => !MessageBody.includes('"a1"'))
      return { Successful: taken.map(({ Id }) => ({ Id })), ...further() }
    })
    const batch = [event('a1', { key: 'a' }), event('a2', { key: 'a' }), event('b1')]
    const answers = await open(settings, { client }).publish(batch)
    expect(answers).toMatchObject([{ retry: true, down: true }, { retry: true, afterMs: 0 }, undefined])
    expect(answers[0]).not.toHaveProperty('afterMs')
    expect(requests).toEqual([['a1', 'b1']])
  })

  test('an answer that says nothing of any entry is none: the batch waits, and what was confirmed before stays so', async () => {
    const settings = await adapter.create(given.service.url)
    const silent = watch(() => ({ $metadata: {} }))
    const rejected = open(settings, { client: silent.client }).publish(events(12))
    await expect(rejected).rejects.toMatchObject({ code: 'InvalidAnswer' })
    let requests = 0
    const { client } = watch((sent) => (requests++ === 0 ? { Successful: sent.map(({ Id }) => ({ Id })) } : {}))
    // Of one key, so that the requests come one after the other.
    const answers = await open(settings, { client }).publish(events(3, () => ({ key: 'k' })))
    expect(answers).toMatchObject([undefined, { retry: true, afterMs: 0 }, { retry: true, afterMs: 0 }])
    expect(requests).toBe(2)
  })

  test('a key of KMS that cannot be used is not for good, even if SQS calls it the fault of the sender', async () => {
    const settings = await adapter.create(given.service.url)
    const { client } = watch((sent) => ({
      Failed: sent.map(({ Id }) => ({ Id, Code: 'KMS.AccessDeniedException', SenderFault: true })),
    }))
    const answers = await open(settings, { client }).publish(events(2))
    expect(answers).toMatchObject(events(2).map(() => ({ retry: true, down: true, afterMs: 5_000 })))
  })

  test('if a whole request is refused for its contents, only the one to blame is dead', async () => {
    const settings = await adapter.create(given.service.url)
    const { client } = watch((sent) => {
      if (!sent.some(({ MessageBody }) => MessageBody.includes('"e3"'))) return undefined
      throw Object.assign(new Error('invalid'), { name: 'InvalidMessageContents' })
    })
    const answers = await open(settings, { client }).publish(events(8))
    expect(answers.map((answer) => answer?.retry)).toEqual(events(8).map(({ id }) => (id === 'e3' ? false : undefined)))
    expect(await adapter.backlog(settings)).toBe(7)
  })

  test('an event that its codec cannot write is dead', async () => {
    const settings = await adapter.create(given.service.url)
    const codec: Codec = {
      contentType: 'text/plain',
      decode: () => null,
      encode: (data) => {
        if ((data as { id: string }).id === 'e1') throw new Error('no')
        return Buffer.from('fine')
      },
    }
    const answers = await open(settings, { codec }).publish(events(3))
    expect(answers.map((answer) => answer?.retry)).toEqual([undefined, false, undefined])
  })
})

describe('a queue out of reach', () => {
  test('the whole batch comes back; later it goes', async () => {
    const settings = await adapter.create(given.service.url)
    const sink = open(settings)
    await given.service.kill()
    await expect(sink.publish(events(3))).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    await given.service.resume()
    expect(await sink.publish(events(3))).toEqual([undefined, undefined, undefined])
  })

  test('a queue that does not exist is nobody’s fault', async () => {
    const settings = await adapter.create(given.service.url)
    const sink = open({ ...settings, queueUrl: `${settings.queueUrl}-none` })
    await expect(sink.publish(events(3))).rejects.toMatchObject({ name: 'QueueDoesNotExist' })
  })

  test('a server that does not answer is given up after the timeout', async () => {
    const settings = await adapter.create(given.service.url)
    const sink = open(settings, { timeoutMs: 500 })
    await freeze(given.service.pid)
    try {
      const began = performance.now()
      await expect(sink.publish(events(3))).rejects.toMatchObject({ code: 'Timeout' })
      expect(performance.now() - began).toBeLessThan(5_000)
    } finally {
      unfreeze(given.service.pid)
    }
  })

  test('a slow queue is asked for nothing more when half of the timeout is over: it would be cut off', async () => {
    const settings = await adapter.create(given.service.url)
    let requests = 0
    const client: SqsClient = {
      async send({ input: { Entries } }: { input: { Entries: { Id: string }[] } }, options) {
        const halfway = performance.now() + 500
        if (requests++ === 0) await waitUntil(() => performance.now() > halfway)
        else await new Promise((_, reject) => options!.abortSignal!.addEventListener('abort', reject))
        return { Successful: Entries.map(({ Id }) => ({ Id })) }
      },
    }
    // Of one key, so that the requests come one after the other.
    const answers = await open(settings, { client, timeoutMs: 1_000 }).publish(events(3, () => ({ key: 'k' })))
    const rest = { error: { code: 'PUBLISH_TIMEOUT' }, retry: true, afterMs: 0 }
    expect(answers).toMatchObject([undefined, rest, rest])
    expect(requests).toBe(1)
  })

  test('a request that is taken apart is not gone on with when the queue is lost', async () => {
    const settings = await adapter.create(given.service.url)
    const { client, sizes } = watch((sent) => {
      if (sent.length > 1) throw Object.assign(new Error('too long'), { name: 'BatchRequestTooLong' })
      throw Object.assign(new Error('lost'), { code: 'ECONNRESET' })
    })
    await expect(open(settings, { client }).publish(events(5))).rejects.toThrow('lost')
    expect(sizes).toEqual([5, 1])
  })

  test('what was confirmed before it was lost stays confirmed', async () => {
    const settings = await adapter.create(given.service.url)
    let requests = 0
    const { client } = watch(() => {
      if (requests++ > 0) throw Object.assign(new Error('lost'), { code: 'ECONNRESET' })
      return undefined
    })
    const sink = open(settings, { client })
    // Of one key, so that the requests come one after the other.
    const answers = await sink.publish(events(3, () => ({ key: 'k' })))
    expect(answers.map((answer) => answer?.retry)).toEqual([undefined, true, true])
  })

  test('closing ends what is on its way', async () => {
    const settings = await adapter.create(given.service.url)
    let begun = false
    const client: SqsClient = {
      send: (_, options) =>
        new Promise((_resolve, reject) => {
          begun = true
          options!.abortSignal!.addEventListener('abort', () => reject(new Error('aborted')))
        }),
    }
    const sink = adapter.sink(settings, { client, timeoutMs: 600_000 })
    const publishing = expect(sink.publish(events(1))).rejects.toMatchObject({ code: 'STOPPED' })
    await waitUntil(() => begun)
    await sink.close()
    await publishing
  })
})

describe('what an event looks like', () => {
  const headers = {
    traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
    'x-tenant': 'Zürich 😀',
    empty: '',
    control: 'a\u0001b',
  }
  const rich = event('e1', {
    key: 'K 1\u00e9',
    subject: 'order 7',
    time: new Date('2026-01-02T03:04:05.678Z'),
    data: { big: 1, text: 'a\u0000b\u001f \uffff 😀 "quoted"' },
    correlationId: 'c1',
    causationId: 'c0',
    headers,
  })
  const many = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`header${n}`, `value ${n}`]))

  test.each(['structured', 'binary'] as const)('everything survives in %s mode', async (mode) => {
    for (const fifo of [false, true]) {
      const settings = await adapter.create(given.service.url, { fifo })
      const sent = [rich, event('e2', { headers: many, key: 'k' }), event('e3')]
      expect(await open(settings, { mode }).publish(sent)).toEqual([undefined, undefined, undefined])
      const received = new Map((await receiveAll(settings, 3)).map((message) => [message.id, message]))
      const first = received.get('e1')!
      expect(first).toMatchObject({ source: 'shop', type: 'order.placed', key: rich.key, subject: 'order 7' })
      expect(new Date(first.time!)).toEqual(rich.time)
      expect(first.headers).toMatchObject({ ...headers, correlationid: 'c1', causationid: 'c0' })
      expect(JSON.parse(Buffer.from(first.body!).toString())).toEqual(rich.data)
      expect(received.get('e2')!.headers).toMatchObject(many)
      expect(received.get('e3')!.key).toBeUndefined()
    }
  })

  test.each(['structured', 'binary'] as const)('bytes of a codec survive in %s mode', async (mode) => {
    const codec: Codec = {
      contentType: 'text/reversed',
      decode: (body) => JSON.parse(Buffer.from(body).reverse().toString()) as unknown,
      encode: (data) => Buffer.concat([Buffer.from(JSON.stringify(data))]).reverse(),
    }
    const settings = await adapter.create(given.service.url)
    await open(settings, { mode, codec }).publish([rich, event('e2', { headers: many })])
    const source = adapter.source(settings, { codec })
    const seen = await collect(source)
    await waitUntil(() => seen.messages.length === 2)
    await source.stop()
    const received = new Map(seen.messages.map((message) => [message.id, message]))
    expect(received.get('e1')).toMatchObject({ key: rich.key, data: rich.data })
    expect(received.get('e1')!.headers).toMatchObject(headers)
    expect(received.get('e2')!.headers).toMatchObject(many)
  })

  test('an event in structured mode is one JSON document, and says so', async () => {
    const settings = await adapter.create(given.service.url)
    await open(settings).publish([event('e1', { key: 'k' })])
    const { Messages } = await given.client.send(
      new ReceiveMessageCommand({ QueueUrl: settings.queueUrl, MessageAttributeNames: ['All'] }),
    )
    const raw = Messages![0] as SqsMessage
    expect(Object.keys(raw.MessageAttributes!)).toEqual(['content-type'])
    expect(JSON.parse(raw.Body!)).toMatchObject({ specversion: '1.0', id: 'e1', partitionkey: 'k', data: { id: 'e1' } })
  })

  test('groups are keys where a key can be one, else a digest; without a key each event is a group', async () => {
    const settings = await adapter.create(given.service.url, { fifo: true })
    const keys = ['plain', 'not ascii é', 'x'.repeat(200), undefined, undefined]
    await open(settings).publish(keys.map((key, n) => event(`e${n}`, key === undefined ? {} : { key })))
    const { Messages = [] } = await given.client.send(
      new ReceiveMessageCommand({
        QueueUrl: settings.queueUrl,
        MaxNumberOfMessages: 10,
        MessageSystemAttributeNames: ['All'],
      }),
    )
    const groups = Messages.map(({ Attributes }) => Attributes!.MessageGroupId!)
    expect(new Set(groups).size).toBe(5)
    expect(groups.filter((group) => group.startsWith('oncebox:'))).toHaveLength(4)
    expect(groups).toContain('plain')
  })
})
