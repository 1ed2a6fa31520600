/** What every adapter does with headers and bytes, and with bodies that are not JSON. */
import { describe, expect, test } from 'vitest'
import type { Codec, Incoming, Message } from 'oncebox'
import { redis } from 'oncebox/redis'
import { createTestBox } from 'oncebox/testing'
import { AMQP, HTTP, KAFKA } from '../../src/brokers/cloudevents.js'
import { toEnvelope, toIncoming } from '../../src/brokers/event.js'
import { unmappedProblem } from '../../src/brokers/unmapped.js'

const reversed: Codec = {
  contentType: 'application/x-reversed',
  decode: (body) => JSON.parse([...Buffer.from(body).toString()].reverse().join('')) as unknown,
  encode: (data) => Buffer.from([...JSON.stringify(data)].reverse().join('')),
}
const message: Message = {
  id: 'm-1',
  source: 'shop',
  type: 'order.placed',
  key: 'k-1',
  subject: 'order/1',
  time: new Date('2026-03-04T05:06:07.000Z'),
  data: { text: 'ü' },
  headers: { traceparent: '00-1-2-01', 'X-Own': 'yes' },
  receivedAt: new Date(),
  attempt: 1,
  correlationId: 'conversation',
}
const expected = {
  id: 'm-1',
  source: 'shop',
  type: 'order.placed',
  key: 'k-1',
  subject: 'order/1',
  headers: { traceparent: '00-1-2-01', 'X-Own': 'yes', correlationid: 'conversation' },
}

describe.for(Object.entries({ HTTP, KAFKA, AMQP }))('%s', ([, binding]) => {
  test.for(['binary', 'structured'] as const)('an event comes back as it was written: %s', (mode) => {
    const incoming = toIncoming(null, toEnvelope(message, binding, { mode }), binding)
    expect(incoming).toMatchObject(expected)
    expect(new Date(incoming.time!)).toEqual(message.time)
    expect(JSON.parse(Buffer.from(incoming.body!).toString())).toEqual(message.data)
  })

  test('and with a codec, in bytes of its own', () => {
    const envelope = toEnvelope(message, binding, { codec: reversed })
    expect(envelope.headers['content-type']).toBe('application/x-reversed')
    expect(Buffer.from(envelope.body).toString()).toBe('}"ü":"txet"{')
    expect(toIncoming(null, envelope, binding, { codec: reversed })).toMatchObject({ ...expected, data: message.data })
  })
})

describe('what is no CloudEvent', () => {
  const received = {
    headers: { own: 'yes' },
    body: Buffer.from('{}'),
    id: 'b-1',
    source: 'queue',
    type: 'queue',
    key: 'k',
    time: new Date(0),
    redelivered: true,
  }

  test('is what the broker knows of it', () => {
    expect(toIncoming(null, received, HTTP)).toEqual(received)
    expect(toIncoming(null, { ...received, id: undefined }, HTTP).id).toBeUndefined()
  })

  test('or what the options say', () => {
    const options = { source: 'shop', type: (raw: { kind: string }) => raw.kind }
    expect(toIncoming({ kind: 'placed' }, received, HTTP, options)).toMatchObject({ source: 'shop', type: 'placed' })
    const map = (_raw: unknown, default_: Incoming): Incoming => ({ ...default_, key: 'mapped' })
    expect(toIncoming(null, received, HTTP, { map })).toMatchObject({ id: 'b-1', key: 'mapped' })
  })

  test.for<[what: string, returned: unknown, problem: string]>([
    ['nothing', undefined, 'map returned no message'],
    ['null', null, 'map returned no message'],
    ['text', 'm', 'map returned no message'],
    ['a list', [], 'map returned no message'],
    ['a promise', Promise.resolve({}), 'map returned no message but a promise; it must not be async'],
    ['a body of numbers', { id: '1', type: 't', body: 1 }, 'map returned a body that is neither'],
    ['data with a BigInt', { id: '1', type: 't', data: { n: 1n } }, 'map returned data that cannot be written as JSON'],
  ])('a map that returns %s leaves it as it came, marked, and says why', ([, returned, problem]) => {
    const incoming = toIncoming(null, received, HTTP, { map: () => returned as Incoming })
    expect(incoming).toMatchObject({ id: 'b-1', body: received.body, headers: { own: 'yes' } })
    expect(incoming.headers!['oncebox-problem']).toContain(problem)
    expect(unmappedProblem({ ...incoming })).toContain(problem)
  })

  test.for(['map', 'type'] as const)('a %s that throws leaves it as it came, marked, and says why', (name) => {
    const options = {
      [name]: () => {
        throw new Error('bad luck')
      },
    }
    const incoming = toIncoming(null, received, HTTP, options)
    expect(incoming).toMatchObject({
      id: 'b-1',
      headers: { own: 'yes', 'oncebox-problem': `${name} threw: Error: bad luck` },
    })
    expect(unmappedProblem(incoming)).toBe(`${name} threw: Error: bad luck`)
  })
})

test('a body that its codec cannot read is quarantined with its bytes, though it is JSON', async () => {
  await using box = await createTestBox()
  box.consumer('a', { placed: () => {} })
  const received = { headers: {}, id: '1', type: 'placed', body: Buffer.from('{"a":1}') }
  expect(await box.receive(toIncoming(null, received, HTTP, { codec: reversed }))).toMatchObject({
    status: 'quarantined',
    reason: 'undecodable',
  })
  const [entry] = await box.admin.message({ id: '1' })
  expect(entry).toMatchObject({ state: 'quarantined', reason: 'undecodable', message: { data: { a: 1 } } })
})

const cyclic: unknown[] = []
cyclic.push(cyclic)

test('a codec that answers what JSON cannot hold has not read the body: it is quarantined with its bytes', async () => {
  await using box = await createTestBox()
  box.consumer('a', { placed: () => {} })
  // A map copies the message, and must not make it readable.
  const map = (_raw: unknown, default_: Incoming): Incoming => ({ ...default_ })
  for (const [id, data] of Object.entries({ big: { n: 10n }, cyclic, code: () => 1, promise: Promise.resolve(1) })) {
    const codec = { ...reversed, decode: () => data }
    for (const options of [{ codec }, { codec, map }]) {
      const received = { headers: {}, id, type: 'placed', body: Buffer.from('{"a":1}') }
      expect(await box.receive(toIncoming(null, received, HTTP, options))).toMatchObject({ reason: 'undecodable' })
    }
    expect(await box.admin.message({ id })).toMatchObject([{ reason: 'undecodable', message: { data: { a: 1 } } }])
  }
})

test.for<[what: string, options: object, problem: string]>([
  ['an empty source', { source: '' }, 'source must not be empty'],
  ['a type that is a number', { type: 1 }, 'type must be a string'],
  ['a map that is no function', { map: 'x' }, 'map must be a function'],
  ['an unknown mode', { mode: 'both' }, 'mode must be one of binary, structured'],
  ['half a codec', { codec: { decode() {} } }, 'codec must be { contentType, decode(bytes), encode(data) }'],
  ['a codec in structured mode', { codec: reversed, mode: 'structured' }, 'mode must be '],
])('%s is refused', ([, options, problem]) => {
  const both = { url: 'redis://localhost', stream: 's', group: 'g', to: 's' }
  expect(() => redis({ ...both, ...options })).toThrow(problem)
})
