/** What is stored without a fingerprint: copies are told from conflicts all the same, by every front door and every version. */
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { unchecked, type Message, type StandardSchemaV1 } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { createTestBox } from 'oncebox/testing'
import { fingerprint } from '../../src/body.js'
import { bindDatabase } from '../../src/postgres/database.js'
import { FAIL_INLINE } from '../../src/postgres/sql/inline.js'
import { type Bench, useServer } from './fixture.js'

const server = useServer('unhashed')

const STORED = '{"b":2,"a":[1,"\\u001e"]}'
const COPIES = {
  'the same text': [STORED, true],
  'another order of keys': ['{"a":[1,"\\u001e"],"b":2}', true],
  'white space': ['{ "b": 2,\n "a": [1.0, "\\u001E"] }', true],
  'other data': ['{"b":2,"a":[1]}', false],
} as const

/** As the row is on record: by this version, by those before it, by a source that compares nothing. */
const ROWS = {
  unhashed: '',
  'of an older version': `update ob.message set unhashed = null, hash = decode('${fingerprint(JSON.parse(STORED))}', 'hex')`,
  'not to be compared': 'update ob.message set unhashed = null, hash = null',
} as const

/** Answers what is said of the copy, in one word. */
const DOORS = {
  receive: async (box: Bench, body: string) => (await box.receive({ id: '1', type: 'note', body })).status,
  handle: async (box: Bench, body: string) => (await box.handle({ id: '1', type: 'note', body })).status,
  'handle, redelivered': async (box: Bench, body: string) =>
    (await box.handle({ id: '1', type: 'note', body, redelivered: true })).status,
  async once(box: Bench, body: string) {
    const client = await server.pool.connect()
    try {
      await client.query('begin')
      const data: unknown = JSON.parse(body)
      const outcome = await box.once(client, 'a', { id: '1', type: 'note', data }, () => undefined)
      await client.query('commit')
      return outcome.status
    } finally {
      client.release()
    }
  },
} as const

const cases = Object.entries(ROWS).flatMap(([row, change]) =>
  Object.entries(DOORS).flatMap(([door, knock]) =>
    Object.entries(COPIES).map(([copy, [body, same]]) => ({ row, change, door, knock, copy, body, same })),
  ),
)

describe('a copy of a message that waits', () => {
  test.for(cases)('$row, by $door, with $copy', async ({ row, change, door, knock, body, same }) => {
    await using box = await server.open()
    const ran: unknown[] = []
    box.consumer('a', { note: ({ data }) => void ran.push(data) })
    await box.receive({ id: '1', type: 'note', body: STORED })
    if (change) await box.sql(change)
    const isCopy = same || row === 'not to be compared'
    expect(await knock(box, body)).toBe(!isCopy ? 'quarantined' : door === 'receive' ? 'duplicate' : 'handled')
    expect((await box.quarantine()).map(({ reason }) => reason)).toEqual(isCopy ? [] : ['conflict'])
    await box.drain()
    // `once` has run something else.
    expect(ran).toHaveLength(door === 'once' && isCopy ? 0 : 1)
    expect(await knock(box, body)).toBe(isCopy ? 'duplicate' : 'quarantined')
  })
})

const arrivals = Object.entries(DOORS).flatMap(([door, knock]) =>
  Object.entries(COPIES).map(([copy, [body, same]]) => ({ door, knock, copy, body, same })),
)

describe('a copy of a message that ran on arrival', () => {
  test.for(arrivals)('by $door, with $copy', async ({ knock, body, same }) => {
    await using box = await server.open()
    let runs = 0
    box.consumer('a', {
      note({ data }) {
        runs++
        // It is a handler's to change: what is compared is what came.
        ;(data as { a: unknown }).a = 'changed'
      },
    })
    expect((await box.handle({ id: '1', type: 'note', body: STORED })).status).toBe('handled')
    expect(await box.sql('select hash, unhashed from ob.message')).toEqual([{ hash: null, unhashed: true }])
    expect(await knock(box, body)).toBe(same ? 'duplicate' : 'quarantined')
    expect(runs).toBe(1)
  })

  test.for(Object.entries(COPIES))('that failed, with %s', async ([, [body, same]]) => {
    await using box = await server.open()
    const seen: unknown[] = []
    box.consumer(
      'a',
      {
        note({ data }) {
          seen.push(structuredClone(data))
          ;(data as { a: unknown }).a = 'changed'
          if (seen.length === 1) throw new Error('not yet')
        },
      },
      { mode: 'inline' },
    )
    expect((await box.handle({ id: '1', type: 'note', body: STORED })).status).toBe('failed')
    expect((await box.handle({ id: '1', type: 'note', body })).status).toBe(same ? 'handled' : 'quarantined')
    expect(seen).toHaveLength(same ? 2 : 1)
  })
})

describe('what looks at the data may change it', () => {
  const items = {
    text: '{"items":["b","a"],"to":"ada"}',
    reworded: '{"to":"ada","items":["b","a"]}',
    other: '{"items":["a","b"],"to":"ada"}',
  }
  /** As some validators work: in place. */
  const stripped: StandardSchemaV1<{ items: string[] }> = {
    '~standard': {
      version: 1,
      vendor: 'test',
      validate(value) {
        const data = value as { items: string[]; to?: unknown }
        data.items.sort()
        delete data.to
        return { value: data }
      },
    },
  }
  const lookers = {
    'a schema': [{ note: stripped }, {}],
    'an identity': [
      { note: unchecked() },
      { identity: ({ data }: Message) => (data as { items: string[] }).items.sort().join() },
    ],
  } as const
  const doors = ['receive', 'handle'] as const
  const all = Object.keys(lookers).flatMap((looker) =>
    doors.flatMap((first) => doors.map((then) => ({ looker: looker as keyof typeof lookers, first, then }))),
  )

  test.for(all)('$looker, $first and then $then', async ({ looker, first, then }) => {
    const [messages, options] = lookers[looker]
    await using box = await server.open({ messages })
    box.consumer('a', { note: () => undefined }, options)
    await box[first]({ id: '1', type: 'note', body: items.text })
    await box.drain()
    expect((await box[then]({ id: '1', type: 'note', body: items.text })).status).toBe('duplicate')
    expect((await box[then]({ id: '1', type: 'note', body: items.reworded })).status).toBe('duplicate')
    expect((await box[then]({ id: '1', type: 'note', body: items.other })).status).toBe('quarantined')
  })

  test('a handler of another consumer', async () => {
    await using box = await server.open()
    const seen: unknown[] = []
    for (const name of ['a', 'b']) {
      box.consumer(name, {
        note({ data }) {
          seen.push(structuredClone(data))
          ;(data as { to: unknown }).to = 'eve'
        },
      })
    }
    await box.handle({ id: '1', type: 'note', body: items.text })
    expect(seen).toEqual([JSON.parse(items.text), JSON.parse(items.text)])
    expect((await box.handle({ id: '1', type: 'note', body: items.text })).status).toBe('duplicate')
  })
})

test('a sender that gives the id which a business key would have cannot hide another body', async () => {
  await using box = await server.open()
  box.consumer('a', { pay: () => undefined }, { identity: ({ data }) => (data as { key: string }).key })
  const pay = (cents: number) => ({ id: 'pay:K3', source: '', type: 'pay', data: { key: 'K3', cents } })
  expect((await box.handle(pay(1))).status).toBe('handled')
  expect((await box.handle(pay(1))).status).toBe('duplicate')
  expect((await box.handle(pay(2))).status).toBe('quarantined')
  expect((await box.receive(pay(3))).status).toBe('quarantined')
})

test('a failure on arrival is not written onto another message that was stored under its id', async () => {
  await using box = await server.open()
  box.consumer('a', { note: () => undefined })
  await box.receive({ id: '1', type: 'note', source: 's', body: STORED })
  const db = bindDatabase(fromPg(server.pool), box.schema)
  const failed = (body: string) => ({
    consumer: 'a',
    message: { s: 's', i: '1', t: 'note', b: body, h: fingerprint(JSON.parse(body))! },
    attempts: 1,
    delayMs: 0,
    parked: 'dead',
    error: '{}',
    history: true,
    fingerprint: undefined,
    ms: undefined,
    worker: undefined,
  })
  expect(await db.run(FAIL_INLINE, failed('{"other":true}'))).toEqual([])
  expect(await box.fate('1')).toMatchObject({ state: 'pending', attempts: 0, error: null })
  expect(await db.run(FAIL_INLINE, failed(STORED))).toEqual([{ attempts: '1' }])
})

test('a server in another encoding, which changes the length of a text, keeps every body whole', async () => {
  const name = `eucjp_${process.pid}`
  await server.pool.query(`create database ${name} encoding 'EUC_JP' lc_collate 'C' lc_ctype 'C' template template0`)
  const url = new URL(server.url)
  url.pathname = `/${name}`
  const pool = new pg.Pool({ connectionString: url.href, max: 3 })
  try {
    await using box = await createTestBox({ db: fromPg(pool) })
    const seen: unknown[] = []
    box.consumer('a', { note: ({ data }) => void seen.push(data) })
    // U+00A6 comes back as U+FFE4, which takes a byte more.
    const bodies = ['"\u00a6"', '12', '"日本"', '34']
    const batch = bodies.map((body, n) => ({ id: String(n), type: 'note', body }))
    expect((await box.receive(batch)).map(({ status }) => status)).toEqual(batch.map(() => 'stored'))
    expect((await box.receive(batch)).map(({ status }) => status)).toEqual(batch.map(() => 'duplicate'))
    await box.drain()
    expect(seen).toEqual(['\uffe4', 12, '日本', 34])
    const inline = { id: 'inline', type: 'note', body: '{"a":"\u00a6"}' }
    expect((await box.handle(inline)).status).toBe('handled')
    expect((await box.handle(inline)).status).toBe('duplicate')
  } finally {
    await pool.end()
    await server.pool.query(`drop database ${name} with (force)`)
  }
})

test('a version before this one takes an unhashed row for one that is not to be compared', async () => {
  await using box = await server.open()
  box.consumer('a', { note: () => undefined })
  await box.receive({ id: '1', type: 'note', body: STORED })
  expect(await box.sql('select hash, unhashed from ob.message')).toEqual([{ hash: null, unhashed: true }])
})

test('U+001E in names and headers, and data that has it, stay in their place', async () => {
  await using box = await server.open()
  const seen: unknown[] = []
  box.consumer('a', {
    '*': ({ id, source, type, key, subject, headers, data }) =>
      void seen.push({ id, source, type, key, subject, headers, data }),
  })
  const odd = (n: number) => ({
    id: `\u001e${n}`,
    source: `s\u001e${n % 2}`,
    type: `t\u001e${n % 3}`,
    key: `k\u001e${n}`,
    subject: '\u001e',
    headers: { h: '\u001e' },
    data: { n, text: '\u001e"\\' },
  })
  const messages = [0, 1, 2, 3, 4].map(odd)
  const outcomes = await box.receive([...messages, { id: 'raw', type: 'note', body: '"\u001e"' }])
  expect(outcomes.map(({ status }) => status)).toEqual([...messages.map(() => 'stored'), 'quarantined'])
  await box.drain()
  expect(seen).toEqual(messages)
})

test('data as deep as can be walked is stored, and one level more is not, whoever wrote the JSON', async () => {
  await using box = await server.open()
  box.consumer('a', { note: () => undefined })
  const nested = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`
  const wide = `[${Array.from({ length: 2_000 }, () => '{"a":[]}').join()}]`
  const bodies = [nested(500), wide, `{"text":"${'[{'.repeat(2_000)}"}`, nested(501)]
  const byBody = await box.receive(bodies.map((body, n) => ({ id: `body-${n}`, type: 'note', body })))
  const byData = await box.receive(
    bodies.map((body, n) => ({ id: `data-${n}`, type: 'note', data: JSON.parse(body) as unknown })),
  )
  for (const outcomes of [byBody, byData]) {
    expect(outcomes.map(({ status }) => status)).toEqual(['stored', 'stored', 'stored', 'quarantined'])
    expect(outcomes[3]).toMatchObject({ reason: 'undecodable' })
  }
})
