/** What programs hand in by mistake: it is told where it can be mended, or kept as it came, and nothing vanishes in silence. */
import { batch, type Deliver, type Incoming, type Source } from 'oncebox'
import { describe, expect, test } from 'vitest'
import { waitUntil } from '../support/wait.js'
import { note, recorder, useServer, type Bench } from './fixture.js'

const server = useServer('mistakes')
const LONG = 'x'.repeat(600)

async function attach(box: Bench): Promise<Deliver> {
  let deliver: Deliver | undefined
  const source: Source = { name: 'broker', start: async (given) => void (deliver = given), stop: async () => {} }
  box.from(source)
  await box.start()
  await waitUntil(() => deliver !== undefined, { what: 'the source' })
  return deliver!
}

describe('messages that differ in what is no name', () => {
  test.for<[what: string, messages: object[], details: RegExp]>([
    ['numbers as ids', [41, 42, 43].map((id) => ({ id })), /^id must be a string, not number; got 4[123]$/],
    [
      'ids that are too long',
      ['a', 'b', 'c'].map((end) => ({ id: LONG + end })),
      /^id must be at most 512 bytes.*; got "x{99}…$/,
    ],
    ['objects as ids', [1, 2, 3].map((n) => ({ id: { n } })), /^id must be a string, not object; got an object$/],
    [
      'sources that are too long',
      ['a', 'b', 'c'].map((end) => ({ id: '1', source: LONG + end })),
      /^source must be at most/,
    ],
    [
      'numbers as types',
      [1, 2, 3].map((type) => ({ id: '1', type })),
      /^type must be a string, not number; got [123]$/,
    ],
  ])('%s: each is kept, once, and says which it is', async ([, messages, details]) => {
    await using box = await server.open()
    box.consumer('a', { note: () => undefined })
    const deliver = await attach(box)
    const all = messages.map((one) => ({ ...note('', { data: 1 }), ...one }))
    for (let times = 0; times < 2; times++) {
      expect((await deliver(all)).map(({ status, ack }) => [status, ack])).toEqual(all.map(() => ['quarantined', true]))
    }
    const kept = await box.quarantine()
    expect(kept).toHaveLength(3)
    for (const { detail } of kept) expect(detail).toMatch(details)
  })
})

describe('what would vanish as JSON', () => {
  const fails = async (): Promise<never> => {
    throw new Error('of the promise')
  }
  test.for<[what: string, data: () => unknown, words: RegExp]>([
    ['a promise', () => Promise.resolve({ n: 1 }), /is a promise; await it/],
    ['a promise that fails', fails, /is a promise; await it/],
    ['a function', () => () => 1, /is a function, which JSON cannot hold/],
    ['a symbol', () => Symbol('s'), /is a symbol, which JSON cannot hold/],
  ])('%s as data is refused at every door', async ([, data, words]) => {
    await using box = await server.open()
    box.consumer('a', { note: () => undefined })
    const refused = expect.objectContaining({
      code: 'MESSAGE_INVALID',
      message: expect.stringMatching(words) as string,
    })
    const message = (id: string): Incoming => note(id, { data: data() })
    const client = await server.pool.connect()
    try {
      await client.query('begin')
      await expect(box.receive(message('1'))).rejects.toEqual(refused)
      await expect(box.receive([message('2')])).rejects.toEqual(refused)
      await expect(box.handle(message('3'))).rejects.toEqual(refused)
      await expect(box.once(client, 'a', message('4') as never, () => 1)).rejects.toEqual(refused)
      await expect(box.send(client, 'note', data())).rejects.toEqual(refused)
      await expect(box.sendMany(client, [{ type: 'note', data: data() }])).rejects.toEqual(refused)
    } finally {
      await client.query('rollback')
      client.release()
    }
    expect(await box.quarantine()).toEqual([])
    const deliver = await attach(box)
    expect(await deliver([message('5'), note('6')])).toMatchObject([{ reason: 'undecodable' }, { status: 'stored' }])
    expect((await box.quarantine())[0]!.detail).toMatch(words)
  })

  test.for<[what: string, data: unknown]>([
    ['a Map', new Map([['n', 1]])],
    ['a Set', new Set([1])],
    ['an Error', new Error('x')],
  ])('%s, of which JSON keeps nothing, is taken as {} with one warning for its type', async ([what, data]) => {
    const logger = recorder()
    await using box = await server.open({ logger })
    box.consumer('a', { note: (message) => ({ got: message.data }) })
    for (const id of ['1', '2']) expect(await box.handle(note(id, { data }))).toMatchObject({ result: { got: {} } })
    await box.handle(note('3', { data: {} }))
    const client = await server.pool.connect()
    try {
      await client.query('begin')
      await box.send(client, 'other', data)
    } finally {
      await client.query('rollback')
      client.release()
    }
    const warning = { level: 'warn', text: expect.stringContaining(`${what}; pass `) as string }
    expect(logger.lines).toMatchObject([
      { ...warning, about: { type: 'note' } },
      { ...warning, about: { type: 'other' } },
    ])
  })

  test('a promise in the place of a message is refused, and a broker’s is kept', async () => {
    await using box = await server.open()
    box.consumer('a', { note: () => undefined })
    const promise = (): Incoming => Promise.resolve(note('1')) as never
    const refused = expect.objectContaining({
      code: 'MESSAGE_INVALID',
      message: expect.stringMatching(/promise.*await it/) as string,
    })
    await expect(box.receive(promise())).rejects.toEqual(refused)
    await expect(box.handle(promise())).rejects.toEqual(refused)
    await expect(box.receive([promise()])).rejects.toEqual(refused)
    await expect(box.receive([[note('1')]] as never)).rejects.toMatchObject({
      message: expect.stringContaining('a message must be an object { id, type, data }; got an array') as string,
    })
    const client = await server.pool.connect()
    try {
      await client.query('begin')
      await expect(box.once(client, 'a', promise() as never, () => 1)).rejects.toEqual(refused)
    } finally {
      await client.query('rollback')
      client.release()
    }
    const deliver = await attach(box)
    expect(await deliver([promise(), note('2')])).toMatchObject([{ reason: 'invalid' }, { status: 'stored' }])
  })
})

test.for<[what: string, send: (box: Bench) => Promise<unknown>]>([
  ['send', (box) => box.send('note' as never, { n: 1 } as never, undefined)],
  ['sendMany', (box) => box.sendMany([{ type: 'note', data: 1 }] as never, undefined as never)],
])('%s without the transaction says that it is the first argument', async ([what, send]) => {
  await using box = await server.open()
  await expect(send(box)).rejects.toMatchObject({
    code: 'TRANSACTION_REQUIRED',
    message: expect.stringContaining(`${what} needs your transaction as its first argument`) as string,
  })
})

test.for<[what: string, handlers: unknown, got: string]>([
  ['a type in the place of its handlers', 'note', 'got a string'],
  ['a function', () => undefined, 'got a function'],
  ['a list', [() => undefined], 'got an array'],
  ['a batch', batch(() => undefined), 'got batch(…)'],
])('a consumer with %s is told what handlers are', async ([, handlers, got]) => {
  await using box = await server.open()
  expect(() => box.consumer('a', handlers as never)).toThrow(
    expect.objectContaining({
      code: 'OPTION_INVALID',
      message: expect.stringMatching(/handlers are an object/) as string,
    }),
  )
  expect(() => box.consumer('a', handlers as never)).toThrow(got)
})

test('a transaction before the message, or options behind it, are not passed over in silence', async () => {
  await using box = await server.open()
  box.consumer('a', { note: () => undefined })
  const refused = (door: string) => ({
    code: 'MESSAGE_INVALID',
    message: expect.stringContaining(`${door} takes a message or an array of them, and nothing else`) as string,
  })
  const call = (door: 'receive' | 'handle', ...given: unknown[]) =>
    (box[door] as unknown as (...given: unknown[]) => Promise<unknown>)(...given)
  await expect(call('handle', server.pool, note('1'))).rejects.toMatchObject(refused('handle'))
  await expect(call('receive', note('1'), { consumers: ['a'] })).rejects.toMatchObject(refused('receive'))
  expect(await box.fates('1')).toEqual([])
  // As a callback it is given an index besides.
  const handle = box.handle as (message: Incoming) => Promise<unknown>
  expect(await Promise.all([note('2'), note('3')].map(handle))).toMatchObject([{ ack: true }, { ack: true }])
})

test.for<[where: string, name: (box: Bench) => unknown]>([
  ['a consumer', (box) => box.consumer('a', { 'order.*': () => undefined })],
  ['a sink', (box) => box.to({ publish: async () => [], close: async () => undefined }, { types: ['order.*'] })],
  [
    'a source',
    (box) => box.from({ start: async () => undefined, stop: async () => undefined }, { types: ['order.*'] }),
  ],
])('%s with a pattern in the place of a type, which nobody would ever send, is refused', async ([, name]) => {
  await using box = await server.open()
  expect(() => name(box)).toThrow(
    expect.objectContaining({
      code: 'OPTION_INVALID',
      message: expect.stringContaining('"order.*" is a pattern') as string,
    }),
  )
})

test('what is confused with its neighbour is told where it belongs', async () => {
  await using box = await server.open()
  box.consumer('a', { note: () => undefined })
  await box.migrate()
  const source = { start: async () => undefined, stop: async () => undefined }
  expect(() => box.to(source as never)).toThrow(/a sink has two methods, publish and close; .* for box\.from/)
  expect(() => box.consumer('b', { note: () => undefined }, { retry: 3 as never })).toThrow(
    /retry takes \{ attempts, baseMs, maxMs, jitter \}, or a function; got 3/,
  )
  // Each name once, though this process and the database know it.
  await expect(box.admin.pause('xyz')).rejects.toThrow(/there is no consumer "xyz"; there is a$/)
})
