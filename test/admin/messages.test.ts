import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Reject, type Entry, type Filter, type MessageMap } from 'oncebox'
import { z } from 'zod'
import { open, range, type Opened } from './open.js'

let opened: Opened
beforeAll(async () => {
  opened = await open('admin_messages')
})
afterAll(() => opened.close())

const messages = { good: z.object({ n: z.number() }), odd: z.any() } as unknown as MessageMap

let box: ReturnType<Opened['box']>
beforeEach(() => {
  box = opened.box({ messages })
})

const ids = (entries: readonly Entry<MessageMap>[]): string[] => entries.map(({ message }) => message.id)

async function everything(filter: Filter = {}, limit = 7, between: (page: number) => unknown = () => undefined) {
  const all: Entry<MessageMap>[] = []
  let cursor: string | undefined
  for (let page = 0; page < 1_000; page++) {
    const answer = await box.admin.messages(filter, { limit, cursor })
    expect(answer.entries.length).toBeLessThanOrEqual(limit)
    all.push(...answer.entries)
    if (answer.cursor === undefined) return all
    cursor = answer.cursor
    await between(page)
  }
  throw new Error('the pages never end')
}

const good = (n: number, more: object = {}) => ({ id: `m${n}`, type: 'good', source: 's', data: { n }, ...more })

describe('paging', () => {
  test('shows each message exactly once while others arrive', async () => {
    box.consumer('a', { good: () => undefined })
    box.consumer('b', { good: () => undefined })
    await box.migrate()
    // One batch shares one time of receipt, so the order within it must not depend on time.
    await box.receive(range(40).map((n) => good(n)))
    for (const n of range(10, 40)) await box.receive(good(n))
    await box.receive(range(5).map((n) => ({ id: `bad${n}`, type: 'good', data: { n: 'x' } })))
    const before = new Set(
      range(50)
        .flatMap((n) => [`a m${n}`, `b m${n}`])
        .concat(range(5).map((n) => ` bad${n}`)),
    )

    const seen = await everything({}, 7, (page) => box.receive([good(1_000 + page), good(2_000 + page)]))

    const names = seen.map(({ consumer, message }) => `${consumer} ${message.id}`)
    expect(new Set(names).size).toBe(names.length)
    expect(new Set(names)).toEqual(before)
  })

  test('goes from the newest to the oldest, quarantine included', async () => {
    box.consumer('a', { good: () => undefined })
    await box.migrate()
    for (const n of range(6)) {
      await opened.setClock(box.schema, n * 1_000)
      await box.receive(good(n, n % 2 === 0 ? {} : { data: { n: 'x' } }))
    }
    expect(ids(await everything({}, 2))).toEqual(['m5', 'm4', 'm3', 'm2', 'm1', 'm0'])
  })

  test('ends without a cursor when the last page is exactly full', async () => {
    box.consumer('a', { good: () => undefined })
    await box.migrate()
    await box.receive(range(10).map((n) => good(n)))
    const page = await box.admin.messages({}, { limit: 10 })
    expect(page.entries).toHaveLength(10)
    expect(page).not.toHaveProperty('cursor')
  })

  test('shows messages that are dead, waiting or quarantined exactly once', async () => {
    box.consumer('a', {
      good: ({ data }) => {
        if ((data as { n: number }).n % 2 === 0) throw new Reject('even')
      },
    })
    await box.migrate()
    await box.receive(range(20).map((n) => good(n)))
    await box.drain()
    await box.admin.pause('a')
    await box.receive(range(20, 20).map((n) => good(n)))
    await box.receive(range(5, 100).map((n) => good(n, { data: 'wrong' })))
    const seen = await everything({ state: ['dead', 'pending', 'quarantined'] }, 3)
    const expected = [...range(10).map((n) => 2 * n), ...range(20, 20), ...range(5, 100)].map((n) => `m${n}`)
    expect(ids(seen).sort()).toEqual(expected.sort())
  })

  test('a page takes 50 by default, and between 1 and 1000', async () => {
    box.consumer('a', { good: () => undefined })
    await box.migrate()
    await box.receive(range(60).map((n) => good(n)))
    expect((await box.admin.messages()).entries).toHaveLength(50)
    for (const limit of [0, 1_001, 1.5, '5' as never]) {
      await expect(box.admin.messages({}, { limit })).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    }
  })

  test('a cursor that was made up, or belongs to another filter, is refused', async () => {
    box.consumer('a', { good: () => undefined })
    await box.migrate()
    await box.receive(range(5).map((n) => good(n)))
    const { cursor } = await box.admin.messages({ consumer: 'a' }, { limit: 2 })
    expect(cursor).toMatch(/^[\w-]+$/)
    const [version, filter] = JSON.parse(Buffer.from(cursor!, 'base64url').toString()) as unknown[]
    const forged = (places: unknown) => Buffer.from(JSON.stringify([version, filter, places])).toString('base64url')
    const bad = [
      '', 'x', 'bnVsbA', `${cursor}x`.slice(3), 5 as never, forged([]), forged([['nowhere', null]]), forged([null]),
      forged([['journal', ['2020-99-99T00:00:00.000000Z', '', '', '']]]), forged([['parked', "1'; drop table x"]]),
      forged([['outbox', null]]), forged([['outboxParked', null]]), forged([['outboxIds', null]]), forged([['ids', null]]),
      forged([['quarantine', null]]), forged([['quarantineIds', null]]), forged([['journal', null], ['journal', null]]),
      'A'.repeat(100_000_000), `${cursor}${'A'.repeat(65_536)}`,
    ] // prettier-ignore
    for (const made of bad) {
      await expect(box.admin.messages({ consumer: 'a' }, { cursor: made })).rejects.toMatchObject({
        code: 'CURSOR_INVALID',
      })
    }
    await expect(box.admin.messages({ consumer: 'b' }, { cursor })).rejects.toMatchObject({ code: 'CURSOR_INVALID' })
  })
})

describe('criteria', () => {
  let shared: typeof box
  beforeAll(async () => {
    shared = box = opened.box({ messages })
    box.consumer(
      'a',
      {
        good: ({ data }) => {
          const { n } = data as { n: number }
          if (n === 3) throw new Reject('card declined: 100%')
          if (n === 4) throw new Reject('out of stock')
        },
        odd: () => undefined,
      },
      { order: 'none' },
    )
    box.consumer('b', { odd: () => undefined })
    await box.migrate()
    await opened.setClock(box.schema, -3_600_000)
    await box.receive([good(1), good(2, { key: 'k', source: 'other' }), good(3), good(4, { key: 'k' })])
    await opened.setClock(box.schema, 0)
    await box.receive([
      { id: 'o1', type: 'odd', source: 's', data: { a: { b: [1, { c: 2 }], d: null }, e: 'x' } },
      { id: 'o2', type: 'odd', source: 's', data: [1, 2] },
      { id: 'o3', type: 'odd', source: 's', body: 'not json' },
      { id: 'b1', type: 'good', source: 's', data: { n: 'wrong' } },
      { id: undefined, type: 'odd', source: 's', data: { e: 'x' } },
    ])
    await box.drain()
    await box.receive(good(3, { data: { n: 33 } }))
  })
  beforeEach(() => {
    box = shared
  })

  const cases: [string, Filter, string[]][] = [
    ['everything', {}, ['', 'b1', 'm1', 'm2', 'm3', 'm3', 'm4', 'o1', 'o1', 'o2', 'o2', 'o3']],
    ['a consumer', { consumer: 'b' }, ['o1', 'o2']],
    ['a consumer’s quarantine', { consumer: 'a', state: 'quarantined' }, ['m3']],
    ['no consumer', { consumer: '' }, ['', 'b1', 'o3']],
    ['a consumer that is not there', { consumer: 'nobody' }, []],
    ['a state', { state: 'dead' }, ['m3', 'm4']],
    ['states', { state: ['dead', 'quarantined'] }, ['', 'b1', 'm3', 'm3', 'm4', 'o3']],
    ['a state that is named twice', { state: ['dead', 'dead'] }, ['m3', 'm4']],
    ['handled', { state: 'handled', consumer: 'a' }, ['m1', 'm2', 'o1', 'o2']],
    ['nothing pending', { state: ['pending', 'processing'] }, []],
    ['a type', { type: 'good' }, ['b1', 'm1', 'm2', 'm3', 'm3', 'm4']],
    ['types', { type: ['odd', 'none'], consumer: 'b' }, ['o1', 'o2']],
    ['a key', { key: 'k' }, ['m2', 'm4']],
    ['an id', { id: 'm3' }, ['m3', 'm3']],
    ['ids', { id: ['m3', 'o1', 'nothing'] }, ['m3', 'm3', 'o1', 'o1']],
    ['an id of a consumer', { id: ['m1', 'o1'], consumer: 'b' }, ['o1']],
    ['an id of a source', { id: ['m1', 'm2'], source: 'other' }, ['m2']],
    ['an id in a state', { id: ['m1', 'm3'], state: 'dead' }, ['m3']],
    ['a source', { source: 'other' }, ['m2']],
    ['a reason', { reason: 'conflict' }, ['m3']],
    ['a reason of a consumer', { reason: 'invalid', consumer: 'a' }, []],
    ['part of an error', { error: 'declined: 100%' }, ['m3']],
    ['part of an error, with a wildcard that is none', { error: 'declined%100' }, []],
    ['what was wrong with a quarantined message', { error: 'not JSON' }, ['o3']],
    ['times', { before: new Date(Date.now() - 1_800_000) }, ['m1', 'm2', 'm3', 'm4']],
    ['times from', { after: new Date(Date.now() - 1_800_000), consumer: 'b' }, ['o1', 'o2']],
    ['data', { data: { a: { b: [{ c: 2 }] } }, consumer: 'a' }, ['o1']],
    ['data with null', { data: { a: { d: null } }, consumer: 'a' }, ['o1']],
    ['data that is not all there', { data: { a: { b: [{ c: 3 }] } } }, []],
    ['data of any state', { data: { e: 'x' } }, ['', 'o1', 'o1']],
    ['data and state', { data: { n: 3 }, state: 'dead' }, ['m3']],
  ] // prettier-ignore
  for (const [what, filter, expected] of cases) {
    test(`selects by ${what}`, async () => {
      expect(ids(await everything(filter, 2)).sort()).toEqual(expected)
    })
  }

  test('selects by a fingerprint that is named twice', async () => {
    const [row] = await opened.sql(box.schema, `select fingerprint from ob.work where id = 'm3'`)
    const fingerprint = row!['fingerprint'] as string
    expect(ids(await everything({ fingerprint: [fingerprint, fingerprint] }, 2))).toEqual(['m3'])
    expect(await box.admin.retry({ fingerprint: [fingerprint, fingerprint] }, { dryRun: true })).toBe(1)
  })

  test('an id that looks like SQL is an id', async () => {
    await box.receive({ id: `x' or '1'='1`, type: 'odd', data: 1 })
    expect(ids(await everything({ id: `x' or '1'='1`, consumer: 'a' }))).toEqual([`x' or '1'='1`])
  })
})

test('data is looked for in a bounded number of rows, and the cursor goes on behind them', async () => {
  box.consumer('a', { odd: () => undefined })
  await box.migrate()
  const found = { id: 'needle', type: 'odd', data: { needle: true } }
  await box.receive(found)
  await opened.sql(
    box.schema,
    `insert into ob.message (consumer, source, id, type, body)
     select 'a', '', 'hay' || n, 'odd', '{"needle":false}' from generate_series(1, 30000) n`,
  )
  const first = await box.admin.messages({ data: { needle: true } }, { limit: 10 })
  expect(first.entries).toEqual([])
  const second = await box.admin.messages({ data: { needle: true } }, { limit: 10, cursor: first.cursor })
  expect(ids(second.entries)).toEqual(['needle'])
  expect(second).not.toHaveProperty('cursor')
})

test('times are found in a long quarantine, whichever way it is walked', async () => {
  await box.migrate()
  await opened.sql(
    box.schema,
    `insert into ob.quarantine (consumer, source, id, type, reason, hash, body, received_at)
     select 'a', '', 'q' || n, 'odd', case n % 3 when 0 then 'invalid' else 'conflict' end, '', '{}',
       '2020-01-01T00:00:00Z'::timestamptz + n * interval '1 hour' from generate_series(1, 30000) n`,
  )
  const hour = (n: number) => new Date(Date.parse('2020-01-01T00:00:00Z') + n * 3_600_000)
  const page = async (filter: Filter) => {
    const { entries, cursor } = await box.admin.messages(filter, { limit: 100 })
    expect(cursor).toBeUndefined()
    return ids(entries)
  }
  const expected = ['q12', 'q11', 'q10']
  expect(await page({ after: hour(10), before: hour(13) })).toEqual(expected)
  expect(await page({ after: hour(10), before: hour(13), consumer: 'a' })).toEqual(expected)
  expect(await page({ after: hour(29_998), state: 'quarantined' })).toEqual(['q30000', 'q29999', 'q29998'])
  expect(await page({ after: hour(20_001), before: hour(20_002) })).toEqual(['q20001'])
  expect(await page({ before: hour(1) })).toEqual([])
  expect(await page({ after: hour(30_001) })).toEqual([])
  expect(await box.admin.discard({ after: hour(20_001), before: hour(20_004) }, { reason: 'test' })).toBe(3)
  expect(await box.admin.discard({ before: hour(3), reason: 'conflict' }, { reason: 'test', dryRun: true })).toBe(2)
})

describe('a message', () => {
  test('with two bodies under one id shows both', async () => {
    box.consumer('a', { good: () => undefined })
    await box.migrate()
    await box.receive(good(1))
    await box.receive(good(1, { data: { n: 2 } }))
    const entries = await box.admin.message({ id: 'm1', source: 's', consumer: 'a' })
    expect(entries.map(({ state, reason, message }) => ({ state, reason, data: message.data }))).toEqual([
      { state: 'pending', reason: undefined, data: { n: 1 } },
      { state: 'quarantined', reason: 'conflict', data: { n: 2 } },
    ])
  })

  test('shows every attempt that failed, oldest first', async () => {
    let runs = 0
    const retry = { attempts: 3, baseMs: 0 }
    box.consumer('a', { good: () => Promise.reject(new Error(`run ${++runs}`)) }, { retry })
    await box.migrate()
    await box.receive(good(1, { headers: { h: 'v' }, subject: 'sub', key: 'k' }))
    await box.drain()
    const [entry, ...more] = await box.admin.message({ id: 'm1' })
    expect(more).toEqual([])
    expect(entry).toMatchObject({
      consumer: 'a',
      state: 'dead',
      error: { name: 'Error', message: 'run 3' },
      message: { id: 'm1', source: 's', type: 'good', key: 'k', subject: 'sub', headers: { h: 'v' }, attempt: 3 },
    })
    expect(entry!.attempts!.map(({ attempt, error }) => [attempt, error.message])).toEqual([
      [1, 'run 1'],
      [2, 'run 2'],
      [3, 'run 3'],
    ])
    expect(entry!.attempts![0]!.at).toBeInstanceOf(Date)
  })

  test('is found by the producer’s id where a consumer has a business key', async () => {
    box.consumer('a', { good: () => undefined }, { identity: ({ data }) => `n${(data as { n: number }).n}` })
    await box.migrate()
    await box.receive(good(1))
    await box.drain()
    const [entry] = await box.admin.message({ id: 'm1', source: 's' })
    expect(entry).toMatchObject({ state: 'handled', message: { id: 'm1', source: 's' } })
    expect(await box.admin.message({ id: 'good:n1' })).toEqual([])
    expect(ids(await everything({ id: 'm1' }))).toEqual(['m1'])
  })

  test('that cannot be decoded shows its bytes', async () => {
    box.consumer('a', { odd: () => undefined })
    await box.migrate()
    const body = new Uint8Array([0xff, 0xfe, 0x00])
    await box.receive([
      { id: 'x', type: 'odd', body },
      { id: 'y', type: 'odd', body: '{' },
    ])
    const [x] = await box.admin.message({ id: 'x' })
    expect(x).toMatchObject({ state: 'quarantined', reason: 'undecodable', consumer: '' })
    expect(new Uint8Array(x!.bytes!)).toEqual(body)
    const [y] = await box.admin.message({ id: 'y' })
    expect(Buffer.from(y!.bytes!).toString()).toBe('{')
  })

  test('nobody knows has no entries', async () => {
    box.consumer('a', { good: () => undefined })
    await box.migrate()
    expect(await box.admin.message({ id: 'm1' })).toEqual([])
  })
})

test('the outbox is listed newest first, and searched by id', async () => {
  box.consumer('a', { good: () => undefined })
  await box.migrate()
  const client = await opened.pool.connect()
  await client.query('begin')
  for (const n of range(3)) await box.send(client, 'good', { n }, { id: `e${n}`, key: `k${n}` })
  await client.query('commit')
  client.release()
  const all = await everything({ box: 'outbox' }, 2)
  expect(all.map(({ message, state }) => [message.id, message.key, message.data, state])).toEqual([
    ['e2', 'k2', { n: 2 }, 'pending'],
    ['e1', 'k1', { n: 1 }, 'pending'],
    ['e0', 'k0', { n: 0 }, 'pending'],
  ])
  expect(ids(await everything({ box: 'outbox', id: 'e1' }))).toEqual(['e1'])
  expect(await everything({ box: 'outbox', type: 'odd' })).toEqual([])
})
