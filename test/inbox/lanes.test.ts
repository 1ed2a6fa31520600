/** Lanes: how many are claimed, how far they are read, and what a settlement may touch. */
import { fromPg } from 'oncebox/pg'
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { LaneDepth } from '../../src/inbox/lanes.js'
import { bindDatabase } from '../../src/postgres/database.js'
import { sqlState } from '../../src/postgres/errors.js'
import { CLAIM_LANES, READ_LANES, SETTLE_LANES } from '../../src/postgres/sql/lanes.js'
import { OPEN } from '../../src/postgres/sql/settle.js'
import { waitUntil } from '../support/wait.js'
import { type Bench, note, useServer } from './fixture.js'

const server = useServer('lanes')

async function openKeyed(messages = 100): Promise<Bench> {
  const box = await server.open()
  box.consumer('a', { note: (message, { tx }) => box.write(tx, 'a', message) }, { order: 'key', group: { messages } })
  await box.migrate()
  return box
}

const keyed = (key: string, count: number) =>
  Array.from({ length: count }, (_, at) => note(`${key}${at + 1}`, { key, source: 's' }))

test.each([
  { depth: 2, bytes: 1e6, read: ['k1', 'k2', 'l1'], more: ['k2'], full: false },
  { depth: 3, bytes: 1e6, read: ['k1', 'k2', 'k3', 'l1'], more: [], full: false },
  { depth: 3, bytes: 1, read: ['k1'], more: [], full: true },
])('a lane has more only if another message is behind what was read: $depth', async (want) => {
  await using box = await openKeyed()
  await box.receive([...keyed('k', 3), ...keyed('l', 1)])
  const db = bindDatabase(fromPg(server.pool), box.schema)
  const { depth, bytes } = want
  const rows = await db.run(READ_LANES, { consumer: 'a', lanes: ['k', 'l'], depth, bytes })
  expect(rows.map(({ id }) => id)).toEqual(want.read)
  const last = rows.filter(({ lane }, at) => rows[at + 1]?.lane !== lane)
  if (!want.full) expect(last.filter(({ more }) => more === 'true').map(({ id }) => id)).toEqual(want.more)
  expect(rows[0]!.full).toBe(String(want.full))
})

test('a settlement of a message whose lane is not among those given is refused', async () => {
  await using box = await openKeyed()
  await box.receive([...keyed('k', 1), ...keyed('l', 1)])
  const db = bindDatabase(fromPg(server.pool), box.schema)
  const who = { consumer: 'a', token: randomUUID() }
  const due = { limit: 1, leaseMs: 60_000, low: undefined, until: undefined, calm: false }
  expect(await db.run(CLAIM_LANES, { ...who, ...due })).toHaveLength(1)
  const [mine] = (await box.sql(`select key from ob.lane where token is not null`)).map(({ key }) => key as string)
  const settle = (done: string) =>
    db.transaction(async (tx) => {
      const [row] = await db.run(OPEN, { lockTimeout: null, idleMs: 60_000 }, tx)
      const [xid, guard] = row!.opened.split(' ') as [string, string]
      const lists = { done: [['s', done, null] as const], release: [[mine!, false] as const], keep: [] }
      await db.run(SETTLE_LANES, { ...who, xid, guard, ...lists }, tx)
    })
  const refused = await settle(mine === 'k' ? 'l1' : 'k1').catch((error: unknown) => error)
  expect(sqlState(refused)).toBe('OB001')
  await settle(`${mine!}1`)
  expect(await box.sql(`select id from ob.work`)).toEqual([{ id: mine === 'k' ? 'l1' : 'k1' }])
})

test('a lane that was read to its end is not claimed again', async () => {
  await using box = await openKeyed(1)
  await box.sql(`create table ob.test_claims (key text)`)
  await box.sql(`create function ob.test_note_claim() returns trigger language plpgsql as $$
    begin insert into ob.test_claims values (new.key); return null; end $$`)
  await box.sql(`create trigger test_note_claim after update on ob.lane for each row
    when (old.token is null and new.token is not null) execute function ob.test_note_claim()`)
  // As many as a claim for groups of one reads, and no more.
  await box.receive(keyed('k', 2))
  await box.drain()
  expect(await box.ids()).toEqual(['k1', 'k2'])
  expect(await box.sql(`select key from ob.test_claims`)).toEqual([{ key: 'k' }])
})

test('a claim from a hint on leaves out what had fallen due before, and says when the first one had', async () => {
  await using box = await openKeyed()
  await box.receive([...keyed('k', 1), ...keyed('l', 1)])
  await box.sql(`update ob.lane set due_at = case key when 'k' then '2025-01-01T00:00:00Z'::timestamptz
    else '2025-01-02T00:00:00Z' end`)
  const db = bindDatabase(fromPg(server.pool), box.schema)
  const claim = (low: string | undefined) =>
    db.run(CLAIM_LANES, {
      ...{ consumer: 'a', token: randomUUID(), limit: 10, leaseMs: 60_000, until: undefined, calm: false },
      low,
    })
  /** With how long it took, and for how many. */
  const since = (day: string): unknown => expect.stringMatching(new RegExp(`^${Date.parse(day)} \\d+ 1$`))
  expect(await claim('2025-01-01T12:00:00Z')).toEqual([{ key: 'l', suspect: 'false', look: since('2025-01-02') }])
  expect(await claim('2025-01-01T12:00:00Z')).toEqual([])
  expect(await claim(undefined)).toEqual([{ key: 'k', suspect: 'false', look: since('2025-01-01') }])
})

test('a lane that falls due before the hint is found by a later look', async () => {
  await using box = await openKeyed()
  await box.start()
  await box.receive(keyed('k', 1))
  await waitUntil(async () => (await box.ids()).length === 1, { what: 'the first message' })
  await box.sql(`update ob.lane set due_at = 'infinity'`)
  await box.receive(keyed('l', 1))
  // Its commit is late by an hour.
  await box.sql(`update ob.lane set due_at = ob.now() - interval '1 hour' where key = 'l' and token is null`)
  await waitUntil(async () => (await box.ids()).length === 2, { what: 'the late one' })
})

test('deep lanes are claimed few at a time, shallow ones many', () => {
  const depth = new LaneDepth({ together: false })
  expect(depth.lanesFor(200)).toBe(100)
  depth.found(100, 200, 80)
  expect(depth.lanesFor(200)).toBe(50)
  for (let at = 0; at < 10; at++) depth.found(50, 200, 50)
  expect(depth.lanesFor(200)).toBe(13)
  depth.found(13, 130, 0)
  expect(depth.lanesFor(200)).toBe(20)
  // One hot key among many that are not.
  depth.found(20, 29, 1)
  expect(depth.lanesFor(200)).toBe(100)
  expect(depth.lanesFor(2)).toBe(1)
})

test('where handlers run side by side, deep lanes are claimed as many as others', () => {
  const depth = new LaneDepth({ together: true })
  depth.found(100, 200, 100)
  expect(depth.lanesFor(200)).toBe(100)
})
