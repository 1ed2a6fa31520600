/** A queue as a source, against a real server: what is deleted, what comes back and when, and whose a message is. */
import { createHash, randomUUID } from 'node:crypto'
import { describe, expect, onTestFinished, test } from 'vitest'
import { OnceboxError, type Incoming, type Source } from 'oncebox'
import { sqs, type SqsClient, type SqsMessage } from 'oncebox/sqs'
import { freeze, unfreeze } from '../../support/freeze.js'
import { waitUntil } from '../../support/wait.js'
import { gate } from '../recorder.js'
import * as adapter from './adapter.mjs'
import type { Sent } from './adapter.mjs'
import { collect, inFlight, outcome, useService, visible } from './open.js'

const given = useService()
const texts = (count: number): Sent[] => Array.from({ length: count }, (_, n) => ({ body: JSON.stringify({ n }) }))
const numberOf = (message: { body?: string | Uint8Array }): number =>
  (JSON.parse(Buffer.from(message.body!).toString()) as { n: number }).n

function running<S extends Source>(source: S): S {
  onTestFinished(() => source.stop())
  return source
}

describe('deleting', () => {
  test('what the box acknowledged is deleted, the rest comes back, marked as redelivered', async () => {
    const settings = await adapter.create(given.service.url)
    await adapter.publish(settings, texts(20))
    const seen = await collect(running(adapter.source(settings)), (batch) =>
      batch.map((message) => outcome(numberOf(message) % 2 === 0 || message.redelivered === true, message.id)),
    )
    await waitUntil(async () => (await adapter.backlog(settings)) === 0, { what: 'an empty queue' })
    const again = seen.messages.filter(({ redelivered }) => redelivered)
    expect(again.map(numberOf).sort((a, b) => a - b)).toEqual([1, 3, 5, 7, 9, 11, 13, 15, 17, 19])
    expect(seen.messages).toHaveLength(30)
  })

  test('nothing is deleted while the box has not answered', async () => {
    const settings = await adapter.create(given.service.url)
    await adapter.publish(settings, texts(5))
    let answer = (): void => undefined
    const held = new Promise<void>((resolve) => (answer = resolve))
    const source = running(adapter.source(settings))
    const seen = await collect(source, async (batch) => {
      await held
      return batch.map(({ id }) => outcome(true, id))
    })
    await waitUntil(() => seen.messages.length === 5)
    expect(await adapter.backlog(settings)).toBe(5)
    answer()
    await waitUntil(async () => (await adapter.backlog(settings)) === 0)
  })

  test('what SQS could not delete at first is deleted by another try, and not delivered again', async () => {
    const settings = await adapter.create(given.service.url)
    await adapter.publish(settings, texts(3))
    let deletions = 0
    const client: SqsClient = {
      async send(command: object, options) {
        if (command.constructor.name !== 'DeleteMessageBatchCommand' || deletions++ > 1) {
          return given.client.send(command as never, options)
        }
        if (deletions === 2) throw new Error('the connection broke')
        const { Entries } = (command as { input: { Entries: { Id: string }[] } }).input
        return { Failed: Entries.map(({ Id }) => ({ Id, Code: 'InternalError', SenderFault: false })) }
      },
    }
    const seen = await collect(running(adapter.source(settings, { client })))
    await waitUntil(async () => (await adapter.backlog(settings)) === 0)
    expect(deletions).toBeGreaterThanOrEqual(3)
    expect(seen.messages).toHaveLength(3)
  })

  test('receives are merged into batches', async () => {
    const settings = await adapter.create(given.service.url)
    await adapter.publish(settings, texts(200))
    const seen = await collect(running(adapter.source(settings, { lingerMs: 500, batch: 100 })))
    await waitUntil(() => seen.messages.length === 200)
    expect(Math.max(...seen.batches.map(({ length }) => length))).toBe(100)
  })

  test('a slow box is not given more than it can hold', async () => {
    const settings = await adapter.create(given.service.url)
    await adapter.publish(settings, texts(100))
    let answer = (): void => undefined
    const held = new Promise<void>((resolve) => (answer = resolve))
    const source = running(adapter.source(settings, { batch: 10, concurrency: 1 }))
    const seen = await collect(source, async (batch) => {
      await held
      return batch.map(({ id }) => outcome(true, id))
    })
    await waitUntil(async () => (await inFlight(given.client, settings)) === 20)
    const until = performance.now() + 500
    await waitUntil(async () => {
      expect(await inFlight(given.client, settings)).toBe(20)
      return performance.now() > until
    })
    expect(seen.batches).toHaveLength(1)
    answer()
    await waitUntil(async () => (await adapter.backlog(settings)) === 0, { timeoutMs: 90_000 })
  })
})

test('in a standard queue, too, there is one delivery of a key at a time', async () => {
  const settings = await adapter.create(given.service.url)
  const event = { specversion: '1.0', source: 'shop', type: 'order.placed', partitionkey: 'k' }
  const bodies = Array.from({ length: 30 }, (_, n) => ({ body: JSON.stringify({ ...event, id: `e${n}`, data: n }) }))
  await adapter.publish(settings, bodies)
  let deliveries = 0
  let most = 0
  const source = running(adapter.source(settings, { batch: 5, concurrency: 4 }))
  const seen = await collect(source, async (batch) => {
    most = Math.max(most, ++deliveries)
    await new Promise((resolve) => setTimeout(resolve, 20))
    deliveries--
    return batch.map(({ id }) => outcome(true, id))
  })
  await waitUntil(async () => (await adapter.backlog(settings)) === 0)
  expect(seen.messages).toHaveLength(30)
  expect(most).toBe(1)
})

describe('what is not acknowledged', () => {
  test('a rejected delivery goes again, and is not received again for it; to report it is up to the box', async () => {
    const settings = await adapter.create(given.service.url)
    await adapter.publish(settings, texts(1))
    const receipts: unknown[] = []
    const map = ({ Attributes }: SqsMessage, message: Incoming): Incoming => {
      receipts.push(Attributes?.['ApproximateReceiveCount'])
      return message
    }
    const seen = await collect(running(adapter.source(settings, { map })), (batch, turn) => {
      if (turn <= 3) throw new Error('the database is away')
      return batch.map(({ id }) => outcome(true, id))
    })
    await waitUntil(async () => (await adapter.backlog(settings)) === 0, { timeoutMs: 90_000 })
    expect(seen.batches).toHaveLength(4)
    expect(receipts).toEqual(['1'])
    expect(seen.problems).toEqual([])
  })

  test('while deliveries are rejected, there are pauses, and nothing is received in them', async () => {
    const settings = await adapter.create(given.service.url)
    await adapter.publish(settings, texts(1))
    const source = adapter.source(settings, { pollers: 1, concurrency: 1 })
    const seen = await collect(source, () => {
      throw new Error('the database is away')
    })
    await waitUntil(() => seen.batches.length === 1)
    await adapter.publish(settings, texts(50))
    await waitUntil(() => seen.batches.length === 3)
    // One request was under way, and one is made after each pause.
    expect(await inFlight(given.client, settings)).toBeLessThanOrEqual(31)
    expect(seen.times[1]! - seen.times[0]!).toBeGreaterThan(240)
    await source.stop()
  })

  test('a message stays hidden from others while the box takes longer than its visibility', async () => {
    const settings = await adapter.create(given.service.url)
    await adapter.publish(settings, texts(1))
    const others: string[] = []
    const source = running(adapter.source(settings, { visibilitySeconds: 1 }))
    const seen = await collect(source, async (batch) => {
      const until = performance.now() + 3_500
      await waitUntil(async () => {
        others.push(...(await visible(given.client, settings)))
        return performance.now() > until
      })
      return batch.map(({ id }) => outcome(true, id))
    })
    await waitUntil(async () => (await adapter.backlog(settings)) === 0)
    expect(others).toEqual([])
    expect(seen.messages).toHaveLength(1)
  })

  test('a message stays hidden from others although a request for that hangs', async () => {
    const settings = await adapter.create(given.service.url)
    await adapter.publish(settings, texts(1))
    let asked = 0
    let extended = 0
    const client: SqsClient = {
      async send(command: object, options) {
        if (!command.constructor.name.startsWith('ChangeMessageVisibility')) {
          return given.client.send(command as never, options)
        }
        if (asked++ === 0) await new Promise((_, reject) => options!.abortSignal!.addEventListener('abort', reject))
        const answer: unknown = await given.client.send(command as never, options)
        extended++
        return answer
      },
    }
    const others: string[] = []
    const source = running(adapter.source(settings, { client, visibilitySeconds: 4 }))
    const seen = await collect(source, async (batch) => {
      // Three times half of its visibility, at least.
      await waitUntil(async () => {
        others.push(...(await visible(given.client, settings)))
        return others.length > 0 || extended >= 3
      })
      return batch.map(({ id }) => outcome(true, id))
    })
    await waitUntil(async () => (await adapter.backlog(settings)) === 0)
    expect(others).toEqual([])
    expect(seen.messages).toHaveLength(1)
  })

  test('what could not be kept hidden is not delivered late, but received again', async () => {
    const settings = await adapter.create(given.service.url)
    await adapter.publish(settings, texts(2))
    const client: SqsClient = {
      async send(command: object, options) {
        if (command.constructor.name.startsWith('ChangeMessageVisibility')) throw new Error('the connection broke')
        return given.client.send(command as never, options)
      },
    }
    const options = { client, visibilitySeconds: 1, batch: 1, concurrency: 1 }
    const seen = await collect(running(adapter.source(settings, options)), async (batch, turn) => {
      const until = performance.now() + (turn === 1 ? 1_500 : 0)
      await waitUntil(() => performance.now() > until)
      return batch.map(({ id }) => outcome(true, id))
    })
    await waitUntil(async () => (await adapter.backlog(settings)) === 0)
    expect(seen.messages.slice(0, 2).map(numberOf)).toContain(0)
    const second = seen.messages.filter((message) => numberOf(message) === 1)
    expect(second.every(({ redelivered }) => redelivered)).toBe(true)
  })

  test('the time that a consumer asked for is kept', async () => {
    const settings = await adapter.create(given.service.url)
    await adapter.publish(settings, texts(1))
    const error = { name: 'Error', message: 'later' }
    const seen = await collect(running(adapter.source(settings)), (batch, turn) => {
      if (turn > 1) return batch.map(({ id }) => outcome(true, id))
      const retryAt = new Date(Date.now() + 3_000)
      return batch.map(({ id }) => ({
        ...{ id, ack: false, status: 'failed', error, retryAt },
        consumers: [{ consumer: 'c', status: 'failed', error, retryAt }],
      }))
    })
    await waitUntil(() => seen.batches.length === 2)
    expect(seen.times[1]! - seen.times[0]!).toBeGreaterThan(2_900)
  })
})

describe('stopping', () => {
  test('what the box has is finished and deleted, the rest is visible to others at once', async () => {
    const settings = await adapter.create(given.service.url)
    await adapter.publish(settings, texts(20))
    let answer = (): void => undefined
    const held = new Promise<void>((resolve) => (answer = resolve))
    const options = { batch: 10, concurrency: 1, visibilitySeconds: 600 }
    const source = adapter.source(settings, options)
    const seen = await collect(source, async (batch) => {
      await held
      return batch.map(({ id }) => outcome(true, id))
    })
    await waitUntil(() => seen.batches.length === 1)
    await waitUntil(async () => (await visible(given.client, settings)).length === 0)
    const stopping = source.stop()
    await waitUntil(async () => (await visible(given.client, settings)).length === 10)
    answer()
    await stopping
    expect(seen.messages).toHaveLength(10)
    expect(await adapter.backlog(settings)).toBe(10)
  })

  test('a request that waits for messages is not waited for', async () => {
    const settings = await adapter.create(given.service.url)
    const source = adapter.source(settings, { waitSeconds: 20 })
    const seen = await collect(source)
    await adapter.publish(settings, texts(1))
    await waitUntil(() => seen.messages.length === 1)
    const began = performance.now()
    await source.stop()
    expect(performance.now() - began).toBeLessThan(5_000)
  })

  test('it can be started again', async () => {
    const settings = await adapter.create(given.service.url)
    const source = running(adapter.source(settings))
    await collect(source)
    await source.stop()
    const seen = await collect(source)
    await adapter.publish(settings, texts(3))
    await waitUntil(() => seen.messages.length === 3)
  })
})

describe('FIFO queues', () => {
  test('groups are keys, in order, and one delivery at a time', async () => {
    const settings = await adapter.create(given.service.url, { fifo: true })
    const keys = ['a', 'b', 'c']
    const sent = Array.from({ length: 30 }, (_, n) => ({ body: JSON.stringify({ n }), key: keys[n % 3]! }))
    await adapter.publish(settings, sent)
    const busy = new Set<string>()
    let overlaps = 0
    const seen = await collect(running(adapter.source(settings, { concurrency: 4, lingerMs: 0 })), async (batch) => {
      for (const { key } of batch) overlaps += busy.has(key!) ? 1 : 0
      for (const { key } of batch) busy.add(key!)
      await new Promise((resolve) => setImmediate(resolve))
      for (const { key } of batch) busy.delete(key!)
      return batch.map(({ id }) => outcome(true, id))
    })
    await waitUntil(async () => (await adapter.backlog(settings)) === 0)
    expect(overlaps).toBe(0)
    for (const [at, key] of keys.entries()) {
      const numbers = seen.messages.filter((message) => message.key === key).map(numberOf)
      expect(numbers).toEqual(sent.map((_, n) => n).filter((n) => n % 3 === at))
    }
  })

  test('nothing of a group that waits here is delivered after a rejection', async () => {
    const settings = await adapter.create(given.service.url)
    await adapter.publish(settings, texts(6))
    // The server hands out one message of a group at a time, where SQS may hand out ten: a queue that looks like it.
    const client: SqsClient = {
      async send(command: { input: { QueueUrl: string } }, options) {
        command.input.QueueUrl = settings.queueUrl
        const answer = (await given.client.send(command as never, options)) as { Messages?: object[] }
        const Messages = answer.Messages?.map((message) => ({ ...message, Attributes: { MessageGroupId: 'g' } }))
        return { ...answer, ...(Messages && { Messages }) }
      },
    }
    const options = { client, queueUrl: `${settings.queueUrl}.fifo`, batch: 2, pollers: 1 }
    const seen = await collect(running(adapter.source(settings, options)), (batch, turn) => {
      if (turn === 1) throw new Error('the database is away')
      return batch.map(({ id }) => outcome(true, id))
    })
    await waitUntil(async () => (await adapter.backlog(settings)) === 0)
    expect(seen.messages.map(numberOf)).toEqual([0, 1, 0, 1, 2, 3, 4, 5])
  })

  test('nothing of a group overtakes one that failed, and other groups go on', async () => {
    const settings = await adapter.create(given.service.url, { fifo: true })
    const sent = Array.from({ length: 12 }, (_, n) => ({ body: JSON.stringify({ n }), key: n % 2 ? 'odd' : 'even' }))
    await adapter.publish(settings, sent)
    const handled: number[] = []
    await collect(running(adapter.source(settings)), (batch) =>
      batch.map((message) => {
        // It fails until the other group is through.
        const ack = numberOf(message) !== 3 || handled.includes(10)
        if (ack) handled.push(numberOf(message))
        return outcome(ack, message.id)
      }),
    )
    await waitUntil(async () => (await adapter.backlog(settings)) === 0, { timeoutMs: 90_000 })
    expect(handled.filter((n) => n % 2 === 1)).toEqual([1, 3, 5, 7, 9, 11])
    expect(handled.filter((n) => n % 2 === 0)).toEqual([0, 2, 4, 6, 8, 10])
  })
})

describe('who a message is', () => {
  const cloudEvent = { specversion: '1.0', id: 'e1', source: 'shop', type: 'order.placed', data: { n: 1 } }
  const receive = async (fifo: boolean, sent: Sent, attributes: Record<string, string> = {}) => {
    const settings = await adapter.create(given.service.url, { fifo, attributes })
    await adapter.publish(settings, [sent])
    const seen = await collect(running(adapter.source(settings)))
    await waitUntil(() => seen.messages.length === 1)
    return { ...seen.messages[0]!, queue: settings.queueUrl.split('/').at(-1)! }
  }

  test('a CloudEvent in JSON is itself, with or without a content type', async () => {
    for (const headers of <Record<string, string>[]>[{}, { 'content-type': 'application/cloudevents+json' }]) {
      const message = await receive(false, { headers, body: JSON.stringify(cloudEvent) })
      expect(message).toMatchObject({ id: 'e1', source: 'shop', type: 'order.placed', body: '{"n":1}' })
      expect(message.time).toBeInstanceOf(Date)
    }
  })

  test('a CloudEvent in attributes is itself', async () => {
    const headers = {
      ce_specversion: '1.0',
      ce_id: 'e2',
      ce_source: 'shop',
      ce_type: 'order.placed',
      ce_partitionkey: 'k',
    }
    const message = await receive(false, { headers: { ...headers, 'x-own': 'mine' }, body: '{"n":2}' })
    expect(message).toMatchObject({ id: 'e2', source: 'shop', type: 'order.placed', key: 'k' })
    expect(message.headers).toMatchObject({ 'x-own': 'mine' })
    expect(numberOf(message)).toBe(2)
  })

  test('a CloudEvent without an id has none', async () => {
    const { id: _, ...rest } = cloudEvent
    expect((await receive(false, { body: JSON.stringify(rest) })).id).toBeUndefined()
  })

  test('any other message has the id of the queue, and the name of the queue as source and type', async () => {
    const message = await receive(false, { body: '{"specversion":"1.0"}' })
    expect(message.id).toMatch(/^[0-9a-f-]{36}$/)
    expect(message).toMatchObject({ source: message.queue, type: message.queue })
    expect(message.key).toBeUndefined()
  })

  test('an attribute named type is its type', async () => {
    expect(await receive(false, { headers: { type: 'order.placed' }, body: '{}' })).toMatchObject({
      type: 'order.placed',
    })
  })

  test('in a FIFO queue the deduplication id of its producer is its id, within its group', async () => {
    expect(await receive(true, { body: '{}', key: 'a', id: 'd1' })).toMatchObject({ id: 'a d1', key: 'a' })
  })

  test('a deduplication id that SQS made of the body is not: equal bodies may be sent again later', async () => {
    const body = `{"n":"${randomUUID()}"}`
    const id = createHash('sha256').update(body).digest('hex')
    const message = await receive(true, { body, key: 'a', id })
    expect(message.id).toMatch(/^[0-9a-f-]{36}$/)
  })

  test('map has the last word', async () => {
    const settings = await adapter.create(given.service.url)
    await adapter.publish(settings, [{ body: '{"order":"o1"}' }])
    const source = adapter.source(settings, {
      map: ({ Body }, message) => ({ ...message, id: (JSON.parse(Body!) as { order: string }).order }),
    })
    const seen = await collect(running(source))
    await waitUntil(() => seen.messages.length === 1)
    expect(seen.messages[0]!.id).toBe('o1')
  })
})

describe('warnings', () => {
  const warningsOf = async (settings: adapter.Settings, options: object = {}): Promise<string[]> => {
    const warnings: string[] = []
    const source = running(adapter.source(settings, options))
    let seen = 0
    await source.start(
      async (batch) => {
        seen += batch.length
        return batch.map(({ id }) => outcome(true, id))
      },
      undefined,
      (text) => void warnings.push(text),
    )
    await adapter.publish(settings, texts(1))
    await waitUntil(() => seen === 1)
    // Waits for whatever it is doing.
    await source.stop()
    return warnings
  }

  test('a queue that drops messages is warned of, with the setting to change', async () => {
    const attributes = { MessageRetentionPeriod: '3600' }
    const settings = await adapter.create(given.service.url, { deliveryLimit: 5, attributes })
    expect((await warningsOf(settings)).sort()).toEqual([
      expect.stringContaining('MessageRetentionPeriod'),
      expect.stringContaining('maxReceiveCount'),
    ])
  })

  test('any other is not, nor one that may not be asked', async () => {
    expect(await warningsOf(await adapter.create(given.service.url))).toEqual([])
    const client: SqsClient = {
      async send(command: object, options) {
        if (command.constructor.name === 'GetQueueAttributesCommand') throw new Error('AccessDenied')
        return given.client.send(command as never, options)
      },
    }
    const settings = await adapter.create(given.service.url, { deliveryLimit: 5 })
    expect(await warningsOf(settings, { client })).toEqual([])
  })
})

describe('a queue out of reach', () => {
  test('is reported, and reported again when it is back; messages go on', async () => {
    const settings = await adapter.create(given.service.url)
    const seen = await collect(running(adapter.source(settings, { waitSeconds: 20 })))
    await given.service.kill()
    await waitUntil(() => seen.problems.length > 0)
    await given.service.resume()
    // Sooner than a request that waits for messages.
    await waitUntil(() => seen.problems.at(-1) === undefined)
    await adapter.publish(settings, texts(1))
    await waitUntil(() => seen.messages.length === 1)
  })

  test('is reported once, also if answers come to what was asked before', async () => {
    const settings = await adapter.create(given.service.url)
    const { passed, open } = gate()
    onTestFinished(open)
    let asked = 0
    const client: SqsClient = {
      async send(command: object) {
        if (command.constructor.name !== 'ReceiveMessageCommand' || ++asked > 2) throw new Error('token expired')
        await passed
        return { Messages: [] }
      },
    }
    const seen = await collect(running(adapter.source(settings, { client, pollers: 3 })))
    await waitUntil(() => seen.problems.length > 0)
    open()
    const before = asked
    await waitUntil(() => asked > before + 5)
    expect(seen.problems).toEqual([expect.objectContaining({ message: 'token expired' })])
  })

  test('a server that does not answer is given up after the timeout', async () => {
    const settings = await adapter.create(given.service.url)
    const source = adapter.source(settings, { timeoutMs: 500, waitSeconds: 1 })
    const seen = await collect(source)
    await freeze(given.service.pid)
    try {
      await waitUntil(() => seen.problems.length > 0)
      expect(seen.problems[0]).toMatchObject({ code: 'Timeout' })
      await source.stop()
    } finally {
      unfreeze(given.service.pid)
    }
  })

  test('an empty queue is not asked without a pause, whatever it answers', async () => {
    const settings = await adapter.create(given.service.url)
    let requests = 0
    const client: SqsClient = {
      send(command, options) {
        requests++
        return given.client.send(command, options)
      },
    }
    await collect(running(adapter.source(settings, { client, waitSeconds: 0, pollers: 1 })))
    const until = performance.now() + 1_500
    await waitUntil(() => performance.now() > until)
    expect(requests).toBeGreaterThan(1)
    expect(requests).toBeLessThan(12)
  })

  test('a queue that does not exist is reported, and asked for with patience', async () => {
    const settings = await adapter.create(given.service.url)
    let requests = 0
    const client: SqsClient = {
      send(command, options) {
        requests++
        return given.client.send(command, options)
      },
    }
    const source = running(sqs({ client, queueUrl: `${settings.queueUrl}-none`, pollers: 1 }))
    const seen = await collect(source)
    const until = performance.now() + 2_000
    await waitUntil(() => performance.now() > until)
    expect(seen.problems).toEqual([expect.objectContaining({ name: 'QueueDoesNotExist' })])
    expect(requests).toBeGreaterThan(1)
    expect(requests).toBeLessThan(10)
  })
})

describe('options', () => {
  const queueUrl = 'https://sqs.eu-west-1.amazonaws.com/123456789012/orders'
  test.each<[string, object]>([
    ['no options', undefined as never],
    ['no queue', {}],
    ['a name instead of a URL', { queueUrl: 'orders' }],
    ['an unknown option', { queueUrl, poller: 1 }],
    ['a client that is none', { queueUrl, client: {} }],
    ['a client and an endpoint', { queueUrl, client: { send() {} }, endpoint: 'http://localhost:4566' }],
    ['more waiting than SQS allows', { queueUrl, waitSeconds: 21 }],
    ['no visibility', { queueUrl, visibilitySeconds: 0 }],
    ['a mode that is none', { queueUrl, mode: 'both' }],
    ['a codec that is none', { queueUrl, codec: {} }],
  ])('%s is an error', (_, options) => {
    expect(() => sqs(options as never)).toThrow(OnceboxError)
  })
})
