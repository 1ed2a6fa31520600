/** Search: the query language, its pages and cursors, and values that nobody sends honestly. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Dashboard } from 'oncebox/dashboard'
import type { Messages, ProblemAnswer } from 'oncebox/dashboard/client'
import { parseQuery } from '../../src/dashboard/query.js'
import { useServer } from '../inbox/fixture.js'
import { ask, fill, LARGE, open, type Asked, type Filled } from './fixture.js'

/** Nothing is redacted. */
const PLAIN = { redact: undefined, report: () => undefined, fingerprints: { read: (given: string) => given } }
const server = useServer('dashboard_search')
const NOW = Date.UTC(2026, 10, 16, 12, 30)
const clock = { nowMs: NOW, zone: 60 }

let box: Filled
let ops: Dashboard
beforeAll(async () => {
  box = await fill(server)
})
afterAll(() => box[Symbol.asyncDispose]())

async function ids(q: string, asked?: Asked): Promise<string[]> {
  ops = open({ shop: box })
  const { status, answer } = await ask(ops, 'messages', { box: 'shop', q }, asked)
  expect([status, answer]).toEqual([200, expect.anything()])
  return (answer as Messages).items.map(({ id, consumer }) => `${consumer}/${id}`).sort()
}

test.for<[q: string, found: string[]]>([
  ['d1', ['mail/d1']],
  ['d1,d2', ['mail/d1', 'mail/d2']],
  ['"d1"', ['mail/d1']],
  ['id:d3 state:dead', ['mail/d3']],
  ['state:dead consumer:mail', ['mail/d1', 'mail/d2', 'mail/d3']],
  ['state:dead consumer:mail,ledger', ['ledger/k1', 'mail/d1', 'mail/d2', 'mail/d3']],
  ['state:dead,pending type:entry', ['ledger/k1', 'ledger/k2']],
  ['key:acct-1', ['ledger/k1', 'ledger/k2']],
  ['reason:conflict', ['mail/h']],
  ['reason:unrouted consumer:""', ['/u']],
  ['error:"no answer for d2"', ['mail/d2']],
  ['state:dead error:"for d1","for d3"', ['mail/d1', 'mail/d3']],
  [`data.cents:${LARGE} state:handled`, ['mail/h']],
  ['data.cents:9007199254740992 state:handled', []],
  ['data.card.number:4111-1111 state:dead type:fails', ['mail/d1', 'mail/d2', 'mail/d3']],
  ['data.card:4111-1111', []],
  ['data.id:h,d1 state:dead,handled', ['mail/d1', 'mail/h']],
  ['source:shop state:handled', ['mail/h']],
  ['source:elsewhere', []],
  ['after:1h state:handled', ['mail/h']],
  ['before:1h', []],
  ['box:outbox type:sent', ['/h-sent']],
])('%s finds %j', async ([q, found]) => {
  const shown = await ids(q)
  expect(q.startsWith('box:outbox') ? shown.length : shown).toEqual(q.startsWith('box:outbox') ? found.length : found)
})

test.for<[q: string, says: RegExp]>([
  ['stat:dead', /There is no ‘stat:’\. Did you mean ‘state:’\?/],
  ['Data.x:1', /Did you mean ‘data\.path:’/],
  ['data:1', /needs a path/],
  ['data..x:1', /no path/],
  ['state:daed', /did you mean dead/],
  ['state:dead state:pending', /twice.*state:dead,pending/],
  ['state:', /no value/],
  ['state:dead,', /no value/],
  ['error:"open', /quote is open/],
  ['after:noon', /is no time/],
  ['after:2026-13-45', /is no time/],
  ['after:1h,2h', /takes one value/],
  ['urn:isbn:1', /An id with a colon goes in quotes/],
  [`${'a '.repeat(60)}`, /at most 50 parts/],
  [Array.from({ length: 600 }, (_, n) => n).join(','), /at most 500 values/],
  [`id:${'a'.repeat(1_001)}`, /at most 1000 characters/],
  [Array.from({ length: 9 }, (_, n) => `data.a${n}:1`).join(' '), /at most 8 parts/],
])('%s is refused in words that help', async ([q, says]) => {
  const { status, answer } = await ask(open({ shop: box }), 'messages', { box: 'shop', q })
  const { error } = answer as ProblemAnswer
  expect([status, error.code]).toEqual([400, 'QUERY_INVALID'])
  expect(error.message).toMatch(says)
})

test.for<[text: string, iso: string]>([
  ['90m', '2026-11-16T11:00:00.000Z'],
  ['2d', '2026-11-14T12:30:00.000Z'],
  ['13:00', '2026-11-16T12:00:00.000Z'],
  ['9:15', '2026-11-16T08:15:00.000Z'],
  // It is 13:30 there: 14:00 was yesterday.
  ['14:00', '2026-11-15T13:00:00.000Z'],
  ['2026-11-15', '2026-11-14T23:00:00.000Z'],
  ['2026-11-15T13:52', '2026-11-15T12:52:00.000Z'],
  ['2026-11-15T13:52:00Z', '2026-11-15T13:52:00.000Z'],
  ['2026-11-15T13:52:00+02:00', '2026-11-15T11:52:00.000Z'],
])('after:%s is %s for a reader an hour ahead of UTC', ([text, iso]) => {
  expect(parseQuery(`after:${text}`, clock, PLAIN).filter.after).toBe(iso)
})

test('parts know their place in the query, and what they say', () => {
  const { terms } = parseQuery('  state:dead,pending error:"a \\"b\\" c" pay_1', clock, PLAIN)
  expect(terms).toEqual([
    { qualifier: 'state', values: ['dead', 'pending'], from: 2, to: 20 },
    { qualifier: 'error', values: ['a "b" c'], from: 21, to: 38 },
    { qualifier: 'id', values: ['pay_1'], from: 39, to: 44 },
  ])
})

describe('pages', () => {
  test('lead from one to the next, and show everything once', async () => {
    const all = await ids('')
    const seen: string[] = []
    let cursor: string | undefined
    do {
      const { answer } = await ask(ops, 'messages', { box: 'shop', limit: 2, cursor })
      const page = answer as Messages
      expect(page.items.length).toBeLessThanOrEqual(2)
      seen.push(...page.items.map(({ id, consumer }) => `${consumer}/${id}`))
      cursor = page.cursor
    } while (cursor !== undefined)
    expect(seen.sort()).toEqual(all)
  })

  test('go on where times are said relative to now', async () => {
    const { answer } = await ask(open({ shop: box }), 'messages', { box: 'shop', q: 'after:1h', limit: 2 })
    const { cursor } = answer as Messages
    expect((await ask(open({ shop: box }), 'messages', { box: 'shop', q: 'after:1h', limit: 2, cursor })).status).toBe(
      200,
    )
  })

  test('have cursors that are one reader’s, of one query and one box, and cannot be made up', async () => {
    const own = open({ shop: box, other: box })
    const first = { box: 'shop', q: 'state:dead', limit: 1 }
    const { cursor = '' } = (await ask(own, 'messages', first)).answer as Messages
    expect((await ask(own, 'messages', { ...first, cursor })).status).toBe(200)
    const forged = Buffer.from(JSON.stringify({ q: '', zone: 0, nowMs: 0, at: '' })).toString('base64url')
    const bytes = Buffer.from(cursor, 'base64url')
    const changed = [0, 13, 30].map((n) => Buffer.from(bytes.map((byte, i) => (i === n ? byte ^ 1 : byte))))
    const tries: [input: object, asked?: Asked][] = [
      [{ ...first, q: 'state:handled', cursor }],
      [{ ...first, zone: 60, cursor }],
      [{ ...first, box: 'other', cursor }],
      [{ ...first, cursor }, { who: 'looker' }],
      ...changed.map((one): [object] => [{ ...first, cursor: one.toString('base64url') }]),
      [{ ...first, cursor: forged }],
      [{ ...first, q: '', cursor: `${cursor.slice(0, 40)}${forged}` }],
      [{ ...first, cursor: `${cursor}.` }],
      [{ ...first, cursor: `${cursor}AAAA` }],
      [{ ...first, cursor: '..' }],
      [{ ...first, cursor: '[]' }],
    ]
    for (const [input, asked] of tries) {
      const { status, answer } = await ask(own, 'messages', input as never, asked)
      expect([input, status, (answer as ProblemAnswer).error.code]).toEqual([input, 400, 'CURSOR_INVALID'])
    }
    for (const name of ['keys', 'audit'] as const) {
      const { answer } = await ask(own, name, { box: 'shop', cursor })
      expect((answer as ProblemAnswer).error.code).toBe('CURSOR_INVALID')
    }
  })
})

test.for<[what: string, query: string, status: number]>([
  ['an unknown parameter', 'box_=1', 400],
  ['a parameter twice', 'q=a&q=b', 400],
  ['a limit of nothing', 'limit=0', 400],
  ['a limit too far', 'limit=201', 400],
  ['a limit that is no number', 'limit=1e2', 400],
  ['a zone that is nowhere', 'zone=9999', 400],
  ['NUL', 'q=%00', 400],
  ['a lone surrogate', 'q=%ED%A0%80', 200],
  ['a query too long', `q=${'a'.repeat(4_001)}`, 400],
  ['a cursor too long', `cursor=${'a'.repeat(100_001)}`, 400],
  ['a prototype', '__proto__=1', 400],
  ['SQL', `q=${encodeURIComponent(`"'; drop table message; --"`)}`, 200],
  ['a format', `q=${encodeURIComponent('"%s %n {0} ${x}"')}`, 200],
  ['right to left', `q=${encodeURIComponent('\u202eabc')}`, 200],
])('%s is answered in words, not by a failure', async ([, query, status]) => {
  const headers = { 'x-who': 'all' }
  const response = await open({ shop: box }).fetch(
    new Request(`http://ops.example.com/api/v1/boxes/shop/messages?${query}`, { headers }),
  )
  expect(response.status).toBe(status)
})

test.for<[what: string, body: string, status: number]>([
  ['no JSON', '{', 400],
  ['an array', '[]', 400],
  ['null', 'null', 400],
  ['a field that there is not', '{"consumer":"mail","all":true}', 400],
  ['the box once more', '{"consumer":"mail","box":"other"}', 400],
  ['a number for a name', '{"consumer":1}', 400],
  ['an object for a name', '{"consumer":{"$ne":null}}', 400],
  ['a prototype', '{"consumer":"mail","__proto__":{"reason":"x"}}', 400],
  ['too much', JSON.stringify({ consumer: 'mail', reason: 'x'.repeat(3_000_000) }), 413],
  ['no UTF-8', '\xff', 400],
])('a change with %s is refused', async ([, body, status]) => {
  const headers = { 'x-who': 'all', origin: 'http://ops.example.com', 'content-type': 'application/json' }
  const request = new Request('http://ops.example.com/api/v1/boxes/shop/pause', {
    method: 'POST',
    headers,
    body: Buffer.from(body, 'latin1'),
  })
  expect((await open({ shop: box }).fetch(request)).status).toBe(status)
})

test('searches have a limit for each reader, and for nobody else', async () => {
  const own = open({ shop: box })
  // All at once: one after the other, a busy machine would take as long as the limit asks for.
  const asked = Array.from({ length: 40 }, () => ask(own, 'failures', { box: 'shop' }, { who: 'reader' }))
  const statuses = new Set((await Promise.all(asked)).map(({ status }) => status))
  expect([...statuses].sort()).toEqual([200, 429])
  expect((await ask(own, 'failures', { box: 'shop' }, { who: 'looker' })).status).toBe(200)
})
