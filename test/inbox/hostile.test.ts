/** Messages that nobody can look at, and data that nobody can walk: they are kept, and are in nobody's way. */
import { expect, onTestFinished, test } from 'vitest'
import type { Entry, Incoming, MessageMap, Source } from 'oncebox'
import type { Deliver } from '../../src/brokers/source.js'
import { listenTo } from '../../src/tap.js'
import { note, useServer } from './fixture.js'

const server = useServer('hostile')

const DEEP = '['.repeat(100_000) + ']'.repeat(100_000)

/** A source that is driven by hand. */
function handSource(): { source: Source; deliver: Deliver } {
  let given: Deliver | undefined
  const source: Source = {
    push: true,
    async start(deliver) {
      given = deliver
    },
    async stop() {},
  }
  return { source, deliver: (batch) => given!(batch) }
}

const refuse = (): never => {
  throw new Error('a trap')
}

test('a message that cannot even be looked at is quarantined, and its batch mates are handled', async () => {
  await using box = await server.open()
  const seen: string[] = []
  box.consumer('a', { note: ({ id }) => void seen.push(id) })
  const { source, deliver } = handSource()
  box.from(source, { types: 'any' })
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  const hostile: unknown[] = [
    new Proxy({}, { get: refuse, has: refuse, ownKeys: refuse, getPrototypeOf: refuse }),
    proxy,
    { id: { toString: refuse }, type: 'note', data: 1n },
    { id: 'stray', type: 'note', data: 1, stray: proxy },
    { id: 'time', type: 'note', data: 1, time: new Proxy(new Date(), {}) },
    { id: 'body', type: 'note', body: new Proxy(new Uint8Array(2), {}) },
    { id: 'headers', type: 'note', data: 1, headers: new Proxy({}, { ownKeys: refuse }) },
    { id: 'data', type: 'note', data: { toJSON: refuse } },
    Symbol('s'),
    null,
  ]
  const outcomes = await deliver([note('first'), ...(hostile as Incoming[]), note('last')])
  expect(outcomes.map(({ status }) => status)).toEqual(['stored', ...hostile.map(() => 'quarantined'), 'stored'])
  expect(outcomes.every(({ ack }) => ack)).toBe(true)
  await box.drain()
  expect(seen).toEqual(['first', 'last'])
  // Those without an id of which nothing can be shown are alike, and equal ones without an id are kept once.
  const reasons = (await box.quarantine()).map(({ reason }) => reason)
  expect(reasons.length).toBeGreaterThan(1)
  expect(reasons.filter((reason) => !['no-id', 'invalid', 'undecodable'].includes(String(reason)))).toEqual([])
})

test('who watches the box is told of them, too', async () => {
  await using box = await server.open()
  box.consumer('a', { note: () => undefined })
  const { source, deliver } = handSource()
  box.from(source, { types: 'any' })
  const told: string[] = []
  listenTo(({ what, id }) => void told.push(`${what} ${id}`))
  onTestFinished(() => listenTo(undefined))
  const hostile = [null, new Proxy({}, { get: refuse }), { id: { toString: refuse }, type: 'note', data: 1 }]
  const outcomes = await deliver([...(hostile as unknown as Incoming[]), note('last')])
  expect(outcomes.map(({ status }) => status)).toEqual([...hostile.map(() => 'quarantined'), 'stored'])
  expect(told).toEqual([...hostile.map(() => 'quarantined undefined'), 'received last'])
})

test('data nested 100 000 deep is kept by every front door, and people and hooks can write down what they are shown', async () => {
  const told: Entry<MessageMap>[] = []
  await using box = await server.open({ hooks: { quarantined: (entry) => void told.push(entry) } })
  box.consumer('a', { note: () => {} }, { mode: 'inline' })
  const { source, deliver } = handSource()
  box.from(source, { types: 'any' })
  const message = (id: string): Incoming => ({ id, type: 'note', body: DEEP })
  const refused = { status: 'quarantined', reason: 'undecodable', ack: true }
  expect(await deliver([note('good-1'), message('source'), note('good-2')])).toMatchObject([
    { status: 'handled' },
    refused,
    { status: 'handled' },
  ])
  expect(await box.receive(message('receive'))).toMatchObject(refused)
  expect(await box.handle(message('handle'))).toMatchObject(refused)

  expect(told.map(({ message }) => message.id)).toEqual(['source', 'receive', 'handle'])
  expect(() => JSON.stringify(told)).not.toThrow()
  const { entries } = await box.admin.messages({ state: 'quarantined' })
  expect(entries).toHaveLength(3)
  expect(() => JSON.stringify(entries)).not.toThrow()
  for (const { bytes, detail } of entries) {
    expect(Buffer.from(bytes!).toString()).toBe(DEEP)
    expect(detail).toContain('nested too deep')
  }
  const none = await box.admin.messages({ state: 'quarantined', data: { a: 1 } })
  expect(none.entries).toEqual([])
  // To release it would change nothing: it stays.
  await box.admin.retry({ id: 'source' })
  expect(await box.admin.message({ id: 'source' })).toMatchObject([{ state: 'quarantined', reason: 'undecodable' }])
  await box.admin.discard({ id: 'source' }, { reason: 'no use' })
  expect(await box.admin.message({ id: 'source' })).toMatchObject([{ state: 'discarded' }])
})
