/** What programs hand in by mistake: it is told where it can be mended, or kept as it came, and nothing vanishes in silence. */
import type { Deliver, Incoming, Source } from 'oncebox'
import { describe, expect, test } from 'vitest'
import { waitUntil } from '../support/wait.js'
import { note, useServer, type Bench } from './fixture.js'

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
