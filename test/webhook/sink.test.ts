/** A webhook as a sink: what it posts, how it takes answers, and the way through an outbox to a box elsewhere. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Webhook } from 'standardwebhooks'
import { describe, expect, test } from 'vitest'
import type { Message } from 'oncebox'
import { retryAfterMs, toNodeListener, webhook, type WebhookSinkOptions } from 'oncebox/webhook'
import { gate, useServer } from '../inbox/fixture.js'
import { freePort } from '../support/postgres.js'
import { waitUntil } from '../support/wait.js'
import { OLD_SECRETS, SECRETS, serve, type Served } from './senders.js'

const server = useServer('webhook_sink')
const secret = SECRETS.standard

interface Got {
  readonly headers: Record<string, string>
  readonly body: string
  readonly event: Record<string, unknown>
}

/** An endpoint that keeps what it got. */
async function endpoint(
  answer: (got: Got, response: ServerResponse) => unknown = (_, response) => response.end(),
): Promise<Served & { readonly got: Got[] }> {
  const got: Got[] = []
  const listener = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    let body = ''
    for await (const chunk of request) body += String(chunk)
    const one = { headers: request.headers as Record<string, string>, body, event: JSON.parse(body) as Got['event'] }
    got.push(one)
    await answer(one, response)
  }
  const served = await serve((request, response) => void listener(request, response))
  return Object.assign(served, { got })
}

function message(id: string, given: Partial<Message> = {}): Message {
  return {
    id,
    source: 'shop',
    type: 'note',
    data: { id },
    headers: {},
    receivedAt: new Date(),
    attempt: 1,
    correlationId: id,
    ...given,
  }
}

const sinkTo = (url: string, more: Partial<WebhookSinkOptions> = {}) => webhook({ url, secret, ...more })

describe('the time of a batch', () => {
  const lane = ['1', '2', '3'].map((id) => message(id, { key: 'k' }))
  const untried = { error: { code: 'PUBLISH_TIMEOUT' }, retry: true, afterMs: 0 }

  test('nothing more is begun once half of it is over, and the rest is answered as not tried', async () => {
    const timeoutMs = 100
    const began = performance.now()
    await using http = await endpoint(async (_, response) => {
      await waitUntil(() => performance.now() - began > timeoutMs)
      response.end()
    })
    const answers = await sinkTo(http.url).publish(lane, { timeoutMs, signal: new AbortController().signal })
    expect(answers).toMatchObject([undefined, untried, untried])
    expect(http.got).toHaveLength(1)
  })

  test('its end ends the request that is on its way, and what was taken stays published', async () => {
    let left = 0
    await using http = await endpoint((_, response) => {
      if (http.got.length === 1) return response.end()
      return response.on('close', () => left++)
    })
    const over = new AbortController()
    const publishing = sinkTo(http.url).publish(lane, { timeoutMs: 600_000, signal: over.signal })
    await waitUntil(() => http.got.length === 2)
    over.abort(new Error('over'))
    expect(await publishing).toMatchObject([
      undefined,
      { error: { message: 'over' }, down: true },
      { error: { message: 'over' }, afterMs: 0 },
    ])
    await waitUntil(() => left === 1)
  })
})

describe('a request', () => {
  test('is a CloudEvent that the package of Standard Webhooks verifies', async () => {
    await using http = await endpoint()
    const time = new Date('2024-01-01T00:00:00.000Z')
    const sent = message('9f2c1f5e-3a0f-4f39-9b1c-0a3f3a1f2b4c', { key: 'k', time, data: { text: 'ü "€"' } })
    expect(await sinkTo(http.url).publish([sent])).toEqual([undefined])
    const [{ headers, body, event }] = http.got as [Got]
    expect(new Webhook(secret).verify(body, headers)).toEqual(event)
    expect(event).toEqual({
      specversion: '1.0',
      id: sent.id,
      source: 'shop',
      type: 'note',
      time: '2024-01-01T00:00:00.000Z',
      partitionkey: 'k',
      datacontenttype: 'application/json',
      data: { text: 'ü "€"' },
    })
    expect(headers).toMatchObject({
      'webhook-id': sent.id,
      'content-type': 'application/cloudevents+json; charset=utf-8',
    })
  })

  test('is signed with every secret while one is being replaced', async () => {
    await using http = await endpoint()
    await sinkTo(http.url, { secret: [secret, OLD_SECRETS.standard] }).publish([message('1')])
    const [{ headers, body }] = http.got as [Got]
    for (const one of [secret, OLD_SECRETS.standard]) expect(new Webhook(one).verify(body, headers)).toBeDefined()
  })

  test.for(['a.b', 'ü', '1', 'x'.repeat(500)])(
    'has an id without a dot, the same for every attempt and another for another source: %s',
    async (id) => {
      await using http = await endpoint()
      const sink = sinkTo(http.url)
      await sink.publish([message(id), message(id, { attempt: 2 }), message(id, { source: 'other' })])
      const byAttempt = http.got.map(({ headers }) => headers['webhook-id']!)
      expect(byAttempt.every((one) => /^msg_[A-Za-z0-9_-]{32}$/.test(one))).toBe(true)
      expect(new Set(byAttempt).size).toBe(2)
    },
  )

  test('carries headers of your own', async () => {
    await using http = await endpoint()
    const headers = { Authorization: 'Bearer x', 'Content-Type': 'application/json' }
    await sinkTo(http.url, { headers }).publish([message('1')])
    expect(http.got[0]!.headers).toMatchObject({ authorization: 'Bearer x', 'content-type': 'application/json' })
  })
})

describe('an answer', () => {
  test.for<[status: number, verdict: 'taken' | 'refused' | 'later' | 'down']>([
    [200, 'taken'],
    [202, 'taken'],
    [204, 'taken'],
    [302, 'down'],
    [400, 'refused'],
    [401, 'down'],
    [403, 'down'],
    [404, 'down'],
    [408, 'down'],
    [409, 'later'],
    [410, 'down'],
    [413, 'refused'],
    [415, 'refused'],
    [422, 'refused'],
    [425, 'down'],
    [429, 'down'],
    [500, 'down'],
    [502, 'down'],
    [503, 'down'],
  ])('of %i: %s', async ([status, verdict]) => {
    await using http = await endpoint((_, response) => response.writeHead(status).end(status === 204 ? '' : 'hunter2'))
    const [answer] = await sinkTo(http.url).publish([message('1')])
    if (verdict === 'taken') return expect(answer).toBeUndefined()
    expect(answer).toMatchObject({
      retry: verdict !== 'refused',
      error: { name: 'WebhookError', status, code: `HTTP_${status}` },
    })
    expect(answer!.down ?? false).toBe(verdict === 'down')
    expect((answer!.error as Error).message).toBe(`127.0.0.1:${http.port} answered ${status}`)
  })

  test('that redirects is not followed', async () => {
    await using elsewhere = await endpoint()
    await using http = await endpoint((_, response) => response.writeHead(307, { location: elsewhere.url }).end())
    expect(await sinkTo(http.url).publish([message('1')])).toMatchObject([{ retry: true, error: { status: 307 } }])
    expect(elsewhere.got).toEqual([])
  })

  test.for<[header: string, ms: number | undefined]>([
    ['120', 120_000],
    ['Thu, 01 Jan 1970 00:01:40 GMT', 90_000],
    ['Thu, 01 Jan 1970 00:00:01 GMT', 0],
    ['Thu, 01 Jan 2099 00:00:01 GMT', 3_600_000],
    ['3600', 3_600_000],
    ['3153600000', 3_600_000],
    ['9'.repeat(400), 3_600_000],
    ['soon', undefined],
    ['-5', undefined],
    ['1e9', undefined],
    ['NaN', undefined],
    ['2099', 2_099_000],
    ['1.5', undefined],
    ['', undefined],
  ])('says when to come back, within an hour: %s', async ([header, ms]) => {
    await using http = await endpoint((_, response) => response.writeHead(503, { 'retry-after': header }).end())
    const [answer] = await sinkTo(http.url, { now: () => 10_000 }).publish([message('1')])
    expect(retryAfterMs(answer!.error)).toBe(ms)
    expect(answer!.afterMs).toBe(ms === undefined ? undefined : Math.max(ms, 1_000))
  })

  test.for<[status: number, afterMs: number | undefined]>([
    [409, 120_000],
    [429, 120_000],
    [503, 120_000],
    [500, undefined],
    [404, undefined],
    [302, undefined],
  ])('of %i with Retry-After: waits for %s', async ([status, afterMs]) => {
    await using http = await endpoint((_, response) => response.writeHead(status, { 'retry-after': '120' }).end())
    const [answer] = await sinkTo(http.url).publish([message('1')])
    expect(answer!.afterMs).toBe(afterMs)
  })

  test('of one event that it hangs on does not keep the others, and after a row of them no more is begun', async () => {
    await using http = await endpoint((got, response) =>
      String(got.event['id']).startsWith('bad') ? undefined : response.end(),
    )
    const batch = ['bad1', 'good1', 'good2', 'bad2', 'good3'].map((id) => message(id))
    const sink = sinkTo(http.url, { timeoutMs: 300, concurrency: 2 })
    const answers = await sink.publish(batch)
    expect(answers.map((answer) => answer?.down)).toEqual([true, undefined, undefined, true, undefined])
    const hopeless = Array.from({ length: 40 }, (_, at) => message(`bad${at}`))
    const before = http.got.length
    const none = await sink.publish(hopeless)
    expect(http.got.length - before).toBeLessThan(20)
    expect(none.filter((answer) => answer?.afterMs === 0).length).toBeGreaterThan(20)
  })

  test('that does not come in time is worth another try', async () => {
    await using http = await endpoint(() => undefined)
    const [answer] = await sinkTo(http.url, { timeoutMs: 50 }).publish([message('1')])
    expect(answer).toMatchObject({ retry: true, error: { message: expect.stringContaining('50 ms') } })
  })

  test('without end is not read to its end', async () => {
    await using http = await endpoint((_, response) => {
      response.writeHead(200)
      const pump = (): void => {
        while (!response.destroyed && response.write(Buffer.alloc(65_536)));
      }
      response.on('drain', pump)
      pump()
    })
    expect(await sinkTo(http.url).publish([message('1')])).toEqual([undefined])
  })
})

describe('order', () => {
  test('events of one key go one after the other, and none after one that failed; other keys go on', async () => {
    await using http = await endpoint((got, response) => {
      response.statusCode = got.event['id'] === 'a2' ? 500 : 200
      response.end()
    })
    const batch = ['a1', 'b1', 'a2', 'b2', 'a3', 'free'].map((id) => message(id, id === 'free' ? {} : { key: id[0]! }))
    const answers = await sinkTo(http.url).publish(batch)
    expect(answers.map((answer) => answer?.retry)).toEqual([undefined, undefined, true, undefined, true, undefined])
    const ids = http.got.map(({ event }) => event['id'] as string)
    expect(ids.filter((id) => id.startsWith('a'))).toEqual(['a1', 'a2'])
    expect(ids.filter((id) => id.startsWith('b'))).toEqual(['b1', 'b2'])
    expect(ids).toContain('free')
  })

  test('no more requests at a time than allowed', async () => {
    let running = 0
    let most = 0
    await using http = await endpoint(async (_, response) => {
      most = Math.max(most, ++running)
      await new Promise((resolve) => setTimeout(resolve, 5))
      running--
      response.end()
    })
    const batch = Array.from({ length: 20 }, (_, at) => message(String(at)))
    await sinkTo(http.url, { concurrency: 3 }).publish(batch)
    expect([http.got.length, most]).toEqual([20, 3])
  })
})

describe('an endpoint that is away', () => {
  test('fails the batch as a whole, so that no attempt counts, and is not asked for each event', async () => {
    const url = `http://127.0.0.1:${await freePort()}/hunter2`
    let asked = 0
    const sink = sinkTo(url, { concurrency: 2, fetch: (...given) => (asked++, fetch(...given)) })
    const error: unknown = await sink.publish(Array.from({ length: 50 }, (_, at) => message(String(at)))).then(
      () => undefined,
      (reason: unknown) => reason,
    )
    expect(error).toMatchObject({ name: 'WebhookError', code: 'ECONNREFUSED' })
    expect((error as Error).message).not.toContain('hunter2')
    expect(asked).toBeLessThanOrEqual(2)
  })

  test('one that breaks off may be down, or the event may be to blame', async () => {
    await using http = await endpoint((_, response) => void response.destroy())
    expect(await sinkTo(http.url).publish([message('1')])).toMatchObject([{ retry: true, down: true }])
  })
})

describe('closing', () => {
  test('lets requests in flight finish, begins no others, and can be followed by publishing', async () => {
    const hold = gate()
    await using http = await endpoint(async (_, response) => {
      await hold.opened
      response.end()
    })
    const sink = sinkTo(http.url, { concurrency: 1 })
    const publishing = sink.publish([message('1'), message('2')])
    await waitUntil(() => http.got.length === 1)
    const closing = sink.close()
    hold.open()
    await closing
    const answers = (await publishing).filter((answer) => answer !== undefined)
    expect(answers).toMatchObject([{ retry: true, error: { code: 'STOPPED' } }])
    expect(http.got).toHaveLength(1)
    expect(await sink.publish([message('2')])).toEqual([undefined])
  })

  test('aborts what does not finish', { timeout: 15_000 }, async () => {
    await using http = await endpoint(() => undefined)
    const sink = sinkTo(http.url, { timeoutMs: 60_000 })
    const publishing = sink.publish([message('1')])
    await waitUntil(() => http.got.length === 1)
    await sink.close()
    expect(await publishing).toMatchObject([{ retry: true, error: { code: 'STOPPED' } }])
  })
})

describe('from box to box', () => {
  test('events go through the outbox and over HTTP, keep what they are, in order per key, and have one effect', async () => {
    await using shop = await server.open({ source: 'shop' })
    await using billing = await server.open({ source: 'billing' })
    const got: Message[] = []
    billing.consumer(
      'bill',
      {
        async note(message, { tx }) {
          got.push(message)
          await billing.write(tx, 'bill', message, message.key)
        },
      },
      { mode: 'inline' },
    )
    const hook = billing.from(webhook({ scheme: 'standard', secret, source: 'event' }), { types: 'any' })
    await using http = await serve(toNodeListener(hook))
    shop.to(webhook({ url: http.url, secret }))
    const client = await server.pool.connect()
    try {
      await client.query('begin')
      for (let n = 0; n < 30; n++) {
        const options = { id: `e.${n}`, key: `k${n % 3}`, subject: 's', headers: { tenant: 'ü', 'x-a': 'b' } }
        await shop.send(client, 'note' as never, { n, big: '1' }, options)
      }
      await client.query('commit')
    } finally {
      client.release()
    }
    await shop.drain()
    const effects = await billing.effects()
    expect(effects).toHaveLength(30)
    for (const key of ['k0', 'k1', 'k2']) {
      const numbers = effects.filter(({ note }) => note === key).map(({ id }) => Number(id.slice(2)))
      expect(numbers).toEqual(numbers.toSorted((a, b) => a - b))
    }
    expect(got.find(({ id }) => id === 'e.7')).toMatchObject({
      id: 'e.7',
      source: 'shop',
      type: 'note',
      key: 'k1',
      subject: 's',
      data: { n: 7, big: '1' },
      headers: { tenant: 'ü', 'x-a': 'b' },
      correlationId: 'e.7',
    })
  })

  test('while the receiver is away events wait, and are delivered once it is back', async () => {
    await using shop = await server.open({ source: 'shop' })
    await using billing = await server.open()
    billing.consumer('bill', { note: (one, { tx }) => billing.write(tx, 'bill', one) }, { mode: 'inline' })
    const hook = webhook({ scheme: 'standard', secret, source: 'event', onError: () => undefined })
    await using http = await serve(toNodeListener(hook))
    shop.to(webhook({ url: http.url, secret }), { retry: { baseMs: 20, maxMs: 20 } })
    const client = await server.pool.connect()
    await client.query('begin')
    await shop.send(client, 'note' as never, { n: 1 }, { id: 'e1' })
    await client.query('commit')
    client.release()
    // Not attached yet: 503.
    await expect(shop.drain()).rejects.toMatchObject({ status: 503 })
    expect(await billing.ids()).toEqual([])
    billing.from(hook, { types: 'any' })
    await waitUntil(async () => {
      await shop.drain()
      return (await billing.ids()).length > 0
    })
    expect(await billing.ids()).toEqual(['e1'])
  })
})
