/** CloudEvents 1.0: the examples of the specification, both ways, and what it says about headers and data. */
import { describe, expect, test } from 'vitest'
import fc from 'fast-check'
import type { Incoming, Message } from 'oncebox'
import {
  AMQP,
  HTTP,
  KAFKA,
  readBinary,
  readEvent,
  readStructured,
  writeBinary,
  writeStructured,
  type Envelope,
} from '../../src/brokers/cloudevents.js'
import { decodeHeader, encodeHeader } from '../../src/brokers/percent.js'

const bytes = (text: string): Uint8Array => Buffer.from(text)
const text = (body: Uint8Array): string => Buffer.from(body).toString()

/** The data, however it is handed in. */
function dataOf({ body, data }: Incoming): unknown {
  return body === undefined ? data : (JSON.parse(Buffer.from(body).toString()) as unknown)
}

function message(given: Partial<Message> = {}): Message {
  const id = given.id ?? 'C234-1234-1234'
  return {
    id,
    source: '/mycontext',
    type: 'com.example.someevent',
    data: null,
    headers: {},
    receivedAt: new Date(0),
    attempt: 1,
    correlationId: id,
    ...given,
  }
}

/** The examples of the JSON event format, section 3.2, with their counterparts in HTTP. */
const EXAMPLES: { name: string; json: object; headers: Record<string, string>; body: string; data: unknown }[] = [
  {
    name: 'an XML document',
    json: { id: 'B234-1234-1234', datacontenttype: 'application/xml', unsetextension: null, data: '<much wow="xml"/>' },
    headers: { 'ce-id': 'B234-1234-1234', 'content-type': 'application/xml' },
    body: '<much wow="xml"/>',
    data: '<much wow="xml"/>',
  },
  {
    name: 'a JSON object',
    json: {
      id: 'C234-1234-1234',
      subject: null,
      datacontenttype: 'application/json',
      data: { appinfoA: 'abc', appinfoB: 123, appinfoC: true },
    },
    headers: { 'ce-id': 'C234-1234-1234', 'content-type': 'application/json' },
    body: '{ "appinfoA" : "abc", "appinfoB" : 123, "appinfoC" : true }',
    data: { appinfoA: 'abc', appinfoB: 123, appinfoC: true },
  },
  {
    name: 'a JSON number',
    json: { id: 'C234-1234-1234', subject: null, datacontenttype: 'application/json', data: 1.5 },
    headers: { 'ce-id': 'C234-1234-1234', 'content-type': 'application/json' },
    body: '1.5',
    data: 1.5,
  },
  {
    name: 'a literal JSON string without a content type',
    json: { id: 'D234-1234-1234', subject: null, data: "I'm just a string" },
    headers: { 'ce-id': 'D234-1234-1234', 'content-type': 'application/json' },
    body: '"I\'m just a string"',
    data: "I'm just a string",
  },
]

const COMMON = {
  specversion: '1.0',
  type: 'com.example.someevent',
  source: '/mycontext',
  time: '2018-04-05T17:31:00Z',
  comexampleextension1: 'value',
  comexampleothervalue: 5,
}
const COMMON_HEADERS = Object.fromEntries(Object.entries(COMMON).map(([name, value]) => [`ce-${name}`, String(value)]))

describe("the specification's examples", () => {
  test.for(EXAMPLES)('read in both modes, they are one message: $name', ({ json, headers, body, data }) => {
    const structured = readStructured(JSON.stringify({ ...COMMON, ...json }))!
    const binary = readEvent({ headers: { ...COMMON_HEADERS, ...headers }, body: bytes(body) })!
    for (const event of [structured, binary]) {
      const { body: _body, data: _data, headers: read, ...rest } = event
      expect(rest).toEqual({
        id: headers['ce-id'],
        source: '/mycontext',
        type: 'com.example.someevent',
        time: '2018-04-05T17:31:00Z',
      })
      expect(read).toEqual({
        comexampleextension1: 'value',
        comexampleothervalue: '5',
        ...(headers['content-type'] !== 'application/json' && { datacontenttype: headers['content-type'] }),
      })
      expect(dataOf(event)).toEqual(data)
    }
  })

  test.for(EXAMPLES)('written, they have the headers and the body of the example: $name', ({ headers, body, data }) => {
    const time = new Date('2018-04-05T17:31:00Z')
    const extensions = { comexampleextension1: 'value', comexampleothervalue: '5' }
    const contentType = headers['content-type']!
    const sent = message({
      id: headers['ce-id']!,
      time,
      data,
      headers: { ...extensions, ...(contentType !== 'application/json' && { datacontenttype: contentType }) },
    })
    const binary = writeBinary(sent)
    expect(binary.headers).toEqual({ ...COMMON_HEADERS, ...headers, 'ce-time': '2018-04-05T17:31:00.000Z' })
    if (contentType === 'application/json') expect(JSON.parse(text(binary.body))).toEqual(JSON.parse(body))
    else expect(text(binary.body)).toBe(body)

    const structured = writeStructured(sent)
    expect(structured.headers).toEqual({ 'content-type': 'application/cloudevents+json; charset=utf-8' })
    expect(JSON.parse(text(structured.body))).toEqual({
      ...COMMON,
      comexampleothervalue: '5',
      id: headers['ce-id'],
      time: '2018-04-05T17:31:00.000Z',
      datacontenttype: contentType,
      data,
    })
  })

  test('binary data comes as bytes', () => {
    const thrift = { ...COMMON, id: 'A234-1234-1234', datacontenttype: 'application/vnd.apache.thrift.binary' }
    const structured = readStructured(JSON.stringify({ ...thrift, data_base64: '/wABAg==' }))!
    expect(structured.body).toEqual(Buffer.from([255, 0, 1, 2]))
    expect(structured.headers).toMatchObject({ datacontenttype: 'application/vnd.apache.thrift.binary' })
  })

  test('bytes without a content type are for the box to decode', () => {
    const event = { specversion: '1.0', type: 't', source: '/s', id: '1', data_base64: 'eyAieHl6IjogMTIzIH0=' }
    expect(text(readStructured(JSON.stringify(event))!.body as Uint8Array)).toBe('{ "xyz": 123 }')
  })

  test('the example of the HTTP binding in binary mode', () => {
    const headers = {
      'ce-specversion': '1.0',
      'ce-type': 'com.example.someevent',
      'ce-time': '2018-04-05T03:56:24Z',
      'ce-id': '1234-1234-1234',
      'ce-source': '/mycontext/subcontext',
      'Content-Type': 'application/json; charset=utf-8',
    }
    expect(readEvent({ headers, body: bytes('{"a":1}') })).toEqual({
      id: '1234-1234-1234',
      source: '/mycontext/subcontext',
      type: 'com.example.someevent',
      time: '2018-04-05T03:56:24Z',
      body: bytes('{"a":1}'),
    })
  })

  test("the extension's trace context wins over that of the hop, which is read where there is no other", () => {
    const start = '00-0af7651916cd43dd8448eb211c80319c-b9c7c989f97918e1-01'
    const hop = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
    const headers = { 'ce-id': '1', 'ce-specversion': '1.0', 'ce-type': 'example', 'ce-source': 'http://localhost' }
    const both = readEvent({ headers: { ...headers, 'ce-traceparent': start, traceparent: hop }, body: bytes('1') })
    expect(both!.headers).toEqual({ traceparent: start })
    const one = readEvent({ headers: { ...headers, Traceparent: hop, tracestate: 'rojo=1' }, body: bytes('1') })
    expect(one!.headers).toEqual({ traceparent: hop, tracestate: 'rojo=1' })
  })
})

describe('headers', () => {
  test.for([
    ['Euro € 😀', 'Euro%20%E2%82%AC%20%F0%9F%98%80'],
    ['100%', '100%25'],
    ['"quoted"', '%22quoted%22'],
    ['a\\b', 'a\\b'],
    ['~!#$&', '~!#$&'],
    ['tab\tand\u007f', 'tab%09and%7F'],
    ['', ''],
  ] as const)('%j is written as %s', ([value, encoded]) => {
    expect(encodeHeader(value)).toBe(encoded)
    expect(decodeHeader(encoded)).toBe(value)
  })

  test.for([
    ['%e2%82%ac', '€', 'lower case is read'],
    ['%41%2e', 'A.', 'what need not be encoded may be'],
    ['%2541', '%41', 'one round, not two'],
    ['"a \\"b\\" c"', 'a "b" c', 'older versions quoted'],
    ['"%20"', ' ', 'quotes come off first'],
    ['50% off', '50% off', 'a stray percent stays'],
    ['%C0%A0', undefined, 'an overlong encoding is refused'],
    ['%ff', undefined, 'what is not UTF-8 is refused'],
  ] as const)('%s is read as %s: %s', ([encoded, value]) => {
    expect(decodeHeader(encoded)).toBe(value)
  })

  test('every text survives', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (value) => {
        const encoded = encodeHeader(value)
        expect(encoded).toMatch(/^[\x21-\x7e]*$/)
        expect(decodeHeader(encoded)).toBe(value)
      }),
    )
  })

  test('an event with a header that must be refused comes without an id', () => {
    const headers = { 'ce-id': '1', 'ce-specversion': '1.0', 'ce-type': 't', 'ce-source': '/s', 'ce-x': '%ff' }
    expect(readEvent({ headers, body: bytes('1') })).toMatchObject({ id: undefined, type: 't' })
  })
})

describe('every part of a message survives', () => {
  const full = message({
    id: 'ä "1" %20',
    source: 'shop',
    type: 'order.placed',
    key: 'customer 1',
    subject: 'orders/€',
    time: new Date('2024-02-29T12:00:00.123Z'),
    correlationId: 'first',
    causationId: 'before',
    data: { text: 'a"b\\', nested: [1, { data: 'x' }], data: { data: 1 } },
    headers: {
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b9c7c989f97918e1-01',
      tracestate: 'rojo=1,congo=2',
      tenant: 'ünï',
      dataschema: 'https://example.com/schema',
      'x-request-id': 'r 1',
      Upper: 'case',
      id: 'a header that is called like a field',
      empty: '',
    },
  })
  const expected = {
    id: full.id,
    source: 'shop',
    type: 'order.placed',
    key: 'customer 1',
    subject: 'orders/€',
    time: '2024-02-29T12:00:00.123Z',
    headers: { ...full.headers, correlationid: 'first', causationid: 'before' },
  }

  test.for<[string, (sent: Message) => Envelope, (envelope: Envelope) => Incoming | undefined]>([
    ['structured', writeStructured, readEvent],
    ['binary over HTTP', (sent) => writeBinary(sent, HTTP), readEvent],
    ['binary over Kafka', (sent) => writeBinary(sent, KAFKA), (envelope) => readEvent(envelope, { binding: KAFKA })],
    ['binary over AMQP', (sent) => writeBinary(sent, AMQP), (envelope) => readEvent(envelope, { binding: AMQP })],
  ])('%s', ([, write, read]) => {
    const event = read(write(full))!
    const { body: _body, data: _data, ...rest } = event
    expect(rest).toEqual(expected)
    expect(dataOf(event)).toEqual(full.data)
  })

  test('an attribute called __proto__ pollutes nothing', () => {
    const event = readStructured('{"specversion":"1.0","id":"1","source":"s","type":"t","__proto__":"x","data":1}')!
    expect(Object.keys(event.headers!)).toEqual(['__proto__'])
    expect(Object.getPrototypeOf(event.headers)).toBe(Object.prototype)
  })

  test('numbers keep their digits', () => {
    const json = '{"specversion":"1.0","id":"1","source":"s","type":"t","data" : {"n": 12345678901234567890.10} }'
    expect(readStructured(json)!.body).toBe('{"n": 12345678901234567890.10}')
  })

  test('of two members called data the last counts, and nested ones do not', () => {
    const json =
      '{"data":{"data":1,"s":"}\\""},"x":"data","specversion":"1.0","id":"1","source":"s","type":"t","d\\u0061ta":[2]}'
    expect(readStructured(json)!.body).toBe('[2]')
  })

  test('any JSON comes out as it went in', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (data) => {
        const json = JSON.parse(JSON.stringify(data)) as unknown
        for (const write of [writeStructured, writeBinary]) {
          expect(dataOf(readEvent(write(message({ data: json })))!)).toEqual(json)
        }
      }),
    )
  })
})

describe('what is no event, or not a good one', () => {
  test.for<[string, Envelope]>([
    ['headers without a version', { headers: { 'ce-id': '1', 'content-type': 'application/json' }, body: bytes('{}') }],
    ['another version', { headers: { 'ce-id': '1', 'ce-specversion': '0.3' }, body: bytes('{}') }],
    ['a batch', { headers: { 'content-type': 'application/cloudevents-batch+json' }, body: bytes('[]') }],
    ['another format', { headers: { 'content-type': 'application/cloudevents+avro' }, body: bytes('x') }],
    ['no JSON', { headers: { 'content-type': 'application/cloudevents+json' }, body: bytes('{') }],
    ['no UTF-8', { headers: { 'content-type': 'application/cloudevents+json' }, body: Buffer.from([123, 255]) }],
    ['a list', { headers: { 'content-type': 'application/cloudevents+json' }, body: bytes('[]') }],
  ])('%s is none', ([, envelope]) => {
    expect(readEvent(envelope)).toBeUndefined()
  })

  test('an attribute that is a number beyond 2^53 keeps its digits', () => {
    const json = '{"specversion":"1.0","id":"1","source":"s","type":"t","n":9007199254740993,"small":7,"yes":true}'
    expect(readStructured(json)!.headers).toEqual({ n: '9007199254740993', small: '7', yes: 'true' })
  })

  test('an event that breaks the rules comes as the whole document, and says why', () => {
    const json = '{"specversion":"1.0","id":"1","source":"s","type":"t","tags":["a"],"time":7,"data":1}'
    expect(readStructured(json)).toEqual({
      ...{ id: undefined, source: 's', type: 't', body: json },
      headers: { 'oncebox-problem': 'tags is a list or an object; time is not text' },
    })
  })

  test.for<[string, object]>([
    ['a list as an attribute', { tags: ['a'] }],
    ['an object as an attribute', { tags: {} }],
    ['data_base64 that is none', { data_base64: '%%' }],
    ['no id', { id: undefined }],
    ['an id that is a number', { id: 1 }],
    ['a subject that is an object', { subject: {} }],
    ['both kinds of data', { data: 1, data_base64: 'MQ==' }],
  ])('with %s it comes without an id', ([, given]) => {
    const event = { specversion: '1.0', id: '1', source: 's', type: 't', ...given }
    expect(readStructured(JSON.stringify(event))!.id).toBeUndefined()
  })

  test('no data is null', () => {
    const headers = { 'ce-id': '1', 'ce-specversion': '1.0', 'ce-type': 't', 'ce-source': '/s' }
    expect(readBinary({ headers, body: bytes('') })).toMatchObject({ data: null })
    expect(readStructured('{"specversion":"1.0","id":"1","source":"s","type":"t"}')).toMatchObject({ data: null })
  })

  test('other headers of the transport are dropped, unless they are asked for', () => {
    const headers = {
      'ce-id': '1',
      'ce-specversion': '1.0',
      'ce-type': 't',
      'ce-source': '/s',
      authorization: 'x',
      a: 'b',
    }
    expect(readBinary({ headers, body: bytes('1') })!.headers).toBeUndefined()
    expect(readBinary({ headers, body: bytes('1') }, { keep: (name) => name === 'a' })!.headers).toEqual({ a: 'b' })
  })
})
