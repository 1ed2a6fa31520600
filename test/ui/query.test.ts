/** The search bar: parts of a query as chips, and what may come next. The server's parser is the judge of what is meant. */
import { describe, expect, test } from 'vitest'
import { scan } from '../../src/dashboard/scan.js'
import { firstFound, PATIENCE_MS } from '../../ui/src/logic/further.js'
import { addTo, piecesOf, queryFor, readValues, unknownIn, without, withValues } from '../../ui/src/logic/query.js'
import { suggest } from '../../ui/src/logic/suggest.js'

const VALID = [
  '',
  'pay_1',
  'state:dead',
  'state:dead,quarantined type:order.placed',
  'error:"no answer, at all" data.lines.0.sku:tea after:14:00',
  'id:"a b","c\\"d" key:x',
  '  spaces   between:these ',
  '"quoted id" data.a:"1"',
]

test.each(VALID)('the parts of %s are those of the server', (text) => {
  const own = piecesOf(text).map(({ qualifier = 'id', from, to }) => ({ qualifier, from, to }))
  expect(own).toEqual(scan(text).map(({ qualifier, from, to }) => ({ qualifier, from, to })))
})

test('what is half typed has parts too', () => {
  expect(piecesOf('state:dead error:"no ans').map(({ value }) => value)).toEqual(['dead', '"no ans'])
  expect(piecesOf('state:')).toMatchObject([{ qualifier: 'state', value: '' }])
  expect(piecesOf('a"b')).toMatchObject([{ value: 'a"b' }])
})

test.each([
  ['state:dead', 'state:quarantined', 'state:dead,quarantined'],
  ['state:dead', 'state:dead', 'state:dead'],
  ['a-1', 'a-2', 'a-1,a-2'],
  ['after:1h', 'after:2h', 'after:2h'],
  ['box:inbox', 'box:outbox', 'box:outbox'],
  ['data.a:1', 'data.a:2', 'data.a:1 data.a:2'],
  ['type:x', 'state:dead key:"a b"', 'type:x state:dead key:"a b"'],
])('%s and then %s is %s', (query, more, both) => {
  expect(addTo(query, more)).toBe(both)
})

test('a part can be dropped, set and read', () => {
  expect(without('state:dead key:"a b" x', 1)).toBe('state:dead x')
  expect(withValues('state:dead x', 'state', ['handled'])).toBe('x state:handled')
  expect(withValues('state:dead x', 'state', [])).toBe('x')
  expect(readValues('key:"a \\"b\\"",c', 'key')).toEqual(['a "b"', 'c'])
})

test('a query for one message survives what its id is made of', () => {
  const text = queryFor({ id: 'a:b "c", d', source: 'shop', consumer: 'mail' })
  expect(scan(text).map(({ qualifier, values }) => [qualifier, values.map((value) => value.text)])).toEqual([
    ['id', ['a:b "c", d']],
    ['source', ['shop']],
    ['consumer', ['mail']],
  ])
})

const KNOWN = {
  qualifiers: ['state', 'type', 'id', 'consumer', 'key', 'error', 'after', 'data'].map((name) => ({
    name,
    words: `about ${name}`,
    bodies: false,
  })),
  states: ['pending', 'processing', 'handled', 'dead', 'quarantined', 'discarded'] as const,
  reasons: ['conflict'],
  consumers: ['charge-card', 'ship order', 'a', 'b'].map((name) => ({ name, order: 'none' as const })),
  types: ['order.placed', 'payment.received'],
  sinks: ['kafka'],
}

const codes = (draft: string): string[] => suggest(draft, KNOWN).options.map(({ code }) => code)

test('an empty bar suggests the qualifiers', () => {
  expect(codes('')).toEqual(['state:', 'type:', 'id:', 'consumer:', 'key:', 'error:', 'after:', 'data.'])
  expect(suggest('', KNOWN).options[3]!.words).toBe('charge-card, ship order, a and 2 more')
})

test('a word suggests qualifiers first, then values', () => {
  expect(codes('st')).toEqual(['state:'])
  expect(codes('dea')).toEqual(['state:dead'])
  expect(codes('state:dead ty')).toEqual(['type:'])
  expect(suggest('state:dead ty', KNOWN).options[0]!.draft).toBe('state:dead type:')
})

test('after a colon come values, with what is known of their number', () => {
  const { options } = suggest('state:', KNOWN, (_, value) => (value === 'dead' ? '12' : undefined))
  expect(options.map(({ code, count }) => [code, count])).toContainEqual(['dead', '12'])
  expect(codes('state:d')).toEqual(['dead', 'discarded', 'pending', 'handled', 'quarantined'])
  expect(codes('state:dead,q')).toEqual(['quarantined'])
  expect(suggest('state:dead,q', KNOWN).options[0]!.draft).toBe('state:dead,quarantined')
  expect(suggest('consumer:sh', KNOWN).options[0]!.draft).toBe('consumer:"ship order"')
})

test('an unknown qualifier is told, with the one that was meant', () => {
  expect(unknownIn('stat:dead', ['state', 'data'])).toEqual({ name: 'stat', near: 'state' })
  expect(unknownIn('data.x.y:1 state:dead', ['state', 'data'])).toBeUndefined()
  const told = suggest('x stat:dead', KNOWN)
  expect(told.problem).toBe('There is no ‘stat:’.')
  expect(told.options[0]!.draft).toBe('x state:dead')
  expect(suggest('zzzzzzzz:1', KNOWN).options).toEqual([])
})

describe('a search of which parts are empty', () => {
  /** Parts of a second each; `found` is the number of the one that has something. */
  async function search(parts: number, found?: number) {
    let now = 0
    const asked: (string | undefined)[] = []
    const ask = async (cursor: string | undefined) => {
      asked.push(cursor)
      now += 1_000
      const n = asked.length
      return Promise.resolve({ items: n === found ? ['it'] : [], ...(n < parts && { cursor: `c${n}` }) })
    }
    const last = await firstFound(ask, 'c0', () => now)
    return { asked, last }
  }

  test('goes on by itself from where it is until something is found', async () => {
    const { asked, last } = await search(100, 3)
    expect(asked).toEqual(['c0', 'c1', 'c2'])
    expect(last).toEqual({ items: ['it'], cursor: 'c3' })
  })

  test('ends with the last part', async () => {
    expect((await search(2)).last).toEqual({ items: [] })
  })

  test('asks whether to look further when patience ends', async () => {
    const { asked, last } = await search(100)
    expect(asked).toHaveLength(PATIENCE_MS / 1_000)
    expect(last).toEqual({ items: [], cursor: `c${asked.length}` })
  })
})
