import { expect, test } from 'vitest'
import type { Sink } from 'oncebox'
import { shardOf } from '../../src/outbox/shard.js'
import { waitUntil } from '../support/wait.js'
import { recordingSink, useServer } from './fixture.js'

const server = useServer('relay_failures')
const left = (schema: string) =>
  server.sql(schema, `select o.id, d.* from ob.delivery d join ob.outbox o using (n) order by n`)

test('a refused event is tried again, holds back its own key alone, and keeps the order', async () => {
  const box = await server.open()
  let refusals = 2
  const sink = box.to(
    recordingSink({
      answer: ({ id }) => (id === 'a1' && refusals-- > 0 ? { error: new Error('not now'), retry: true } : undefined),
    }),
    { retry: { baseMs: 300, jitter: 'none' } },
  )
  await server.send(box, { id: 'a1', key: 'a' }, { id: 'b1', key: 'b' }, { id: 'a2', key: 'a' }, { id: 'c' })
  await box.start()
  await waitUntil(() => sink.ids.length === 2)
  // Sent after the failure, so it is in no batch with the one that holds it back.
  await server.send(box, { id: 'a3', key: 'a' }, { id: 'b2', key: 'b' })
  await waitUntil(() => sink.ids.length === 3)
  expect(sink.ids).toEqual(['b1', 'c', 'b2'])
  await waitUntil(async () => (await left(box.schema)).length === 3)
  expect(await left(box.schema)).toMatchObject([{ id: 'a1' }, { id: 'a2', attempts: 0 }, { id: 'a3', attempts: 0 }])
  await waitUntil(() => sink.ids.length === 6)
  expect(sink.ids).toEqual(['b1', 'c', 'b2', 'a1', 'a2', 'a3'])
  expect(sink.published.find(({ id }) => id === 'a1')!.attempt).toBe(3)
  expect(sink.published.find(({ id }) => id === 'a2')!.attempt).toBe(1)
})

test('a poison event is dead-lettered at once, or after its attempts, and the rest flows', async () => {
  const dead: string[] = []
  const box = await server.open({
    hooks: { dead: ({ message, consumer }) => void dead.push(`${consumer}: ${message.id}`) },
  })
  const sink = box.to(
    recordingSink({
      name: 'broker',
      answer: ({ id }) =>
        id === 'hopeless'
          ? { error: new Error('too large'), retry: false }
          : id === 'poison'
            ? { error: new Error('never'), retry: true }
            : undefined,
    }),
    { retry: { attempts: 3, baseMs: 10, jitter: 'none' } },
  )
  const rest = Array.from({ length: 50 }, (_, at) => ({ id: `r${at}`, key: at % 2 ? 'p' : 'other' }))
  await server.send(box, { id: 'hopeless', key: 'h' }, { id: 'poison', key: 'p' }, { id: 'h2', key: 'h' }, ...rest)
  await box.start()
  await waitUntil(() => sink.ids.length === 51)
  await waitUntil(() => dead.length === 2)
  expect(dead.sort()).toEqual(['broker: hopeless', 'broker: poison'])
  const parked = await waitUntil(async () => {
    const rows = await left(box.schema)
    return rows.length === 2 && rows
  })
  expect(parked).toMatchObject([
    { id: 'hopeless', parked: 'dead', attempts: 1 },
    { id: 'poison', parked: 'dead', attempts: 3 },
  ])
  expect(JSON.parse(parked[1]!['error'] as string)).toMatchObject({ message: 'never' })
  expect(sink.ids.filter((id) => id.startsWith('r') && Number(id.slice(1)) % 2)).toEqual(
    rest.filter(({ key }) => key === 'p').map(({ id }) => id),
  )
})

test.each([
  ['rejects', () => Promise.reject(new Error('connection refused'))],
  [
    'throws',
    () => {
      throw new Error('connection refused')
    },
  ],
  ['answers nothing', () => undefined],
  ['answers too few', () => [undefined]],
  ['answers nonsense', () => ['ok', 'ok']],
])('a sink that %s is backed off from, burns no attempt, and holds no other sink back', async (_, publish) => {
  const errors: unknown[] = []
  const box = await server.open({
    hooks: { error: (error, { sink }) => void errors.push([error.message, sink === broken]) },
  })
  let calls = 0
  const broken = box.to({
    name: 'broken',
    publish() {
      calls++
      return publish() as never
    },
    close: async () => {},
  })
  const good = box.to(recordingSink())
  await server.send(box, { id: 'a' }, { id: 'b' })
  await box.start()
  const until = Date.now() + 1_200
  for (let at = 0; Date.now() < until; at++) {
    await server.send(box, { id: `n${at}` })
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  await waitUntil(() => good.ids.length >= 10)
  // 100 ms, doubled each time, less half of it by jitter: 5 calls in 1.5 s, and a few more on a slow machine.
  expect(calls).toBeGreaterThanOrEqual(2)
  expect(calls).toBeLessThanOrEqual(8)
  expect(errors[0]).toEqual([expect.any(String), true])
  // Once for each cause; nonsense comes in two kinds.
  expect(errors.length).toBeLessThanOrEqual(2)
  const rows = await server.sql(box.schema, `select distinct attempts, parked from ob.delivery where sink = 'broken'`)
  expect(rows).toEqual([{ attempts: 0, parked: null }])
})

test('a relay that lost its lease does not complete: the events are published again, in order', async () => {
  const box = await server.open()
  let release = (): void => {}
  const blocked = new Promise<void>((resolve) => (release = resolve))
  const frozen = box.to(recordingSink({ name: 's', fail: () => blocked }))
  await server.send(box, { id: 'a', key: 'k' }, { id: 'b', key: 'k' })
  const drained = box.drain()
  await waitUntil(() => frozen.calls.length === 1)
  // As if this process had not run for longer than its lease.
  await server.sql(box.schema, `update ob.shard set due_at = now() - interval '1 s' where token is not null`)
  const other = await server.open({ schema: box.schema })
  const second = other.to(
    recordingSink({ name: 's', answer: ({ id }) => (id === 'b' ? { error: 'x', retry: true } : undefined) }),
    {
      retry: { baseMs: 60_000, jitter: 'none' },
    },
  )
  await other.drain()
  expect(second.ids).toEqual(['a'])
  release()
  await drained
  // The frozen one published both; what it knows of b must not count, for the other one's failure was recorded.
  expect(frozen.ids).toEqual(['a', 'b'])
  expect(await left(box.schema)).toMatchObject([{ id: 'b', attempts: 1 }])
})

test('a lease is extended while a slow sink publishes', async () => {
  const box = await server.open()
  const slow = box.to(recordingSink({ name: 's', fail: () => new Promise((resolve) => setTimeout(resolve, 1_200)) }), {
    leaseMs: 300,
  })
  await server.send(box, { id: 'a' })
  const other = await server.open({ schema: box.schema })
  const second = other.to(recordingSink({ name: 's' }), { leaseMs: 300 })
  const drained = box.drain()
  await waitUntil(() => slow.calls.length === 1)
  await other.start()
  await drained
  expect([slow.ids, second.ids]).toEqual([['a'], []])
})

test('stop() finishes the batch in flight', async () => {
  const box = await server.open()
  let finish = (): void => {}
  const sink = box.to(recordingSink({ fail: () => new Promise<void>((resolve) => (finish = resolve)) }))
  await server.send(box, { id: 'a' })
  await box.start()
  await waitUntil(() => sink.calls.length === 1)
  const stopped = box.stop()
  setTimeout(finish, 100)
  await stopped
  expect(sink.ids).toEqual(['a'])
  expect(await left(box.schema)).toEqual([])
})

test('a sink that never answers counts as down, keeps no shard, and is asked again', async () => {
  const errors: unknown[] = []
  const box = await server.open({ hooks: { error: (error) => void errors.push(error) } })
  let hangs = 1
  const sink = box.to(recordingSink({ fail: () => (hangs-- > 0 ? new Promise<void>(() => {}) : undefined) }), {
    publishTimeoutMs: 200,
  })
  await server.send(box, { id: 'a', key: 'k' }, { id: 'b', key: 'k' })
  await box.start()
  await waitUntil(() => sink.ids.length === 2)
  expect(sink.ids).toEqual(['a', 'b'])
  expect(sink.published[0]!.attempt).toBe(1)
  expect(errors).toMatchObject([{ code: 'PUBLISH_TIMEOUT', message: expect.stringContaining('publishTimeoutMs') }])
  await waitUntil(async () => (await left(box.schema)).length === 0)
})

test('a sink that ends when its time is over is not called beside itself, and the answers that it has count', async () => {
  const box = await server.open()
  const published: string[] = []
  let running = 0
  let most = 0
  let waits = 2
  const sink: Sink = {
    async publish(batch, limits) {
      most = Math.max(most, ++running)
      published.push(batch[0]!.id)
      const over = new Promise((resolve) => limits!.signal.addEventListener('abort', resolve))
      if (waits-- > 0) await over
      running--
      return batch.map((_, at) => (at === 0 ? undefined : { error: new Error('slow'), retry: true, afterMs: 0 }))
    },
    close: async () => {},
  }
  box.to(sink, { publishTimeoutMs: 200 })
  await server.send(box, { id: 'a', key: 'k' }, { id: 'b', key: 'k' }, { id: 'c', key: 'k' })
  await box.start()
  await waitUntil(async () => (await left(box.schema)).length === 0)
  expect(published).toEqual(['a', 'b', 'c'])
  expect(most).toBe(1)
})

test('an event on which the sink throws is found and blamed, and the others go through, in order', async () => {
  const dead: string[] = []
  const box = await server.open({ hooks: { dead: ({ message }) => void dead.push(message.id) } })
  const published: string[] = []
  box.to(
    {
      async publish(batch) {
        if (batch.some(({ id }) => id.startsWith('bad'))) throw new Error('cannot be written')
        published.push(...batch.map(({ id }) => id))
        return batch.map(() => undefined)
      },
      close: async () => {},
    },
    { retry: { attempts: 3, baseMs: 10, jitter: 'none' } },
  )
  const keys = Array.from({ length: 20 }, (_, at) => `k${at}`)
  const good = [1, 2, 3].flatMap((n) => keys.map((key) => ({ id: `${key}-${n}`, key })))
  await server.send(box, { id: 'bad-1', key: 'k3' }, ...good.slice(0, 30), { id: 'bad-2' }, ...good.slice(30))
  await box.start()
  await waitUntil(() => dead.length === 2, { timeoutMs: 60_000 })
  await waitUntil(() => published.length >= good.length)
  expect(dead.sort()).toEqual(['bad-1', 'bad-2'])
  for (const key of keys) {
    expect(published.filter((id) => id.startsWith(`${key}-`))).toEqual([1, 2, 3].map((n) => `${key}-${n}`))
  }
  const rows = await waitUntil(async () => {
    const found = await left(box.schema)
    return found.length === 2 && found
  })
  expect(rows).toMatchObject([
    { parked: 'dead', attempts: 3 },
    { parked: 'dead', attempts: 3 },
  ])
}, 90_000)

test('among many events that make the sink throw, the others get their turn, and the many are counted', async () => {
  const box = await server.open()
  const sink = box.to(recordingSink({ name: 's' }), { retry: { baseMs: 60_000, jitter: 'none' } })
  const { publish } = sink
  sink.publish = async (batch) => {
    if (batch.some(({ data }) => data === 'bad')) throw new Error('cannot be written')
    return publish(batch)
  }
  const keys = Array.from({ length: 2_000 }, (_, at) => `k${at}`).filter((key) => shardOf(key) < 4)
  const events = keys.slice(0, 50).map((key, at) => ({ id: key, key, data: at < 45 ? 'bad' : 'good' }))
  await server.send(box, ...events)
  await box.start()
  await waitUntil(() => sink.ids.length === 5)
  await waitUntil(async () => (await left(box.schema)).some(({ attempts }) => Number(attempts) > 0))
})
