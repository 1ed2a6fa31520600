/** Sinks by name: what each of several processes says of them, and how one is removed. */
import { expect, onTestFinished, test, vi } from 'vitest'
import { link } from 'oncebox/link'
import { scratchSchemaName } from '../support/postgres.js'
import { waitUntil } from '../support/wait.js'
import { recordingSink, SILENT, useServer } from './fixture.js'

const server = useServer('sinks')
const typesOf = async (schema: string) =>
  (await server.sql(schema, `select types from ob.sink where name = 's'`))[0]?.['types']
const lost = (schema: string) => server.sql(schema, `update ob.sink_declaration set seen_at = now() - interval '1 h'`)

test('one sink of a box may go without a name, a second is refused', async () => {
  const box = await server.open()
  const plain = box.to(recordingSink())
  box.to(recordingSink({ name: 'own' }))
  box.to(recordingSink(), { name: 'given' })
  const refused = expect.objectContaining({ code: 'OPTION_INVALID', message: expect.stringContaining('name:') })
  expect(() => box.to(recordingSink())).toThrow(refused)
  expect(() => box.to(recordingSink({ name: 'other' }), { name: 'own' })).toThrow(refused)
  await server.send(box, { id: 'a' })
  await box.drain()
  expect(plain.ids).toEqual(['a'])
  const rows = await server.sql(box.schema, 'select name from ob.sink order by name')
  expect(rows.map(({ name }) => name)).toEqual(['given', 'own', 'sink-1'])
})

test('a sink without a name keeps its events when another is attached before it', async () => {
  const box = await server.open()
  box.to(recordingSink({ fail: () => Promise.reject(new Error('down')) }))
  await server.send(box, { id: 'a' })
  await expect(box.drain()).rejects.toThrow('down')
  await box.stop()
  const next = await server.open({ schema: box.schema })
  next.to(recordingSink({ name: 'first' }))
  const plain = next.to(recordingSink())
  await next.drain()
  expect(plain.ids).toEqual(['a'])
})

test.each([
  ['adds a type', ['x', 'y'], ['x']],
  ['removes a type', ['x'], ['x', 'y']],
])('while a deploy that %s is under way, a restart of an old process diverts nothing', async (_, newer, older) => {
  const warned: unknown[] = []
  const logger = { ...SILENT, warn: (about: object) => void warned.push(about) }
  const first = await server.open()
  const s = () => recordingSink({ name: 's' })
  const sinks = [first.to(s(), { types: newer })]
  await first.start()
  const old = await server.open({ schema: first.schema, logger })
  sinks.push(old.to(s(), { types: older }))
  await old.start()
  expect(await typesOf(first.schema)).toEqual(['x', 'y'])
  expect(warned).toContainEqual(expect.objectContaining({ sink: 's', types: older, others: newer }))
  await server.send(first, { id: 'a', type: 'y' })
  await waitUntil(() => sinks.flatMap(({ ids }) => ids).length === 1)
})

test('a type counts no longer once the last process that wants it has stopped, or was not seen for long', async () => {
  const old = await server.open()
  old.to(recordingSink({ name: 's' }), { types: ['x', 'y'] as never })
  await old.start()
  const next = await server.open({ schema: old.schema })
  next.to(recordingSink({ name: 's' }), { types: ['x'] as never })
  await next.start()
  await old.stop()
  await next.stop()
  await next.start()
  expect(await typesOf(old.schema)).toEqual(['x'])

  await old.start()
  expect(await typesOf(old.schema)).toEqual(['x', 'y'])
  await lost(old.schema)
  await next.stop()
  await next.start()
  expect(await typesOf(old.schema)).toEqual(['x'])
})

test('an event of a type that a sink stops and starts wanting again is late, and in order', async () => {
  const box = await server.open()
  box.to(recordingSink({ name: 's' }), { types: ['x'] as never })
  await server.send(box, { id: 'a', type: 'y', key: 'k' })
  await box.drain()
  await box.stop()
  const next = await server.open({ schema: box.schema })
  const sink = next.to(recordingSink({ name: 's' }), { types: ['x', 'y'] as never })
  // Sent by a process that has said so, but not to the database yet.
  await server.send(next, { id: 'b', type: 'y', key: 'k' }, { id: 'c', type: 'x', key: 'k' })
  await next.drain()
  expect(sink.ids).toEqual(['a', 'b', 'c'])
})

test('a sink is removed with what it was still to get, and its events go with it', async () => {
  const box = await server.open()
  const kept = recordingSink({ name: 'kept' })
  box.to(kept, { types: ['both'] as never })
  box.to(recordingSink({ name: 'old', fail: () => Promise.reject(new Error('down')) }))
  await server.send(box, { id: 'a', type: 'both' }, { id: 'b', key: 'k' }, { id: 'c', key: 'k' })
  await box.drain().catch(() => undefined)
  const inUse = expect.objectContaining({ code: 'SINK_IN_USE' })
  await expect(box.admin.removeSink('old')).rejects.toThrow(inUse)
  await box.stop()

  const next = await server.open({ schema: box.schema })
  next.to(kept, { types: ['both'] as never })
  await server.sql(box.schema, `update ob.delivery set due_at = due_at - interval '1 h'`)
  expect(await next.health({ maxLagMs: 60_000 })).toMatchObject({ ok: false })
  await server.sql(
    box.schema,
    `update ob.shard set token = gen_random_uuid(), due_at = now() + interval '1 h' where sink = 'old' and shard = 1`,
  )
  await expect(next.admin.removeSink('old')).rejects.toThrow(inUse)
  await server.sql(box.schema, `update ob.shard set token = null, due_at = now() where sink = 'old'`)
  expect(await next.admin.removeSink('old')).toBe(3)
  expect(await next.health({ maxLagMs: 60_000 })).toMatchObject({ ok: true })
  for (const table of ['delivery', 'outbox'])
    expect(await server.sql(box.schema, `select * from ob.${table}`)).toEqual([])
  const named = await server.sql(box.schema, `select name from ob.sink union select distinct sink from ob.shard`)
  expect(named).toEqual([{ name: 'kept' }])
  expect(await server.sql(box.schema, 'select action, detail from ob.audit')).toEqual([
    { action: 'remove-sink', detail: JSON.stringify({ sink: 'old', count: 3 }) },
  ])
  await expect(next.admin.removeSink('old')).rejects.toThrow(expect.objectContaining({ code: 'NOT_FOUND' }))
  await server.send(next, { id: 'd', type: 'other' })
  expect(await server.sql(box.schema, 'select sink from ob.delivery')).toEqual([{ sink: '' }])
})

/** As an hour later, for the box and for the database. */
async function anHourLater(schema: string): Promise<void> {
  const now = performance.now.bind(performance)
  vi.spyOn(performance, 'now').mockImplementation(() => now() + 3_600_000)
  onTestFinished(() => void vi.restoreAllMocks())
  await lost(schema)
}

test('a process that only drains says each time that it is still there, so that its sinks are in use', async () => {
  const box = await server.open()
  box.to(recordingSink({ name: 's' }))
  await box.drain()
  await anHourLater(box.schema)
  await box.drain()
  const inUse = expect.objectContaining({ code: 'SINK_IN_USE' })
  await expect(box.admin.removeSink('s')).rejects.toThrow(inUse)
})

test('a sink that was removed between two drains of its process is back with the second one', async () => {
  const box = await server.open()
  const sink = box.to(recordingSink({ name: 's' }))
  await server.send(box, { id: 'a' })
  await box.drain()
  await anHourLater(box.schema)
  expect(await box.admin.removeSink('s')).toBe(0)
  await server.send(box, { id: 'b' })
  await box.drain()
  expect(sink.ids).toEqual(['a', 'b'])
})

test('a heartbeat waits for a shard that is locked, and extends it', async () => {
  const box = await server.open()
  let finish = (): void => {}
  const sink = box.to(recordingSink({ name: 's', fail: () => new Promise<void>((resolve) => (finish = resolve)) }), {
    leaseMs: 900,
  })
  await server.send(box, { id: 'a' })
  const drained = box.drain()
  await waitUntil(() => sink.calls.length === 1)
  const gate = await server.pool.connect()
  await gate.query('begin')
  const { rows } = await gate.query(`select due_at from "${box.schema}".shard where token is not null for update`)
  await waitUntil(async () => {
    const { rows } = await server.pool.query(
      `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
    )
    return rows.length > 0
  })
  await gate.query('commit')
  gate.release()
  await waitUntil(async () => {
    const [row] = await server.sql(box.schema, 'select due_at from ob.shard where token is not null')
    return (row!['due_at'] as Date) > rows[0].due_at
  })
  finish()
  await drained
})

test('a link moves events between schemas whose names have ob. and to_box. in them', async () => {
  const to = await server.open({ schema: `at ob.to_box.${scratchSchemaName('to')}` })
  const handled: string[] = []
  to.consumer('c', { event: ({ id }) => void handled.push(id) })
  await to.migrate()
  const warned: string[] = []
  const logger = { ...SILENT, warn: (_: object, text?: string) => void warned.push(text ?? '') }
  const from = await server.open({ schema: `from to_box.ob.${scratchSchemaName('from')}`, logger })
  from.to(link({ to }))
  await server.send(from, { id: 'a' })
  await from.drain()
  await to.drain()
  expect([handled, warned]).toEqual([['a'], []])
})

test('an archive that fails does not keep published events from being deleted', async () => {
  const box = await server.open({ hooks: { archive: () => Promise.reject(new Error('full')) } })
  box.consumer('c', { event: () => undefined }, { retainMs: 3_600_000 })
  box.to(recordingSink(), { keepMs: 1_000 })
  await box.receive({ id: 'm', type: 'event', data: null })
  await server.send(box, { id: 'a' })
  await box.drain()
  await server.sql(
    box.schema,
    `update ob.message set received_at = now() - interval '1 d'; update ob.outbox set published_at = now() - interval '1 d'`,
  )
  await expect(box.admin.prune()).rejects.toThrow('full')
  expect(await server.sql(box.schema, 'select id from ob.message')).toEqual([{ id: 'm' }])
  expect(await server.sql(box.schema, 'select id from ob.outbox')).toEqual([])
})

test.each(['0000-12-31T23:59:59.999Z', '-000001-01-01T00:00:00Z', '+010000-01-01T00:00:00Z'])(
  'deliverAt %s is refused, the years 1 and 9999 are not',
  async (at) => {
    const box = await server.open()
    const refused = expect.objectContaining({ code: 'MESSAGE_INVALID' })
    await expect(server.send(box, { deliverAt: new Date(at) })).rejects.toThrow(refused)
    await server.send(
      box,
      { deliverAt: new Date('0001-01-01T00:00:00Z') },
      { deliverAt: new Date('9999-12-31T00:00:00Z') },
    )
  },
)
