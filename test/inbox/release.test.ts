/** What leaves the quarantine: for whom, how old it may be, in which order, and all or nothing. */
import { createBox, type Incoming, type MessageMap, type Outcome, type Source } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { describe, expect, test } from 'vitest'
import { waitUntil } from '../support/wait.js'
import { note, recorder, useServer, type Bench } from './fixture.js'

const server = useServer('release')
const HOUR = 3_600_000

class PushSource implements Source {
  readonly push = true
  #deliver: ((batch: Incoming[]) => Promise<readonly Outcome[]>) | undefined

  async start(deliver: (batch: Incoming[]) => Promise<readonly Outcome[]>): Promise<void> {
    this.#deliver = deliver
  }

  async stop(): Promise<void> {}

  async post(...messages: Incoming[]): Promise<readonly Outcome[]> {
    const deliver = await waitUntil(() => this.#deliver)
    return deliver(messages)
  }
}

/** Another process on the same schema, in which these consumers take these types. */
function processOf(box: Bench, consumers: Record<string, string[]>, messages?: MessageMap) {
  const other = createBox({
    db: fromPg(server.pool),
    schema: box.schema,
    logger: recorder(),
    ...(messages && { messages }),
  })
  for (const [name, types] of Object.entries(consumers)) {
    const handler = (message: { id: string }, { tx }: { tx: never }) => box.write(tx, name, message)
    other.consumer(name, Object.fromEntries(types.map((type) => [type, handler])) as never, { retainMs: HOUR })
  }
  return other
}

const lines = async (box: Bench) => (await box.effects()).map(({ consumer, id }) => `${consumer} ${id}`).sort()

describe('what a source brought for some consumers alone', () => {
  test.for(['stored', 'inline'] as const)('and was unrouted is released to no other (%s)', async (mode) => {
    await using box = await server.open()
    box.consumer('x', { other: () => undefined }, { mode })
    const source = box.from(new PushSource(), { types: 'any', consumers: ['x'] })
    expect(await source.post(note('1'), note('1'))).toMatchObject([{ reason: 'unrouted' }, { reason: 'unrouted' }])

    const others = processOf(box, { y: ['note'] })
    await others.migrate()
    expect(await others.admin.retry({ reason: 'unrouted' })).toBe(0)
    const next = processOf(box, { x: ['other', 'note'], y: ['note'] })
    await next.migrate()
    await next.drain()
    expect(await lines(box)).toEqual(['x 1'])
    expect(await box.quarantine()).toEqual([])
  })

  test('and was refused is released to no other by a person', async () => {
    await using box = await server.open({ maxBytes: 10 })
    box.consumer('x', { note: () => undefined }, { mode: 'inline' })
    const source = box.from(new PushSource(), { types: 'any', consumers: ['x'] })
    expect(await source.post(note('1'))).toMatchObject([{ reason: 'too-large' }])
    const next = processOf(box, { x: ['note'], y: ['note'] })
    expect(await next.admin.retry({ reason: 'too-large' })).toBe(1)
    await next.drain()
    expect(await lines(box)).toEqual(['x 1'])
  })

  test.for<[second: string[] | undefined, expected: string[]]>([
    [['z'], ['x 1', 'z 1']],
    [undefined, ['x 1', 'y 1', 'z 1']],
  ])('and another brought for %s is released to those of both', async ([second, expected]) => {
    await using box = await server.open()
    const one = box.from(new PushSource(), { types: 'any', consumers: ['x'] })
    const two = box.from(new PushSource(), { types: 'any', ...(second && { consumers: second }) })
    await one.post(note('1'))
    await two.post(note('1'))
    await one.post(note('1'))
    expect(await box.quarantine()).toHaveLength(1)
    const next = processOf(box, { x: ['note'], y: ['note'], z: ['note'] })
    await next.migrate()
    await next.drain()
    expect(await lines(box)).toEqual(expected)
  })
})

describe('an unrouted message', () => {
  test('that may have been handled and forgotten is too old when it is released by itself', async () => {
    await using box = await server.open()
    const message = note('1', { time: new Date() })
    expect(await box.receive(message)).toMatchObject({ reason: 'unrouted' })
    const worker = processOf(box, { y: ['note'] })
    expect(await worker.handle(message)).toMatchObject({ status: 'handled' })
    await box.clock.advance(2 * HOUR)
    expect(await worker.admin.prune()).toBe(1)

    await worker.migrate()
    await worker.drain()
    expect(await lines(box)).toEqual(['y 1'])
    expect(await box.quarantine()).toMatchObject([{ consumer: 'y', id: '1', reason: 'too-old' }])
  })

  test('keeps its place among all of its key, in one start', async () => {
    await using box = await server.open()
    const ids = Array.from({ length: 1_200 }, (_, n) => `${n}`)
    for (const some of [ids.slice(0, 700), ids.slice(700)]) {
      await box.receive(some.map((id) => note(id, { key: 'k' })))
      await box.receive(note(`other-${some[0]}`, { key: 'k', type: 'other' }))
    }
    box.consumer('a', { note: () => undefined }, { order: 'key' })
    await box.migrate()
    const stored = await box.sql(`select id from ob.work order by seq`)
    expect(stored.map(({ id }) => id)).toEqual(ids)
    expect(await box.quarantine()).toMatchObject([{ type: 'other' }, { type: 'other' }])
  })
})

describe('a release', () => {
  test('whose process dies on the way leaves the message where it was', async () => {
    await using box = await server.open()
    box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) }, { retainMs: HOUR })
    await box.receive(note('1', { time: new Date(Date.now() - 2 * HOUR) }))
    box.crashAt('received')
    await expect(box.admin.retry({ id: '1' })).rejects.toThrow('simulated crash')
    await box.drain()
    expect(await box.ids()).toEqual([])
    expect(await box.quarantine()).toHaveLength(1)
    expect(await box.admin.retry({ id: '1' })).toBe(1)
    expect(await box.quarantine()).toEqual([])
  })

  test('that cannot remove the message does not store it', async () => {
    await using box = await server.open()
    box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) }, { retainMs: HOUR })
    await box.receive(note('1', { time: new Date(Date.now() - 2 * HOUR) }))
    const holder = await server.pool.connect()
    await holder.query('begin')
    await holder.query(`select 1 from "${box.schema}".quarantine for update`)
    expect(await box.admin.retry({ id: '1' })).toBe(0)
    expect(await box.sql('select 1 from ob.message')).toEqual([])
    await holder.query('rollback')
    holder.release()
    expect(await box.admin.retry({ id: '1' })).toBe(1)
    await box.drain()
    expect(await box.ids()).toEqual(['1'])
  })

  test.for<[how: string, options: { perSecond?: number }]>([
    ['in one batch', {}],
    ['in batches of one message', { perSecond: 10 }],
  ])('that waits for a copy which is being handled leaves what comes behind it, too, %s', async ([, options]) => {
    await using box = await server.open({ maxBytes: 10 })
    box.consumer('a', { note: () => undefined }, { order: 'key' })
    await box.receive([note('1', { key: 'k' }), note('2', { key: 'k' }), note('3', { key: 'l' })])
    const holder = await server.pool.connect()
    await holder.query('begin')
    await holder.query(
      `insert into "${box.schema}".message (consumer, source, id, type, body) values ('a', '', '1', 'note', '1')`,
    )
    const released = await box.admin.retry('all', options)
    const stored = await box.sql('select id from ob.message')
    await holder.query('rollback')
    holder.release()
    expect([released, stored]).toEqual([1, [{ id: '3' }]])
    expect(await box.admin.retry('all')).toBe(2)
    expect(await box.sql('select id from ob.work order by seq')).toMatchObject([{ id: '3' }, { id: '1' }, { id: '2' }])
  })
})

test('a key that is held back for one consumer is not for another', async () => {
  await using box = await server.open()
  for (const name of ['a', 'b']) box.consumer(name, { note: () => undefined }, { order: 'key', retainMs: HOUR })
  await box.receive(note('1', { key: 'k', time: new Date(Date.now() - 2 * HOUR) }))
  const holder = await server.pool.connect()
  await holder.query('begin')
  await holder.query(
    `insert into "${box.schema}".message (consumer, source, id, type, body) values ('a', '', '1', 'note', '1')`,
  )
  const released = await box.admin.retry('all', { perSecond: 10 })
  const stored = await box.sql('select consumer from ob.message')
  await holder.query('rollback')
  holder.release()
  expect([released, stored]).toEqual([1, [{ consumer: 'b' }]])
})

test('large messages leave the quarantine a few at a time, in their order', async () => {
  await using box = await server.open()
  box.consumer('x', { other: () => undefined })
  const large = (n: number): Incoming => note(`n${n}`, { key: 'k', data: { n, filler: 'x'.repeat(900_000) } })
  const ids = Array.from({ length: 11 }, (_, n) => n)
  for (const n of ids) expect(await box.receive(large(n))).toMatchObject({ reason: 'unrouted' })

  const next = createBox({ db: fromPg(server.pool), schema: box.schema, logger: recorder() })
  const handler = (message: { id: string }, { tx }: { tx: never }) => box.write(tx, 'x', message)
  next.consumer('x', { note: handler } as never, { order: 'key' })
  await next.migrate()
  await next.drain()
  expect((await box.effects()).map(({ id }) => id)).toEqual(ids.map((n) => `n${n}`))
  expect(await box.quarantine()).toEqual([])
})

test('messages without an id are kept apart by all that came with them', async () => {
  await using box = await server.open()
  box.consumer('a', { note: () => undefined })
  const lost = (headers: Record<string, string>, more: object = {}): Incoming => ({
    ...{ id: undefined, type: 'note', data: 500, headers },
    ...more,
  })
  const copies = [lost({ 'oncebox-id': 'm1' }), lost({ 'oncebox-id': 'm1' })]
  await box.receive([...copies, lost({ 'oncebox-id': 'm2' }), lost({ 'oncebox-id': 'm1' }, { subject: 'bob' })])
  await box.receive(copies)
  expect(await box.quarantine()).toHaveLength(3)
})

test('an unrouted message that is released keeps the fingerprint of its source', async () => {
  await using box = await server.open()
  const source: Source & { fingerprint: (message: { data?: unknown }) => unknown; deliver?: never } = {
    push: true,
    fingerprint: ({ data }) => (data as { stable: unknown }).stable,
    async start(deliver) {
      send = deliver
    },
    async stop() {},
  }
  let send: Parameters<Source['start']>[0] | undefined
  box.from(source, { types: 'any' })
  await waitUntil(() => send !== undefined)
  const message = (noise: number) => note('1', { data: { stable: 1, noise } })
  expect(await send!([message(1)])).toMatchObject([{ reason: 'unrouted' }])
  box.consumer('a', { note() {} })
  await box.migrate()
  expect(await send!([message(2)])).toMatchObject([{ status: 'duplicate' }])
})
