/** A destination that is down, against an event that it refuses. */
import { expect, test } from 'vitest'
import type { Message, Refusal } from 'oncebox'
import { webhook } from 'oncebox/webhook'
import { freePort } from '../support/postgres.js'
import { waitUntil } from '../support/wait.js'
import { SECRETS, serve } from '../webhook/senders.js'
import { recordingSink, useServer } from './fixture.js'

const server = useServer('outbox_down')
const left = (schema: string) =>
  server.sql(schema, `select o.id, d.* from ob.delivery d join ob.outbox o using (n) order by n`)
const attempts = async (schema: string) => (await left(schema)).map((row) => [row['id'], row['attempts']])
const ONCE = { retry: { attempts: 1, baseMs: 10, jitter: 'none' } } as const
const away: Refusal = { error: new Error('the server is on holiday'), retry: true, down: true }

/** What hooks are told. */
function ears() {
  const told: string[] = []
  return {
    told,
    hooks: {
      error: (error: Error) => void told.push(`error: ${error.message}`),
      recovered: () => void told.push('recovered'),
      dead: ({ message }: { message: { id: string } }) => void told.push(`dead: ${message.id}`),
    },
  }
}

test('a destination that is down is waited for: nothing is counted, it is told once, health says why, order holds', async () => {
  const { told, hooks } = ears()
  const box = await server.open({ hooks })
  let isDown = true
  const sink = box.to(recordingSink({ name: 'broker', answer: () => (isDown ? away : undefined) }), ONCE)
  await server.send(box, ...['a1', 'b1', 'a2', 'b2', 'a3'].map((id) => ({ id, key: id[0]! })))
  await box.start()
  await waitUntil(() => sink.calls.length >= 4)
  expect((await attempts(box.schema)).map(([, count]) => count)).toEqual([0, 0, 0, 0, 0])
  expect(told).toEqual(['error: the server is on holiday'])
  expect(await box.health()).toMatchObject({ ok: false, reasons: ['sink broker is down: the server is on holiday'] })
  isDown = false
  await waitUntil(() => sink.ids.length === 5)
  expect(sink.ids.filter((id) => id.startsWith('a'))).toEqual(['a1', 'a2', 'a3'])
  expect(sink.published.map(({ attempt }) => attempt)).toEqual([1, 1, 1, 1, 1])
  await waitUntil(() => told.length === 2)
  expect(told[1]).toBe('recovered')
  expect(await box.health()).toMatchObject({ ok: true })
})

test('an event on which the destination always fails is counted while it takes others, and holds up its own key alone', async () => {
  const { told, hooks } = ears()
  const box = await server.open({ hooks })
  const sink = box.to(recordingSink({ name: 'broker', answer: ({ id }) => (id === 'poison' ? away : undefined) }), {
    retry: { attempts: 2, baseMs: 10, jitter: 'none' },
  })
  await server.send(box, { id: 'poison', key: 'p' }, { id: 'behind', key: 'p' }, { id: 'free', key: 'f' })
  await box.start()
  for (let at = 0; !told.includes('dead: poison') && at < 200; at++) {
    await server.send(box, { id: `n${at}` })
    await waitUntil(() => sink.ids.includes(`n${at}`))
  }
  await waitUntil(() => sink.ids.includes('behind'))
  expect(told.filter((one) => one.startsWith('dead'))).toEqual(['dead: poison'])
  await waitUntil(async () => (await left(box.schema)).length === 1)
  expect(await left(box.schema)).toMatchObject([{ id: 'poison', parked: 'dead', attempts: 2 }])
  await waitUntil(async () => (await box.health()).ok)
})

test('an event that has failed before is not counted while the destination takes nothing', async () => {
  const box = await server.open()
  const url = `http://127.0.0.1:${await freePort()}/`
  const sink = box.to(webhook({ url, secret: SECRETS.standard }), { retry: { attempts: 3, baseMs: 1 } })
  let calls = 0
  const publish = sink.publish.bind(sink)
  sink.publish = (batch) => (calls++, publish(batch))
  await server.send(box, { id: 'a' })
  await server.sql(box.schema, `update ob.delivery set attempts = 1, error = '{}'`)
  await box.start()
  await waitUntil(() => calls >= 8, { timeoutMs: 60_000 })
  expect(await attempts(box.schema)).toEqual([['a', 1]])
}, 90_000)

test('an event that is to wait is not counted, holds back its key, and others go on', async () => {
  const { told, hooks } = ears()
  const box = await server.open({ hooks })
  const full: Refusal = { error: new Error('the queue is full'), retry: true, down: true, afterMs: 20 }
  let refusals = 5
  const sink = box.to(
    recordingSink({ name: 'broker', answer: ({ id }) => (id === 'a1' && refusals-- > 0 ? full : undefined) }),
    ONCE,
  )
  await server.send(box, { id: 'a1', key: 'a' }, { id: 'b1', key: 'b' }, { id: 'a2', key: 'a' })
  await box.start()
  await waitUntil(() => sink.ids.length === 3)
  expect(sink.ids).toEqual(['b1', 'a1', 'a2'])
  expect(sink.published.map(({ attempt }) => attempt)).toEqual([1, 1, 1])
  await waitUntil(() => told.length === 2)
  expect(told).toEqual(['error: the queue is full', 'recovered'])
})

test('after it was down, a destination that refuses all it is given has not recovered until it takes one', async () => {
  const { told, hooks } = ears()
  const box = await server.open({ hooks })
  const answers: (Refusal | undefined)[] = [away, { error: new Error('too large'), retry: false }]
  const sink = box.to(recordingSink({ name: 'broker', answer: () => answers.shift() }), ONCE)
  await server.send(box, { id: 'a' })
  await box.start()
  await waitUntil(() => told.includes('dead: a'))
  expect(told).toEqual(['error: the server is on holiday', 'dead: a'])
  expect(await box.health()).toMatchObject({ ok: true })
  await server.send(box, { id: 'b' })
  await waitUntil(() => sink.ids.length === 1)
  await waitUntil(() => told.includes('recovered'))
})

test('what a sink says was not tried is not counted, and not asked for in a row', async () => {
  const box = await server.open()
  const sink = box.to(
    recordingSink({ name: 'broker', answer: () => ({ error: new Error('stopped early'), retry: true, afterMs: 0 }) }),
    ONCE,
  )
  await server.send(box, { id: 'a' })
  await expect(box.drain()).rejects.toThrow()
  expect(sink.calls).toHaveLength(1)
  expect(await attempts(box.schema)).toEqual([['a', 0]])
})

test.each([NaN, -1, 'soon'])('a sink that answers a wait of %s answers nonsense', async (afterMs) => {
  const box = await server.open()
  box.to(recordingSink({ answer: () => ({ error: new Error('later'), retry: true, afterMs: afterMs as number }) }))
  await server.send(box, { id: 'a' })
  await expect(box.drain()).rejects.toMatchObject({ code: 'OPTION_INVALID' })
})

test('no event waits for longer than an hour because its destination says so', async () => {
  const box = await server.open()
  box.to(recordingSink({ answer: () => ({ error: new Error('later'), retry: true, afterMs: 3e12 }) }))
  await server.send(box, { id: 'a' })
  await box.drain()
  const [row] = await server.sql(
    box.schema,
    `select due_at between now() + interval '59 min' and now() + interval '61 min' bounded from ob.delivery`,
  )
  expect(row).toEqual({ bounded: true })
})

test.each([
  [500, {}],
  [503, {}],
  [503, { 'retry-after': '1' }],
  [429, {}],
  [401, {}],
  [404, {}],
  [410, {}],
  [302, { location: '/elsewhere' }],
])('a webhook that answers everything %i %o is waited for', async (status, headers) => {
  const { told, hooks } = ears()
  const box = await server.open({ hooks })
  let isDown = true
  await using http = await serve((_, response) => {
    response.writeHead(isDown ? status : 200, isDown ? headers : {}).end()
  })
  box.to(webhook({ url: http.url, secret: SECRETS.standard }), { ...ONCE, name: 'hook' })
  await server.send(box, { id: 'a1', key: 'a' }, { id: 'a2', key: 'a' })
  await box.start()
  await waitUntil(() => told.length > 0)
  expect(told).toEqual([`error: 127.0.0.1:${http.port} answered ${status}`])
  expect((await box.health()).reasons).toEqual([`sink hook is down: 127.0.0.1:${http.port} answered ${status}`])
  isDown = false
  await waitUntil(async () => (await left(box.schema)).length === 0)
  await waitUntil(() => told.length === 2)
  expect(told[1]).toBe('recovered')
})

test('a receiver that is limited to so many events at a time gets all of them, and none is counted', async () => {
  const { told, hooks } = ears()
  const box = await server.open({ hooks })
  let tokens = 3
  let refused = 0
  const seen: string[] = []
  const sink = recordingSink({
    name: 'limited',
    answer: (message: Message) => {
      if (tokens-- > 0) return void seen.push(message.id)
      if (++refused % 4 === 0) tokens = 3
      return { error: new Error('too many'), retry: true, down: true, afterMs: 5 }
    },
  })
  box.to(sink, ONCE)
  await server.send(box, ...Array.from({ length: 20 }, (_, at) => ({ id: `e${at}` })))
  await box.start()
  await waitUntil(() => seen.length === 20)
  expect(told.filter((one) => one.startsWith('dead'))).toEqual([])
})
