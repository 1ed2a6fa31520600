/** Events of a producer that means harm, or knows no better: each must be read right, or end in quarantine with a reason. */
import assert from 'node:assert/strict'
import { prepare } from '../../inbox/prepare.js'
import type { Incoming } from '../../message.js'
import type { Runtime } from '../../runtime.js'
import type { RawMessage } from './bench.js'

export interface HostileEvent extends RawMessage {
  readonly what: string
  /** What the box makes of it; `either` where a broker's own rules decide. */
  readonly ends: 'stored' | 'quarantined' | 'either'
  /** The data, as its text, where that is the point. */
  readonly data?: string
  /** A broker that carries text alone cannot bring it. */
  readonly binary?: boolean
}

export const HOSTILE_TYPE = 'application/cloudevents+json'
const STRUCTURED = { 'content-type': HOSTILE_TYPE }

/** Attributes are called by this prefix in binary mode. */
export function hostileEvents(prefix: string): HostileEvent[] {
  let count = 0
  const list: HostileEvent[] = []
  const add = (what: string, ends: HostileEvent['ends'], raw: RawMessage, more: Partial<HostileEvent> = {}): void => {
    list.push({ what, ends, id: `broker-${count++}`, ...raw, ...more })
  }
  /** Members beyond the four that every event has; of two of one name the last counts. */
  const structured = (members: string): RawMessage => {
    const own = `"specversion":"1.0","id":"hostile-${count}","source":"elsewhere","type":"order.placed"`
    return { headers: STRUCTURED, body: `{${own}${members === '' ? '' : `,${members}`}}` }
  }
  const binary = (attributes: Readonly<Record<string, string>>, body: Uint8Array | string = '{"n":1}'): RawMessage => {
    const all = {
      ...{ specversion: '1.0', id: `hostile-${count}`, source: 'elsewhere', type: 'order.placed' },
      ...attributes,
    }
    const headers: Record<string, string> = { 'content-type': 'application/json' }
    for (const [name, value] of Object.entries(all)) {
      headers[name === 'content-type' ? name : `${prefix}${name}`] = value
    }
    return { headers, body }
  }

  for (const depth of [5_000, 100_000]) {
    add(`an attribute that is a list nested ${depth} deep`, 'quarantined', structured(`"a":${lists(depth)},"data":1`))
    add(`an attribute that is an object nested ${depth} deep`, 'quarantined', structured(`"a":${objects(depth)}`))
    add(`an id nested ${depth} deep`, 'quarantined', structured(`"id":${lists(depth)}`))
    add(`data nested ${depth} deep`, 'quarantined', structured(`"data":${lists(depth)}`))
    add(`data of text, nested ${depth} deep`, 'quarantined', {
      ...structured(`"datacontenttype":"text/plain","data":${objects(depth)}`),
    })
    add(`data_base64 nested ${depth} deep`, 'quarantined', structured(`"data_base64":${lists(depth)}`))
    add(`a body nested ${depth} deep`, 'quarantined', binary({}, lists(depth)))
  }
  add('data nested as deep as is allowed', 'stored', structured(`"data":${lists(499)}`), { data: lists(499) })
  add('a list as an attribute', 'quarantined', structured('"tags":["a"],"data":1'))
  add('an object as an attribute', 'quarantined', structured('"tags":{"toString":1},"data":1'))
  add('an object as __proto__', 'quarantined', structured('"__proto__":{"polluted":true},"data":1'))
  add('text as __proto__', 'stored', structured('"__proto__":"x","constructor":"y","toString":"z","data":1'))
  add('__proto__ in the data', 'stored', structured('"data":{"__proto__":{"polluted":true}}'), {
    data: '{"__proto__":{"polluted":true}}',
  })
  add('NUL in the id', 'quarantined', structured('"id":"a\\u0000b"'))
  add('a lone surrogate in the type', 'quarantined', structured('"type":"a\\ud800b"'))
  add('NUL in an attribute', 'quarantined', structured('"a":"\\u0000"'))
  add('a lone surrogate as the name of an attribute', 'quarantined', structured('"\\udfff":"a"'))
  add('NUL and a lone surrogate in the data', 'stored', structured('"data":"\\u0000\\ud800"'), {
    data: '"\\u0000\\ud800"',
  })
  add('an id of 10 000 characters', 'quarantined', structured(`"id":"${'x'.repeat(10_000)}"`))
  add('a key of 10 000 characters', 'quarantined', structured(`"partitionkey":"${'x'.repeat(10_000)}"`))
  add('members that are there twice', 'stored', structured('"type":"a","type":"order.placed","data":1,"data":[2]'), {
    data: '[2]',
  })
  add('numbers beyond 2^53', 'stored', structured('"n":12345678901234567890,"data":{"n":12345678901234567890.10}'), {
    data: '{"n":12345678901234567890.10}',
  })
  add('a number that is infinite', 'stored', structured('"data":[1e999,-1e999]'), { data: '[1e999,-1e999]' })
  for (const time of ['"+275760-09-13T00:00:00.001Z"', '"-000001-01-01T00:00:00Z"', '"tomorrow"', '1e99', '{}']) {
    add(`the time ${time}`, 'quarantined', structured(`"time":${time}`))
  }
  add('an attribute of 200 000 characters', 'stored', structured(`"a":"${'x'.repeat(200_000)}","data":1`))
  add('70 000 attributes', 'either', structured(numbered(70_000)))
  add('attributes of more than a megabyte', 'quarantined', structured(`"a":"${'x'.repeat(1_100_000)}","data":1`))
  for (const member of ['id', 'type']) add(`an empty ${member}`, 'quarantined', structured(`"${member}":""`))
  for (const version of ['"1.1"', '"0.3"', '1.0', 'null', '""', '[]', lists(5_000)]) {
    add(`the specversion ${version.slice(0, 10)}`, 'either', structured(`"specversion":${version}`))
  }
  for (const base64 of ['"%%%"', '7', '{}', '"e30=","data":1', '"A"']) {
    add(`data_base64 ${base64}`, base64 === '"A"' ? 'either' : 'quarantined', structured(`"data_base64":${base64}`))
  }
  add('data_base64 that is JSON', 'stored', structured('"data_base64":"eyJuIjoxfQ=="'), { data: '{"n":1}' })
  for (const body of ['{}', 'null', '[]', '""', '{"specversion":"1.0"}', '['.repeat(100_000), '{', ' ', '\ufeff{}']) {
    add(`a document ${JSON.stringify(body.slice(0, 12))}`, 'either', { headers: STRUCTURED, body })
  }
  for (const type of [
    'APPLICATION/CLOUDEVENTS+JSON',
    'application/cloudevents+json; charset=utf-16',
    'application/cloudevents',
    'application/cloudevents-batch+json',
    'application/cloudevents+jsonx',
    `application/${'+'.repeat(10_000)}json`,
    `application/json${' '.repeat(10_000)}x`,
    'text/plain',
    ',',
    '/',
  ]) {
    add(`the content type ${type.slice(0, 50)}`, 'either', {
      ...structured('"data":1'),
      headers: { 'content-type': type },
    })
  }
  add('headers that another library wrote', 'either', binary({ onceboxheaders: lists(5_000) }))
  add('headers in headers', 'either', binary({ onceboxheaders: '{"__proto__":"x","id":"y","a":{}}' }))
  add('percent signs that are no encoding', 'either', binary({ subject: '%', a: '%ff%fe%', b: '%C3%28' }))
  add('quotes', 'either', binary({ subject: '"', a: '"\\"', b: '""' }))
  add('text that is JSON', 'stored', binary({ 'content-type': 'text/plain' }), { data: '"{\\"n\\":1}"' })
  add('a body that is not UTF-8', 'quarantined', binary({}, Buffer.from([0x22, 0xff, 0xfe, 0x22])), { binary: true })
  add('text that is not UTF-8', 'quarantined', binary({ 'content-type': 'text/xml' }, Buffer.from([0xc3, 0x28])), {
    binary: true,
  })
  add(
    'an event that is not UTF-8',
    'either',
    { headers: STRUCTURED, body: Buffer.from([0x7b, 0xff]) },
    { binary: true },
  )
  add('text with NUL', 'either', binary({ 'content-type': 'text/plain' }, 'a\0b'), { binary: true })
  add('a body with NUL', 'quarantined', binary({}, '{"a":"\0"}'), { binary: true })
  return list
}

function lists(depth: number): string {
  return '['.repeat(depth) + ']'.repeat(depth)
}

function objects(depth: number): string {
  return `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`
}

function numbered(count: number): string {
  return Array.from({ length: count }, (_, n) => `"a${n}":${n % 2 ? n : `"${n % 7}"`}`).join(',')
}

/** What a box would do with a message of a source: the first of its steps, which needs no database. */
export async function judge(
  message: Incoming,
): Promise<{ status: 'stored' | 'quarantined'; reason?: string; body: string }> {
  const runtime = { maxBytes: 5 * 1024 * 1024, schemaOf: () => undefined, warnOnce: () => undefined }
  const prepared = await prepare(runtime as unknown as Runtime, message, { consumers: [], bySource: true })
  const { id, source, type, key, envelope, body } = prepared
  // A statement takes all of it as one JSON text.
  JSON.stringify({ id, source, type, key, envelope, body })
  for (const text of [id, source, type, key, envelope, body]) {
    if (typeof text === 'string') assert.ok(text.isWellFormed() && !text.includes('\0'), 'it cannot be stored')
  }
  if (!('reason' in prepared)) return { status: 'stored', body: prepared.body }
  return { status: 'quarantined', reason: prepared.reason, body: body ?? '' }
}
