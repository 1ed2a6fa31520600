/** `identity`: a business key in place of the producer's id, scoped by type, ignoring the source. */
import { defineMessages, unchecked } from 'oncebox'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { note, useServer } from './fixture.js'

const server = useServer('identity')

const messages = defineMessages({
  paid: z.object({ order: z.string(), at: z.string().transform((text) => new Date(text)) }),
  shipped: unchecked<{ order: string }>(),
})
const paid = (id: string, order: string, source?: string) => ({
  id,
  type: 'paid',
  data: { order, at: '2020-01-01' },
  ...(source && { source }),
})

describe.for(['receive', 'handle'] as const)('%s', (door) => {
  test('two messages of one business key are one, whatever their ids and sources', async () => {
    await using box = await server.open({ messages })
    box.consumer(
      'a',
      { paid: (message, { tx }) => box.write(tx, 'a', message, message.source) },
      { identity: (message) => message.data.order },
    )
    const statuses = []
    for (const message of [paid('1', 'o1', 'x'), paid('2', 'o1', 'y'), paid('3', 'o2'), paid('1', 'o1', 'x')]) {
      statuses.push((await box[door](message)).status)
    }
    const fresh = door === 'receive' ? 'stored' : 'handled'
    expect(statuses).toEqual([fresh, 'duplicate', fresh, 'duplicate'])
    await box.drain()
    // The handler sees the producer's id and source, not the business key.
    expect((await box.effects()).map((effect) => [effect.id, effect.note])).toEqual([
      ['1', 'x'],
      ['3', ''],
    ])
  })

  test('it is scoped by type: the same key of another type is another message', async () => {
    await using box = await server.open({ messages })
    box.consumer(
      'a',
      {
        paid: (message, { tx }) => box.write(tx, 'a', message),
        shipped: (message, { tx }) => box.write(tx, 'a', message),
      },
      { identity: (message) => message.data.order },
    )
    await box[door]([paid('1', 'o1'), { id: '2', type: 'shipped', data: { order: 'o1' } }])
    await box.drain()
    expect((await box.ids()).sort()).toEqual(['1', '2'])
  })

  test('no choice of types and keys makes two of them one', async () => {
    await using box = await server.open()
    box.consumer(
      'a',
      { '*': (message, { tx }) => box.write(tx, 'a', message) },
      { identity: ({ subject }) => subject! },
    )
    const pairs = [
      ['a', 'b:c'],
      ['a:b', 'c'],
      ['a:', 'b:c'],
      ['a', ':b:c'],
      ['a%3A', 'b:c'],
      ['a%', '3A:b:c'],
      ['"a"', 'b'],
    ]
    const all = pairs.map(([type, subject], at) => note(`m${at}`, { type: type!, subject: subject!, data: 1 }))
    await box[door](all)
    await box.drain()
    expect((await box.ids()).sort()).toEqual(all.map(({ id }) => id))
  })

  test('two messages about one fact are duplicates, though their bodies differ', async () => {
    await using box = await server.open()
    box.consumer('a', { note: () => undefined }, { identity: ({ key }) => key! })
    await box[door](note('1', { key: 'k', data: 1 }))
    expect(await box[door](note('2', { key: 'k', data: 2 }))).toMatchObject({ id: '2', status: 'duplicate', ack: true })
    expect(await box.quarantine()).toEqual([])
  })

  test('one message with another body is a conflict, visible under the producer’s id', async () => {
    await using box = await server.open()
    box.consumer('a', { note: () => undefined }, { identity: ({ key }) => key! })
    await box[door](note('1', { key: 'k', data: 1 }))
    expect(await box[door](note('1', { key: 'k', data: 2 }))).toMatchObject({
      id: '1',
      status: 'quarantined',
      reason: 'conflict',
    })
    expect(await box.quarantine()).toMatchObject([{ consumer: 'a', id: '1', reason: 'conflict', body: '2' }])
  })

  test('it gets the parsed data', async () => {
    await using box = await server.open({ messages })
    const seen: unknown[] = []
    box.consumer(
      'a',
      { paid: () => undefined },
      {
        identity(message) {
          seen.push('at' in message.data && message.data.at)
          return message.data.order
        },
      },
    )
    await box[door](paid('1', 'o1'))
    expect(seen[0]).toEqual(new Date('2020-01-01'))
  })

  test.for<[name: string, identity: () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('a bug\0\ud800')
      },
    ],
    [
      'throws what cannot be read',
      () => {
        throw Object.create(null, { toString: { value: () => Promise.reject(new Error()) } })
      },
    ],
    ['answers nothing', () => undefined],
    ['answers an empty string', () => ''],
    ['answers a number', () => 7],
    ['answers NUL', () => 'a\0'],
    ['answers a lone surrogate', () => '\ud800'],
    ['answers too much', () => 'x'.repeat(5_000)],
  ])(
    'one that %s keeps the message for its consumer in quarantine, and the others get theirs',
    async ([, identity]) => {
      await using box = await server.open()
      box.consumer('odd', { note: () => undefined }, { identity: identity as () => string })
      box.consumer('plain', { note: (message, { tx }) => box.write(tx, 'plain', message) })
      const outcome = await box[door](note('1'))
      expect(outcome).toMatchObject({ status: 'quarantined', reason: 'no-id', ack: true })
      expect(outcome.consumers.map(({ consumer, status }) => [consumer, status]).sort()).toEqual([
        ['odd', 'quarantined'],
        ['plain', door === 'receive' ? 'stored' : 'handled'],
      ])
      await box.drain()
      expect(await box.ids()).toEqual(['1'])
      expect(await box.quarantine()).toMatchObject([
        { consumer: 'odd', id: '1', reason: 'no-id', body: '{"text":"1"}' },
      ])
    },
  )
})

test('each consumer has its own: by id for one, by business key for the other', async () => {
  await using box = await server.open()
  box.consumer('by-id', { note: (message, { tx }) => box.write(tx, 'by-id', message) })
  box.consumer(
    'by-key',
    { note: (message, { tx }) => box.write(tx, 'by-key', message) },
    { identity: ({ key }) => key! },
  )
  await box.receive([note('1', { key: 'k', data: 0 }), note('2', { key: 'k', data: 0 })])
  await box.drain()
  expect((await box.effects()).map(({ consumer, id }) => `${consumer} ${id}`).sort()).toEqual([
    'by-id 1',
    'by-id 2',
    'by-key 1',
  ])
})

test('handle and receive agree on it', async () => {
  await using box = await server.open()
  box.consumer('a', { note: () => 'result' }, { identity: ({ key }) => key! })
  await box.handle(note('1', { key: 'k', data: 0 }))
  expect(await box.receive(note('2', { key: 'k', data: 0 }))).toMatchObject({ status: 'duplicate', result: 'result' })
  expect(await box.fate('1')).toMatchObject({ state: 'handled' })
})

test('order and retries go by it like by any id', async () => {
  await using box = await server.open()
  box.consumer(
    'a',
    {
      async note(message, { tx }) {
        if (message.attempt === 1) throw new Error('not yet')
        await box.write(tx, 'a', message, `${message.attempt}`)
      },
    },
    { identity: ({ subject }) => subject!, order: 'key', retry: { baseMs: 0 } },
  )
  await box.receive(['1', '2', '3'].map((id) => note(id, { key: 'k', subject: `s${id}` })))
  await box.waitUntilHandled('1', '2', '3')
  expect(await box.effects()).toMatchObject([
    { id: '1', note: '2' },
    { id: '2', note: '2' },
    { id: '3', note: '2' },
  ])
})
