/** Who may deliver, and what is refused before the box hears of it. */
import { once } from 'node:events'
import { describe, expect, test } from 'vitest'
import type { Incoming, Outcome } from 'oncebox'
import { webhook, type Scheme, type WebhookSourceOptions } from 'oncebox/webhook'
import { attached, bodyOf, OLD_SECRETS, SECRETS, sign, toRequest, type Sent } from './senders.js'

const SCHEMES = ['standard', 'stripe', 'github'] as const
const NOW = 1_614_265_330_000

/** The headers that carry the signature. */
const SIGNATURE: Readonly<Record<Scheme, string>> = {
  standard: 'webhook-signature',
  stripe: 'stripe-signature',
  github: 'x-hub-signature-256',
}

describe('what the senders’ own code signs is accepted', () => {
  test.for(SCHEMES)('%s', async (scheme) => {
    const { hook, got } = attached({ scheme })
    const response = await hook.fetch(toRequest(await sign(scheme, bodyOf(scheme))))
    expect(response.status).toBe(200)
    expect(await response.json()).toEqual({ status: 'stored' })
    expect(got).toMatchObject([{ id: scheme === 'stripe' ? 'evt_1' : 'msg_1', source: scheme, type: 'note' }])
  })

  test('the published vector of Standard Webhooks', async () => {
    const { hook, got } = attached({ scheme: 'standard', now: () => NOW })
    const headers = {
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    }
    const response = await hook.fetch(toRequest({ headers, body: '{"test": 2432232314}' }))
    expect(response.status).toBe(200)
    expect(got).toMatchObject([{ id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', source: 'standard', type: 'standard' }])
  })

  test('several signatures, of which one is right, and versions that are not for us', async () => {
    const { hook } = attached({ scheme: 'standard' })
    const { body, headers } = await sign('standard', bodyOf('standard'))
    const wrong = 'Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc='
    const signatures = [
      `v1,${wrong}`,
      `v2,${wrong}`,
      headers['webhook-signature'],
      `v1,${wrong}`,
      `v1a,${wrong}${wrong}`,
    ]
    const response = await hook.fetch(toRequest({ body, headers }, { 'webhook-signature': signatures.join(' ') }))
    expect(response.status).toBe(200)
  })

  test('the example of GitHub’s documentation', async () => {
    const { hook } = attached({ scheme: 'github' })
    const headers = {
      'x-github-delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958',
      'x-github-event': 'ping',
      'x-hub-signature-256': 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17',
    }
    expect((await hook.fetch(toRequest({ headers, body: 'Hello, World!' }))).status).toBe(200)
  })

  test('the bytes are signed, not what they mean: a body that is no UTF-8 passes', async () => {
    const { hook, got } = attached({ scheme: 'github' })
    const body = Buffer.from([0xff, 0x00, 0x7b])
    const { createHmac } = await import('node:crypto')
    const signature = `sha256=${createHmac('sha256', SECRETS.github).update(body).digest('hex')}`
    const headers = { 'x-github-delivery': '1', 'x-github-event': 'e', 'x-hub-signature-256': signature }
    const response = await hook.fetch(new Request('http://localhost/', { method: 'POST', headers, body }))
    expect(response.status).toBe(200)
    expect(Buffer.from(got[0]!.body as Uint8Array)).toEqual(body)
  })
})

describe('rotation', () => {
  test.for(SCHEMES)('while a secret is being replaced both are accepted: %s', async (scheme) => {
    const { hook } = attached({ scheme, secret: [SECRETS[scheme], OLD_SECRETS[scheme]] })
    for (const secret of [SECRETS[scheme], OLD_SECRETS[scheme]]) {
      expect((await hook.fetch(toRequest(await sign(scheme, bodyOf(scheme), { secret })))).status).toBe(200)
    }
  })

  test.for(SCHEMES)('afterwards the old one is refused: %s', async (scheme) => {
    const { hook, got } = attached({ scheme })
    const sent = await sign(scheme, bodyOf(scheme), { secret: OLD_SECRETS[scheme] })
    expect((await hook.fetch(toRequest(sent))).status).toBe(401)
    expect(got).toEqual([])
  })

  test('Stripe signs with both of its own: either will do', async () => {
    const { hook } = attached({ scheme: 'stripe' })
    const body = bodyOf('stripe')
    const right = (await sign('stripe', body)).headers['stripe-signature']!
    const old = (await sign('stripe', body, { secret: OLD_SECRETS.stripe })).headers['stripe-signature']!
    const both = `${old},${right.split(',')[1]},v0=${'0'.repeat(64)}`
    expect((await hook.fetch(toRequest({ body, headers: { 'stripe-signature': both } }))).status).toBe(200)
  })
})

describe('time', () => {
  const cases = (['standard', 'stripe'] as const).flatMap((scheme) =>
    ([-1, 1] as const).flatMap((side) => [
      { scheme, at: side * 300, status: 200 },
      { scheme, at: side * 301, status: 401 },
      { scheme, at: side * 86_400, status: 401 },
    ]),
  )
  test.for(cases)('$scheme, signed $at s from now: $status', async ({ scheme, at, status }) => {
    const { hook, got } = attached({ scheme, now: () => NOW })
    const response = await hook.fetch(toRequest(await sign(scheme, bodyOf(scheme), { at: NOW + at * 1_000 })))
    expect(response.status).toBe(status)
    expect(got).toHaveLength(status === 200 ? 1 : 0)
  })

  test('the tolerance can be set', async () => {
    const { hook } = attached({ scheme: 'standard', now: () => NOW, toleranceMs: 10_000 })
    const statusAt = async (at: number): Promise<number> =>
      (await hook.fetch(toRequest(await sign('standard', bodyOf('standard'), { at })))).status
    expect([await statusAt(NOW - 10_000), await statusAt(NOW + 11_000)]).toEqual([200, 401])
  })

  test.for(['standard', 'stripe'] as const)(
    '%s: a copy is good for twice the tolerance, and no millisecond more',
    async (scheme) => {
      let nowMs = NOW
      const { hook } = attached({ scheme, now: () => nowMs, toleranceMs: 1_000 })
      const sent = await sign(scheme, bodyOf(scheme), { at: NOW })
      const statusAt = async (ms: number): Promise<number> => {
        nowMs = NOW + ms
        return (await hook.fetch(toRequest(sent))).status
      }
      expect([await statusAt(-1_001), await statusAt(-1_000), await statusAt(1_000), await statusAt(1_001)]).toEqual([
        401, 200, 200, 401,
      ])
    },
  )

  test.for(['standard', 'stripe'] as const)(
    '%s: a copy whose body is still on its way when its time is up is refused',
    async (scheme) => {
      let nowMs = NOW
      const { hook, got } = attached({ scheme, now: () => nowMs, toleranceMs: 1_000 })
      const { headers, body } = await sign(scheme, bodyOf(scheme), { at: NOW })
      const send = (lastPieceMs: number): Promise<Response> => {
        nowMs = NOW
        const slow = new ReadableStream(
          {
            pull(controller) {
              nowMs = NOW + lastPieceMs
              controller.enqueue(Buffer.from(body))
              controller.close()
            },
          },
          { highWaterMark: 0 },
        )
        return hook.fetch(new Request('http://localhost/', { method: 'POST', headers, body: slow, duplex: 'half' }))
      }
      expect((await send(1_001)).status).toBe(401)
      expect(got).toEqual([])
      expect((await send(1_000)).status).toBe(200)
    },
  )
})

describe('a signature that is not right', () => {
  const changes: [string, (sent: Sent, scheme: Scheme) => Sent][] = [
    ['of another body', ({ body, headers }) => ({ body: `${body} `, headers })],
    ['of a truncated body', ({ body, headers }) => ({ body: body.slice(0, -1), headers })],
    ['of no body at all', ({ headers }) => ({ body: '', headers })],
    ['shortened', (sent, scheme) => withSignature(sent, scheme, (text) => text.slice(0, -8))],
    ['lengthened', (sent, scheme) => withSignature(sent, scheme, (text) => `${text}00`)],
    ['of the right length', (sent, scheme) => withSignature(sent, scheme, (text) => `${text.slice(0, -3)}xx=`)],
    ['empty', (sent, scheme) => withSignature(sent, scheme, () => '')],
    [
      'of an unknown version',
      ({ body, headers }, scheme) => ({
        body,
        headers: {
          ...headers,
          [SIGNATURE[scheme]]: headers[SIGNATURE[scheme]]!.replace('v1', 'v9').replace('sha256', 'sha512'),
        },
      }),
    ],
  ]
  test.for(SCHEMES.flatMap((scheme) => changes.map(([name, change]) => ({ scheme, name, change }))))(
    'is refused: $scheme, $name',
    async ({ scheme, name, change }) => {
      const { hook, got } = attached({ scheme })
      const response = await hook.fetch(toRequest(change(await sign(scheme, bodyOf(scheme)), scheme)))
      expect(response.status).toBe(name === 'of an unknown version' && scheme === 'github' ? 400 : 401)
      expect(got).toEqual([])
    },
  )

  test('is refused for another id or time of Standard Webhooks', async () => {
    const { hook } = attached({ scheme: 'standard' })
    const sent = await sign('standard', bodyOf('standard'))
    const later = String(Number(sent.headers['webhook-timestamp']) + 1)
    expect((await hook.fetch(toRequest(sent, { 'webhook-id': 'msg_2' }))).status).toBe(401)
    expect((await hook.fetch(toRequest(sent, { 'webhook-timestamp': later }))).status).toBe(401)
  })

  test.for(SCHEMES)('is refused if there is none: %s', async (scheme) => {
    const { hook } = attached({ scheme })
    const { body, headers } = await sign(scheme, bodyOf(scheme))
    const { [SIGNATURE[scheme]]: _, ...rest } = headers
    expect((await hook.fetch(toRequest({ body, headers: rest }))).status).toBe(401)
  })

  function withSignature({ body, headers }: Sent, scheme: Scheme, change: (text: string) => string): Sent {
    const [before, text] = /^(.*?(?:v1,|v1=|sha256=))(.*)$/.exec(headers[SIGNATURE[scheme]]!)!.slice(1)
    return { body, headers: { ...headers, [SIGNATURE[scheme]]: `${before}${change(text!)}` } }
  }
})

describe('headers that are not as they should be are answered 400', () => {
  const twice = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map(
    (name) => ({ scheme: 'standard', name }) as const,
  )
  test.for([
    ...twice,
    { scheme: 'stripe', name: 'stripe-signature' } as const,
    { scheme: 'github', name: 'x-hub-signature-256' } as const,
    { scheme: 'github', name: 'x-github-delivery' } as const,
    { scheme: 'github', name: 'x-github-event' } as const,
  ])('$scheme: $name twice', async ({ scheme, name }) => {
    const { hook, got } = attached({ scheme })
    const { body, headers } = await sign(scheme, bodyOf(scheme))
    const doubled = new Headers(headers)
    doubled.append(name, headers[name]!)
    const response = await hook.fetch(new Request('http://localhost/', { method: 'POST', headers: doubled, body }))
    expect(response.status).toBe(400)
    expect(got).toEqual([])
  })

  test.for<[Scheme, string, string]>([
    ['standard', 'webhook-timestamp', 'hello'],
    ['standard', 'webhook-timestamp', ' 1e9'],
    ['standard', 'webhook-timestamp', '-1'],
    ['standard', 'webhook-timestamp', '01614265330'],
    ['standard', 'webhook-timestamp', '1614265330.5'],
    ['standard', 'webhook-id', 'a b'],
    ['standard', 'webhook-id', ''],
    ['standard', 'webhook-id', 'x'.repeat(513)],
    ['standard', 'webhook-signature', 'v1'],
    ['stripe', 'stripe-signature', 'v1=00'],
    ['stripe', 'stripe-signature', 't=1,t=2,v1=00'],
    ['stripe', 'stripe-signature', 't=now,v1=00'],
    ['stripe', 'stripe-signature', 'nonsense'],
    ['github', 'x-hub-signature-256', 'sha1=00'],
    ['github', 'x-github-delivery', ''],
  ])('%s: %s is %j', async ([scheme, name, value]) => {
    const { hook } = attached({ scheme })
    const response = await hook.fetch(toRequest(await sign(scheme, bodyOf(scheme)), { [name]: value }))
    expect(response.status).toBe(400)
  })

  test('an id with a dot in it, however well it is signed', async () => {
    const { hook } = attached({ scheme: 'standard' })
    const { status } = await hook.fetch(toRequest(await sign('standard', bodyOf('standard'), { id: 'msg_1.2' })))
    expect(status).toBe(400)
  })
})

describe('what else is refused', () => {
  test.for(['GET', 'PUT', 'DELETE', 'HEAD'])('%s', async (method) => {
    const { hook } = attached({ scheme: 'standard' })
    const response = await hook.fetch(new Request('http://localhost/', { method }))
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST'])
  })

  test.for(['gzip', 'br', 'gzip, identity'])('a body in %s', async (coding) => {
    const { hook } = attached({ scheme: 'standard' })
    const response = await hook.fetch(
      toRequest(await sign('standard', bodyOf('standard')), { 'content-encoding': coding }),
    )
    expect([response.status, response.headers.get('accept-encoding')]).toEqual([415, 'identity'])
  })

  test('a body that is too large is read no further than the limit, whatever Content-Length says', async () => {
    const { hook, got } = attached({ scheme: 'standard', maxBytes: 1_000 })
    const { headers } = await sign('standard', bodyOf('standard'))
    let read = 0
    let cancelled = false
    const body = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          read += 400
          controller.enqueue(new Uint8Array(400))
        },
        cancel() {
          cancelled = true
        },
      },
      { highWaterMark: 0 },
    )
    const lying = { ...headers, 'content-length': '10' }
    const request = new Request('http://localhost/', { method: 'POST', headers: lying, body, duplex: 'half' })
    expect((await hook.fetch(request)).status).toBe(413)
    expect({ read, cancelled, got }).toEqual({ read: 1_200, cancelled: true, got: [] })
  })

  test('a body that says it is too large is not read at all', async () => {
    const { hook } = attached({ scheme: 'standard', maxBytes: 1_000 })
    const request = toRequest(await sign('standard', bodyOf('standard')), { 'content-length': '1001' })
    expect((await hook.fetch(request)).status).toBe(413)
    expect(request.bodyUsed).toBe(false)
  })

  test('a body at the limit is taken', async () => {
    const body = bodyOf('standard')
    const { hook } = attached({ scheme: 'standard', maxBytes: body.length })
    expect((await hook.fetch(toRequest(await sign('standard', body)))).status).toBe(200)
  })

  test('a body that breaks off', async () => {
    const { hook } = attached({ scheme: 'standard' })
    const { headers } = await sign('standard', bodyOf('standard'))
    const body = new ReadableStream({ pull: (controller) => controller.error(new Error('reset')) })
    const request = new Request('http://localhost/', { method: 'POST', headers, body, duplex: 'half' })
    expect((await hook.fetch(request)).status).toBe(400)
  })

  test('a body that somebody else has read: 500, and the owner is told what to do', async () => {
    const errors: unknown[] = []
    const { hook } = attached({ scheme: 'standard', onError: (error) => errors.push(error) })
    const request = toRequest(await sign('standard', bodyOf('standard')))
    await request.text()
    expect((await hook.fetch(request)).status).toBe(500)
    expect(errors).toMatchObject([{ code: 'OPTION_INVALID' }])
  })
})

describe('answers', () => {
  const outcomes: [name: string, outcome: Outcome, status: number, retryAfter: string | null][] = [
    ['handled', { id: '1', ack: true, status: 'handled', result: { secret: 1 }, consumers: [] }, 200, null],
    ['duplicate', { id: '1', ack: true, status: 'duplicate', consumers: [] }, 200, null],
    ['quarantined', { id: '1', ack: true, status: 'quarantined', reason: 'undecodable', consumers: [] }, 200, null],
    ['dead', { id: '1', ack: true, status: 'dead', error: failure(), consumers: [] }, 200, null],
    ['busy', { id: '1', ack: false, status: 'busy', consumers: [] }, 409, '1'],
    ['failed', { id: '1', ack: false, status: 'failed', error: failure(), consumers: [] }, 503, '5'],
    ['failed, but stored', { id: '1', ack: true, status: 'failed', error: failure(), consumers: [] }, 200, null],
    [
      'failed until a time',
      {
        id: '1',
        ack: false,
        retryAt: new Date(NOW + 41_500),
        status: 'failed',
        error: failure(),
        consumers: [{ consumer: 'a', status: 'failed', error: failure(), retryAt: new Date(NOW + 41_500) }],
      },
      503,
      '42',
    ],
  ]
  test.for(outcomes)('%s', async ([, outcome, status, retryAfter]) => {
    const hook = webhook({ scheme: 'standard', secret: SECRETS.standard, now: () => NOW })
    await hook.start(async () => [outcome])
    const response = await hook.fetch(toRequest(await sign('standard', bodyOf('standard'), { at: NOW })))
    expect([response.status, response.headers.get('retry-after')]).toEqual([status, retryAfter])
    expect(await response.json()).toEqual({ status: outcome.status })
  })

  test('what goes wrong inside stays inside', async () => {
    const errors: unknown[] = []
    const hook = webhook({ scheme: 'standard', secret: SECRETS.standard, onError: (error) => errors.push(error) })
    const error = new Error('connect ECONNREFUSED postgres://user:hunter2@db')
    await hook.start(() => Promise.reject(error))
    const response = await hook.fetch(toRequest(await sign('standard', bodyOf('standard'))))
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '5'])
    expect(await response.text()).toBe('{"error":"try again later"}')
    expect(errors).toEqual([error])
  })

  test('without onError there is a process warning, which names the kind of error and nothing that it says', async () => {
    const hook = webhook({ scheme: 'standard', secret: SECRETS.standard })
    await hook.start(() => Promise.reject(Object.assign(new Error('hunter2'), { code: 'ECONNREFUSED' })))
    const warned = new Promise<Error>((resolve) => process.once('warning', resolve))
    await hook.fetch(toRequest(await sign('standard', bodyOf('standard'))))
    const warning = await warned
    expect(warning).toMatchObject({ code: 'ONCEBOX_WEBHOOK' })
    expect(warning.message).toContain('ECONNREFUSED')
    expect(warning.message).not.toContain('hunter2')
  })

  test('nothing that is told the sender or the owner holds a secret', async () => {
    const { hook } = attached({ scheme: 'standard' })
    const sent = await sign('standard', bodyOf('standard'))
    const answers = await Promise.all([
      hook.fetch(toRequest(sent, { 'webhook-id': 'other' })),
      hook.fetch(toRequest(sent, { 'webhook-timestamp': '1' })),
      hook.fetch(toRequest(sent, { 'webhook-signature': 'x' })),
    ])
    const told = (await Promise.all(answers.map((one) => one.text()))).join('\n')
    expect(told).not.toContain(SECRETS.standard.slice(6, 16))
    expect(told).not.toContain(sent.headers['webhook-signature']!.slice(3, 12))
  })

  test('before box.from and after box.stop it is 503, and onError is told once of each', async () => {
    const errors: unknown[] = []
    const hook = webhook({ scheme: 'standard', secret: SECRETS.standard, onError: (error) => errors.push(error) })
    const status = async (): Promise<number> =>
      (await hook.fetch(toRequest(await sign('standard', bodyOf('standard'))))).status
    for (let n = 0; n < 5; n++) expect(await status()).toBe(503)
    const deliver = async (batch: readonly Incoming[]): Promise<Outcome[]> =>
      batch.map(({ id }) => ({ id, ack: true, status: 'stored', consumers: [] }))
    await hook.start(deliver)
    expect(await status()).toBe(200)
    await hook.stop()
    for (let n = 0; n < 5; n++) expect(await status()).toBe(503)
    await hook.start(deliver)
    expect(await status()).toBe(200)
    expect(errors).toMatchObject([{ code: 'STOPPED' }, { code: 'STOPPED' }])
    await expect(hook.start(async () => [])).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  })
})

describe('what the message is', () => {
  const get = async (options: Partial<WebhookSourceOptions> & { scheme: Scheme }, body: string, id?: string) => {
    const { hook, got } = attached({ ...options, now: () => NOW })
    const signing = { at: NOW, ...(id !== undefined && { id }) }
    const response = await hook.fetch(toRequest(await sign(options.scheme, body, signing)))
    expect(response.status).toBe(200)
    const { body: bytes, ...rest } = got[0]!
    return { ...rest, text: bytes === undefined ? undefined : Buffer.from(bytes).toString() }
  }

  test('Standard Webhooks: id of the header, type and time of the body, which is the data as it came', async () => {
    const body = '{"type":"contact.created", "timestamp":"2022-11-03T20:26:10.344522Z","data":{"id":"1"}}'
    expect(await get({ scheme: 'standard' }, body, 'msg_9')).toEqual({
      id: 'msg_9',
      source: 'standard',
      type: 'contact.created',
      time: '2022-11-03T20:26:10.344522Z',
      text: body,
    })
  })

  test.for<[timestamp: string, time: unknown]>([
    ['2022-11-03T20:26:10.344522Z', '2022-11-03T20:26:10.344522Z'],
    ['2022-11-03T20:26:10+01:00', '2022-11-03T20:26:10+01:00'],
    ['2022-11-03', '2022-11-03'],
    // V8 makes a date of each of these, of 2001 as a rule.
    ['12', new Date(NOW)],
    ['build 7', new Date(NOW)],
    ['order 2022-11-03', new Date(NOW)],
    ['2022-13-03T20:26:10Z', new Date(NOW)],
  ])('Standard Webhooks: of the timestamp %j, only a date is the time', async ([timestamp, time]) => {
    expect((await get({ scheme: 'standard' }, JSON.stringify({ type: 'note', timestamp }))).time).toEqual(time)
  })

  test('with source: event, a CloudEvent under Standard Webhooks is that event, whatever its content type', async () => {
    const event = {
      specversion: '1.0',
      id: 'e.1',
      source: 'shop',
      type: 'order.placed',
      partitionkey: 'k',
      data: { a: 1 },
    }
    expect(await get({ scheme: 'standard', source: 'event' }, JSON.stringify(event))).toEqual({
      id: 'e.1',
      source: 'shop',
      type: 'order.placed',
      key: 'k',
      time: new Date(NOW),
      text: '{"a":1}',
    })
  })

  test.for([
    [undefined, 'standard'],
    ['partner', 'partner'],
  ])('unless it is told to, no sender can pass for another: source %s', async ([source, expected]) => {
    const event = { specversion: '1.0', id: 'evt_1', source: 'stripe', type: 'order.placed', data: { a: 1 } }
    const options = { scheme: 'standard', ...(source !== undefined && { source }) } as const
    expect(await get(options, JSON.stringify(event), 'msg_5')).toMatchObject({
      id: 'msg_5',
      source: expected,
      type: 'order.placed',
    })
  })

  test.for([
    ['{"created":1700000000,"id":"evt_1","type":"charge.succeeded"}', new Date(1_700_000_000_000)],
    ['{"created":"build 7","id":"evt_1","type":"charge.succeeded"}', new Date(NOW)],
    ['{"created":"2024-01-01T00:00:00Z","id":"evt_1","type":"charge.succeeded"}', new Date('2024-01-01T00:00:00Z')],
    ['{"created":"soon","id":"evt_1","type":"charge.succeeded"}', new Date(NOW)],
  ] as const)('Stripe: id, type and time of the event: %s', async ([body, time]) => {
    expect(await get({ scheme: 'stripe' }, body)).toEqual({
      id: 'evt_1',
      source: 'stripe',
      type: 'charge.succeeded',
      time,
      text: body,
    })
  })

  test('Stripe: an event without an id has none, and what is no JSON goes by its bytes', async () => {
    expect(await get({ scheme: 'stripe' }, '{"type":"x"}')).toMatchObject({ id: undefined, type: 'x' })
    const broken = await get({ scheme: 'stripe' }, '{"id":')
    expect(broken).toMatchObject({ id: expect.stringMatching(/^sha256-[0-9a-f]{64}$/), type: 'stripe' })
  })

  test('GitHub: id and type of the headers', async () => {
    const got = await get({ scheme: 'github', source: 'github.com/acme' }, '{"action":"opened"}', '72d3162e')
    expect(got).toEqual({ id: '72d3162e', source: 'github.com/acme', type: 'note', text: '{"action":"opened"}' })
  })

  test('`type` names it, `map` changes it', async () => {
    const body = '{"action":"opened","repository":{"full_name":"acme/shop"}}'
    const typed = await get(
      {
        scheme: 'github',
        type: ({ headers, data }) => `${headers['x-github-event']}.${(data as { action: string }).action}`,
      },
      body,
    )
    expect(typed.type).toBe('note.opened')
    expect((await get({ scheme: 'github', type: 'anything' }, body)).type).toBe('anything')
    const mapped = await get(
      {
        scheme: 'github',
        map: ({ message, data }) => ({
          ...message,
          key: (data as { repository: { full_name: string } }).repository.full_name,
        }),
      },
      body,
    )
    expect(mapped).toMatchObject({ id: 'msg_1', key: 'acme/shop', text: body })
  })

  test.for(['type', 'map'] as const)('a `%s` that throws: the sender keeps it, and is to try again', async (name) => {
    const errors: unknown[] = []
    const { hook, got } = attached({
      scheme: 'github',
      [name]: () => {
        throw new Error('hunter2')
      },
      onError: (error) => errors.push(error),
    })
    const response = await hook.fetch(toRequest(await sign('github', bodyOf('github'))))
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '60'])
    expect(await response.text()).not.toContain('hunter2')
    expect(got).toEqual([])
    expect(errors).toMatchObject([{ message: 'hunter2' }])
  })

  test.for([undefined, null, 'text', Promise.resolve({}), { id: '1', type: 't', data: 1n }])(
    'a `map` that returns no message, but %s: so as well',
    async (returned) => {
      const errors: unknown[] = []
      const onError = (error: unknown): unknown => errors.push(error)
      const { hook, got } = attached({ scheme: 'github', map: () => returned as Incoming, onError })
      const response = await hook.fetch(toRequest(await sign('github', bodyOf('github'))))
      expect([response.status, got]).toEqual([503, []])
      expect(errors).toMatchObject([{ code: 'MESSAGE_INVALID' }])
    },
  )

  test('without onError, a process warning says that `map` failed, and nothing of what was sent', async () => {
    const { hook } = attached({ scheme: 'github', map: ({ body }) => JSON.parse(`${String(body)}hunter2`) as Incoming })
    const warned = once(process, 'warning') as Promise<[Error & { code: string }]>
    await hook.fetch(toRequest(await sign('github', bodyOf('github'))))
    const [warning] = await warned
    expect(warning).toMatchObject({ code: 'ONCEBOX_WEBHOOK' })
    expect(warning.message).toMatch(/^type or map of a webhook failed, .*\(SyntaxError\)$/)
  })

  test('what is not JSON reaches neither `type` nor `map`', async () => {
    const called: string[] = []
    for (const scheme of SCHEMES) {
      const { hook, got } = attached({
        scheme,
        type: () => void called.push('type'),
        map: ({ message }) => (called.push('map'), message),
      })
      const sent = await sign(scheme, 'payload=%7B%7D')
      expect((await hook.fetch(toRequest(sent))).status).toBe(200)
      expect(got).toMatchObject([{ id: expect.any(String) as string, body: Buffer.from(sent.body) }])
    }
    expect(called).toEqual([])
  })
})

describe('options', () => {
  const make = (options: object) => () => webhook(options as WebhookSourceOptions)
  test.for<[string, object]>([
    ['no secret', { scheme: 'standard' }],
    ['an empty secret', { scheme: 'standard', secret: '' }],
    ['an empty list', { scheme: 'standard', secret: [] }],
    ['an empty standard secret', { scheme: 'standard', secret: 'whsec_' }],
    ['a standard secret that is no base64', { scheme: 'standard', secret: 'hunter2!' }],
    ['an asymmetric key', { scheme: 'standard', secret: 'whpk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' }],
    [
      'a standard secret of 23 bytes',
      { scheme: 'standard', secret: `whsec_${Buffer.alloc(23, 'hunter2').toString('base64')}` },
    ],
    ['a short secret in a list', { scheme: 'standard', secret: [SECRETS.standard, 'aHVudGVyMg=='] }],
    ['a secret of 15 characters', { scheme: 'stripe', secret: 'hunter2hunter2h' }],
    ['white space before a secret', { scheme: 'github', secret: ' hunter2hunter2hunter2' }],
    ['a line feed after a secret', { scheme: 'stripe', secret: 'hunter2hunter2hunter2\n' }],
    ['white space alone', { scheme: 'github', secret: ' '.repeat(30) }],
    ['the word undefined', { scheme: 'github', secret: 'undefined' }],
    ['the word null', { scheme: 'standard', secret: 'null' }],
    ['a sink with a short secret', { url: 'https://example.com', secret: 'aHVudGVyMg==' }],
    ['an unknown scheme', { scheme: 'slack', secret: 'hunter2' }],
    ['an unknown option', { scheme: 'stripe', secret: SECRETS.stripe, tolerance: 5 }],
    ['a tolerance for GitHub', { scheme: 'github', secret: SECRETS.github, toleranceMs: 5 }],
    ['a limit of nothing', { scheme: 'stripe', secret: SECRETS.stripe, maxBytes: 0 }],
    ['a sink that signs as Stripe does', { url: 'https://example.com', scheme: 'stripe', secret: 'hunter2' }],
    ['a sink without a secret', { url: 'https://example.com' }],
    ['a url that is none', { url: 'example.com/hunter2', secret: SECRETS.standard }],
    ['a url of another kind', { url: 'file:///hunter2', secret: SECRETS.standard }],
    ['a url with a password', { url: 'https://a:hunter2@example.com', secret: SECRETS.standard }],
    ['a header of ours', { url: 'https://example.com', secret: SECRETS.standard, headers: { 'Webhook-Id': 'x' } }],
    ['a header that is none', { url: 'https://example.com', secret: SECRETS.standard, headers: { x: 'a\nb' } }],
  ])('%s is refused, and the message shows no secret', ([, options]) => {
    expect(make(options)).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
    expect(make(options)).not.toThrow(/hunter2|aHVudGVyM/)
  })
})

function failure(): { name: string; message: string } {
  return { name: 'Error', message: 'what the handler threw' }
}
