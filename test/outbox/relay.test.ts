import { expect, test } from 'vitest'
import { defineMessages, unchecked } from 'oncebox'
import { gate } from '../inbox/fixture.js'
import { waitUntil } from '../support/wait.js'
import { recordingSink, useServer } from './fixture.js'

const server = useServer('relay')
const left = (schema: string) => server.sql(schema, `select * from ob.delivery order by n, sink`)
const events = (schema: string) => server.sql(schema, `select * from ob.outbox order by n`)

test('a committed event is published with everything it was sent with, and then deleted', async () => {
  const box = await server.open()
  const sink = box.to(recordingSink())
  const before = Date.now()
  await server.send(box, {
    type: 'order.placed',
    id: 'o-1',
    key: 'k',
    subject: 's',
    headers: { traceparent: '00-1-2-01' },
    data: { n: 1 },
  })
  await box.drain()
  expect(sink.published).toEqual([
    {
      id: 'o-1',
      source: 'shop',
      type: 'order.placed',
      key: 'k',
      subject: 's',
      headers: { traceparent: '00-1-2-01' },
      data: { n: 1 },
      time: expect.any(Date),
      receivedAt: expect.any(Date),
      attempt: 1,
      correlationId: 'o-1',
    },
  ])
  expect(Math.abs(sink.published[0]!.time!.getTime() - before)).toBeLessThan(10_000)
  expect(await left(box.schema)).toEqual([])
  expect(await events(box.schema)).toEqual([])
})

test('an event without an id gets a UUID, and those of one millisecond come before those of the next', async () => {
  const box = await server.open()
  const sink = box.to(recordingSink())
  const client = await server.pool.connect()
  await client.query('begin')
  const times: [from: number, to: number][] = []
  for (let ms = 0; ms < 5; ms++) {
    const last = Date.now()
    await waitUntil(() => Date.now() > last)
    const from = Date.now()
    await box.send(client, 'event', ms)
    times.push([from, Date.now()])
  }
  await client.query('commit')
  client.release()
  await box.drain()
  const ids = sink.published.toSorted((a, b) => Number(a.data) - Number(b.data)).map(({ id }) => id)
  expect(ids).toEqual(ids.toSorted())
  expect(new Set(ids.map((id) => id.slice(15))).size).toBe(5)
  for (const [at, id] of ids.entries()) {
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    const time = Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)
    expect(time).toBeGreaterThanOrEqual(times[at]![0])
    expect(time).toBeLessThanOrEqual(times[at]![1])
  }
})

test('an event of a transaction that rolls back is never published', async () => {
  const box = await server.open()
  const sink = box.to(recordingSink())
  const client = await server.pool.connect()
  await client.query('begin')
  await box.send(client, 'event', 1)
  await client.query('rollback')
  client.release()
  await box.drain()
  expect(sink.calls).toEqual([])
})

test('a started box publishes soon after the commit, and stop() closes the sink', async () => {
  const box = await server.open()
  const sink = box.to(recordingSink())
  await box.start()
  await server.send(box, { id: 'a' }, { id: 'b' })
  await waitUntil(() => sink.ids.length === 2)
  expect(sink.ids).toEqual(['a', 'b'])
  await box.stop()
  expect(sink.closed).toBe(1)
  const held = await server.sql(box.schema, `select * from ob.shard where token is not null`)
  expect(held).toEqual([])
})

test('the same id twice is published once', async () => {
  const box = await server.open()
  const sink = box.to(recordingSink())
  await server.send(box, { id: 'a', data: 1 }, { id: 'a', data: 2 })
  await server.send(box, { id: 'a', data: 3 })
  await box.drain()
  expect(sink.published.map(({ data }) => data)).toEqual([1])
})

test('what a handler sends is published after its commit, with the correlation of its message', async () => {
  const box = await server.open()
  const sink = box.to(recordingSink())
  box.consumer('c', {
    in: async (message, { send }) => {
      await send('out', message.data, { key: 'k' })
    },
  })
  await box.receive({ id: 'm', type: 'in', data: 7, headers: { correlationid: 'conv' } })
  await box.drain()
  expect(sink.published).toMatchObject([{ type: 'out', data: 7, correlationId: 'conv', causationId: 'm' }])
})

test('events sent before any sink is attached are published by the sinks that come, each to all that want it', async () => {
  const box = await server.open()
  await server.send(box, { id: 'a', type: 'x', key: 'k' }, { id: 'b', type: 'y' }, { id: 'z', type: 'nobody' })
  await box.drain()
  expect((await left(box.schema)).map(({ sink }) => sink)).toEqual(['', '', ''])
  const all = recordingSink({ name: 'x and y' })
  const some = recordingSink({ name: 'y alone' })
  box.to(all, { types: ['x', 'y'] as never })
  box.to(some, { types: ['y'] as never })
  await server.send(box, { id: 'c', type: 'x', key: 'k' })
  await box.drain()
  expect(all.ids).toEqual(['a', 'b', 'c'])
  expect(some.ids).toEqual(['b'])
  expect(await left(box.schema)).toMatchObject([{ sink: '' }])

  const late = recordingSink({ name: 'the rest' })
  box.to(late, { types: ['nobody'] as never })
  await box.start()
  await waitUntil(() => late.ids.length > 0)
  expect(late.ids).toEqual(['z'])
  await waitUntil(async () => (await events(box.schema)).length === 0)
})

test('an event waits for its slower sink, and goes with the last one', async () => {
  const box = await server.open()
  let down = true
  const quick = box.to(recordingSink())
  const slow = box.to(
    recordingSink({
      name: 'slow',
      fail() {
        if (down) throw new Error('down')
      },
    }),
  )
  await server.send(box, { id: 'a' })
  await expect(box.drain()).rejects.toThrow('down')
  expect(quick.ids).toEqual(['a'])
  expect(await events(box.schema)).toHaveLength(1)
  down = false
  await box.drain()
  expect(slow.ids).toEqual(['a'])
  expect(await events(box.schema)).toEqual([])
})

test('two sinks that complete the same events at the same time leave nothing behind', async () => {
  const box = await server.open()
  box.to(recordingSink({ name: 'one' }))
  box.to(recordingSink({ name: 'two' }))
  await box.start()
  for (let round = 0; round < 20; round++) {
    await server.send(box, ...Array.from({ length: 20 }, () => ({})))
  }
  await waitUntil(async () => (await left(box.schema)).length === 0)
  await waitUntil(async () => (await events(box.schema)).length === 0)
})

test('an event whose last relay died before it could finish it is finished at the next start', async () => {
  const box = await server.open()
  box.to(recordingSink({ name: 'one' }))
  box.to(recordingSink({ name: 'two' }))
  await server.send(box, { id: 'a' })
  // Both sinks have it, and each relay saw the other's delivery.
  await server.sql(box.schema, 'delete from ob.delivery')
  await box.start()
  await waitUntil(async () => (await events(box.schema)).length === 0)
})

test('a box without sinks runs no relay, and stop() closes a sink once', async () => {
  const box = await server.open()
  await box.start()
  await server.send(box, { id: 'a' })
  await box.stop()
  expect(await server.sql(box.schema, 'select * from ob.shard')).toEqual([])
  const sink = box.to(recordingSink())
  await box.drain()
  expect(sink.ids).toEqual(['a'])
  await box.stop()
  await box.stop()
  expect(sink.closed).toBe(1)
})

test('a type that does not exist is refused when the sink is attached', async () => {
  const box = await server.open({ messages: defineMessages({ placed: unchecked<number>() }) })
  const refused = (attach: () => unknown) =>
    expect(attach).toThrow(expect.objectContaining({ code: 'MESSAGE_TYPE_UNKNOWN' }))
  refused(() => box.to(recordingSink(), { types: ['plaecd' as never] }))
  expect(() => box.to(recordingSink(), { type: 1 } as never)).toThrow(
    expect.objectContaining({ code: 'OPTION_INVALID' }),
  )
  expect(() => box.to({} as never)).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
  box.to(recordingSink({ name: 'a' }))
  expect(() => box.to(recordingSink({ name: 'a' }))).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
})

test('deliverAt is honoured, and a delayed event does not hold back its key', async () => {
  const box = await server.open()
  const sink = box.to(recordingSink())
  const at = new Date(Date.now() + 1_500)
  await server.send(box, { id: 'later', key: 'k', deliverAt: at }, { id: 'now', key: 'k' })
  await box.start()
  await waitUntil(() => sink.ids.length === 1)
  expect(sink.ids).toEqual(['now'])
  await waitUntil(() => sink.ids.length === 2)
  expect(sink.ids).toEqual(['now', 'later'])
  expect(Date.now()).toBeGreaterThanOrEqual(at.getTime() - 50)
})

test('a late commit is published though a thousand later events are published already', async () => {
  const box = await server.open()
  const sink = box.to(recordingSink())
  await box.start()
  const client = await server.pool.connect()
  await client.query('begin')
  await box.send(client, 'event', null, { id: 'early' })
  for (let round = 0; round < 10; round++) {
    await server.send(box, ...Array.from({ length: 100 }, () => ({})))
  }
  await waitUntil(() => sink.ids.length === 1_000)
  expect(sink.ids).not.toContain('early')
  await client.query('commit')
  client.release()
  await waitUntil(() => sink.ids.length === 1_001)
  expect(sink.ids.at(-1)).toBe('early')
})

test('keepMs keeps what was published, marked', async () => {
  const box = await server.open()
  box.to(recordingSink(), { keepMs: 60_000 })
  await server.send(box, { id: 'a' })
  await box.drain()
  expect(await events(box.schema)).toMatchObject([{ id: 'a', published_at: expect.any(Date) }])
  await server.send(box, { id: 'a' })
  expect(await left(box.schema)).toEqual([])
})

test('after the clock of the database was set back, events are published at once', async () => {
  const box = await server.open()
  const sink = box.to(recordingSink({ name: 's' }))
  await server.send(box, { id: 'before', key: 'k' })
  await box.drain()
  // What was given back an hour from now, by the clock that there is since.
  await server.sql(box.schema, `update ob.shard set due_at = due_at + interval '1 h'`)
  await server.send(box, { id: 'after', key: 'k' })
  await box.drain()
  expect(sink.ids).toEqual(['before', 'after'])
})

test('a stop ends a drain: what is not begun is left to the next one, and nothing opens a sink that was closed', async () => {
  const box = await server.open()
  const begun = gate()
  const finish = gate()
  const sink = recordingSink({
    fail() {
      begun.open()
      return finish.opened
    },
  })
  box.to(sink, { batch: 1 })
  await server.send(box, { id: 'a', key: 'k' }, { id: 'b', key: 'k' }, { id: 'c', key: 'k' })
  const draining = box.drain()
  await begun.opened
  const stopping = box.stop()
  finish.open()
  await Promise.all([stopping, draining])
  expect(sink.ids).toEqual(['a'])
  expect(sink.closed).toBe(1)
  await box.drain()
  expect(sink.ids).toEqual(['a', 'b', 'c'])
})
