import { expect, test, vi } from 'vitest'
import { createBox } from 'oncebox'
import { fromPg } from 'oncebox/pg'
import { link } from 'oncebox/link'
import { createTestBox } from 'oncebox/testing'
import { waitUntil } from '../support/wait.js'
import { SILENT, useServer, type PgBox } from '../outbox/fixture.js'

const server = useServer('link')
const elsewhere = useServer('link_elsewhere')

/** Both ways a link can go: moved by a statement, or received. */
const WAYS = ['one database', 'two databases'] as const

async function open(way: (typeof WAYS)[number]) {
  const db = fromPg(server.pool)
  const from = await server.open({ db, source: 'shop' })
  const to =
    way === 'one database' ? await server.open({ db, source: 'billing' }) : await elsewhere.open({ source: 'billing' })
  const host = way === 'one database' ? server : elsewhere
  return { from, to, inbox: (text: string) => host.sql(to.schema, text) }
}

const outbox = (schema: string) => server.sql(schema, 'select n from ob.outbox union all select n from ob.delivery')

test.each(WAYS)('%s: an event arrives as it was sent, and leaves the outbox', async (way) => {
  const { from, to, inbox } = await open(way)
  const seen: unknown[] = []
  to.consumer('c', { placed: (message) => void seen.push(message) })
  from.to(link({ to }))
  const receive = vi.spyOn(to, 'receive')
  const before = Date.now()
  await server.send(from, {
    type: 'placed',
    id: 'o-1',
    key: 'k',
    subject: 's',
    headers: { traceparent: '00-1-2-01', correlationid: 'conv', causationid: 'cause' },
    data: { b: 1, a: [2, 'ü'] },
  })
  await from.drain()
  expect(receive).toHaveBeenCalledTimes(way === 'one database' ? 0 : 1)
  receive.mockRestore()
  await to.drain()
  expect(seen).toMatchObject([
    {
      id: 'o-1',
      source: 'shop',
      type: 'placed',
      key: 'k',
      subject: 's',
      data: { b: 1, a: [2, 'ü'] },
      headers: { traceparent: '00-1-2-01', correlationid: 'conv', causationid: 'cause' },
      correlationId: 'conv',
      causationId: 'cause',
      attempt: 1,
    },
  ])
  const [{ time }] = seen as [{ time: Date }]
  expect(Math.abs(time.getTime() - before)).toBeLessThan(10_000)
  expect(await outbox(from.schema)).toEqual([])
  // A link inside one database brings the sender's fingerprint along.
  expect(await inbox('select body, hash is null unhashed from ob.message')).toEqual([
    { body: '{"b":1,"a":[2,"ü"]}', unhashed: way === 'two databases' },
  ])
  // The same message by the front door is a duplicate: the fingerprints agree.
  const again = { id: 'o-1', source: 'shop', type: 'placed', data: { a: [2, 'ü'], b: 1 } }
  expect(await to.receive(again)).toMatchObject({ status: 'duplicate' })
  expect(await to.receive({ ...again, data: 0 })).toMatchObject({ status: 'quarantined', reason: 'conflict' })
})

test.each(WAYS)('%s: every consumer gets it; what is known, in conflict or unwanted is judged', async (way) => {
  const { from, to, inbox } = await open(way)
  const seen: string[] = []
  to.consumer('one', { placed: ({ id }) => void seen.push(`one ${id}`) })
  to.consumer('two', { placed: ({ id }) => void seen.push(`two ${id}`), other: () => {} })
  from.to(link({ to }))
  await to.receive({ id: 'known', source: 'shop', type: 'placed', data: 1 })
  await to.receive({ id: 'conflict', source: 'shop', type: 'placed', data: 1 })
  await server.send(
    from,
    { type: 'placed', id: 'known', data: 1 },
    { type: 'placed', id: 'conflict', data: 2 },
    { type: 'unwanted', id: 'unwanted', data: 3 },
    { type: 'placed', id: 'new', data: 4 },
  )
  await from.drain()
  await to.drain()
  expect(seen.sort()).toEqual(['one conflict', 'one known', 'one new', 'two conflict', 'two known', 'two new'])
  expect(await outbox(from.schema)).toEqual([])
  expect(await inbox('select consumer, id, reason from ob.quarantine order by consumer, id')).toEqual([
    { consumer: '', id: 'unwanted', reason: 'unrouted' },
    { consumer: 'one', id: 'conflict', reason: 'conflict' },
    { consumer: 'two', id: 'conflict', reason: 'conflict' },
  ])
})

test.each(WAYS)('%s: an event that is too old to be judged is quarantined', async (way) => {
  const { from, to, inbox } = await open(way)
  to.consumer('c', { '*': () => {} }, { retainMs: 60_000 })
  from.to(link({ to }))
  await server.send(from, { id: 'old' }, { id: 'young' })
  await server.sql(from.schema, `update ob.outbox set created_at = now() - interval '1 hour' where id = 'old'`)
  await from.drain()
  expect(await inbox('select id, reason from ob.quarantine')).toEqual([{ id: 'old', reason: 'too-old' }])
  expect(await inbox('select id from ob.work')).toEqual([{ id: 'young' }])
})

test.each(WAYS)('%s: per-key order holds end to end, with several relays and several workers', async (way) => {
  const { from, to, inbox } = await open(way)
  const KEYS = 10
  const COUNT = 1_000
  await inbox('create table ob.ledger (n bigserial primary key, key text not null, data int not null)')
  to.consumer(
    'c',
    {
      '*': async ({ key, data }, { tx }) => {
        await tx.query(`insert into "${to.schema}".ledger (key, data) values ($1, $2)`, [key, data])
      },
    },
    { order: 'key' },
  )
  const others = await Promise.all([1, 2, 3].map(() => server.open({ schema: from.schema, db: fromPg(server.pool) })))
  const relays = [from, ...others]
  // Those on another driver, but on one database: the user vouches for it.
  const sameDatabase = way === 'one database'
  for (const box of relays) box.to(link({ to, sameDatabase }), { batch: 40 })
  await to.start()
  await Promise.all(relays.map((box) => box.start()))
  for (let n = 0; n < COUNT; n += 20) {
    await server.send(from, ...Array.from({ length: 20 }, (_, at) => ({ key: `k${(n + at) % KEYS}`, data: n + at })))
  }
  const count = async () => Number((await inbox('select count(*) from ob.ledger'))[0]!['count'])
  await waitUntil(async () => (await count()) >= COUNT, { timeoutMs: 90_000, everyMs: 100 })
  const rows = await inbox('select key, array_agg(data order by n) numbers from ob.ledger group by key')
  expect(rows.flatMap(({ numbers }) => numbers)).toHaveLength(COUNT)
  for (const { numbers } of rows as { numbers: number[] }[]) {
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b))
  }
})

test.each(WAYS)('%s: published but not recorded, it is published again and handled once', async (way) => {
  const { from, to, inbox } = await open(way)
  let handled = 0
  to.consumer('c', { '*': () => void handled++ })
  const real = link({ to })
  let crash = true
  // The generic way even inside one database: only there is a gap between publishing and recording.
  from.to({
    async publish(batch) {
      const answers = await real.publish(batch)
      if (crash) throw new Error('died before the answer')
      return answers
    },
    close: () => real.close(),
  })
  await server.send(from, { id: 'a' }, { id: 'b' })
  await expect(from.drain()).rejects.toThrow('died')
  crash = false
  await from.drain()
  await to.drain()
  expect(handled).toBe(2)
  expect(await outbox(from.schema)).toEqual([])
  expect(await inbox('select 1 from ob.message')).toHaveLength(2)
})

test('a consumer with its own identity gets what comes over a link inside one database', async () => {
  const { from, to } = await open('one database')
  const seen: string[] = []
  to.consumer(
    'c',
    { '*': ({ id }) => void seen.push(id) },
    { identity: ({ data }) => String((data as { order: number }).order) },
  )
  from.to(link({ to }))
  await server.send(
    from,
    { id: 'a', data: { order: 1 } },
    { id: 'b', data: { order: 1 } },
    { id: 'c', data: { order: 2 } },
  )
  await from.drain()
  await to.drain()
  expect(seen.toSorted()).toEqual(['a', 'c'])
})

test('an event may come back to the box that sent it', async () => {
  const db = fromPg(server.pool)
  const box = await server.open({ db })
  const seen: unknown[] = []
  box.consumer('c', {
    ping: async ({ data }, { send }) => {
      await send('pong', data)
    },
    pong: ({ data, causationId }) => void seen.push([data, causationId]),
  })
  box.to(link({ to: box }))
  await server.send(box, { type: 'ping', id: 'p', data: 1 })
  await box.drain()
  expect(seen).toEqual([[1, 'p']])
})

test('boxes that only claim to share a database are found out, and still linked', async () => {
  const from = await server.open()
  const to = await elsewhere.open()
  let handled = 0
  to.consumer('c', { '*': () => void handled++ })
  from.to(link({ to, sameDatabase: true }))
  await server.send(from, { id: 'a' })
  await from.drain()
  await to.drain()
  expect(handled).toBe(1)
})

test('two boxes in one PGlite are linked', async () => {
  await using to = await createTestBox({ source: 'billing' })
  const from = createBox({ db: to.db, schema: 'shop', logger: SILENT })
  await from.migrate()
  const seen: unknown[] = []
  to.consumer('c', { '*': ({ source, data }) => void seen.push([source, data]) }, { order: 'key' })
  await to.migrate()
  from.to(link({ to }))
  await to.db.transaction(async (tx) => {
    await from.send(tx, 'placed', 1, { key: 'k' })
    await from.send(tx, 'placed', 2, { key: 'k' })
    await from.send(tx, 'placed', 3)
  })
  await from.drain()
  await to.drain()
  expect(seen.toSorted()).toEqual([1, 2, 3].map((n) => ['shop', n]))
  await from.stop()
}, 120_000)

test('events whose headers are large are moved as many as fit into a statement', async () => {
  const { from, to } = await open('one database')
  let handled = 0
  to.consumer('c', { '*': () => void handled++ })
  from.to(link({ to }))
  await server.sql(
    to.schema,
    `create table ob.moved (rows int);
     create function ob.count_moved() returns trigger language plpgsql as
       $$ begin insert into ob.moved select count(*) from new_rows; return null; end $$;
     create trigger count_moved after insert on ob.message referencing new table as new_rows
       for each statement execute function ob.count_moved()`,
  )
  const headers = { note: 'x'.repeat(1 << 20) }
  await server.send(from, ...Array.from({ length: 20 }, () => ({ key: 'k', headers, data: 1 })))
  await from.drain()
  // 8 MiB, and the one that passes them.
  const moved = await server.sql(to.schema, 'select rows from ob.moved where rows > 0')
  expect(moved.map(({ rows }) => Number(rows) <= 9)).toEqual(moved.map(() => true))
  expect(moved.reduce((sum, { rows }) => sum + Number(rows), 0)).toBe(20)
  await to.drain()
  expect(handled).toBe(20)
})

test('what is too much for the statement that moves events is received', async () => {
  const { from, to } = await open('one database')
  const seen: unknown[] = []
  to.consumer('c', { '*': ({ data }) => void seen.push(data) })
  from.to(link({ to }))
  await server.sql(
    to.schema,
    `create function ob.too_much() returns trigger language plpgsql as
       $$ begin
         if current_query() like '%delivery%' then
           raise exception using errcode = '54000', message = 'total size of jsonb array elements exceeds the maximum';
         end if;
         return new;
       end $$;
     create trigger too_much before insert on ob.message for each row execute function ob.too_much()`,
  )
  await server.send(from, { data: 1 }, { data: 2 })
  await from.drain()
  await to.drain()
  expect(seen.toSorted()).toEqual([1, 2])
  expect(await outbox(from.schema)).toEqual([])
})

test('link takes a box, and says so', () => {
  const box = createBox({ db: fromPg(server.pool), logger: SILENT }) as PgBox
  expect(() => link({ to: {} as never })).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
  expect(() => link({ to: box, from: box } as never)).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
})

test.each(WAYS)('%s: an event that was delayed beyond the horizon of its receiver is not too old', async (way) => {
  const { from, to } = await open(way)
  const seen: Date[] = []
  to.consumer('c', { placed: ({ time }) => void seen.push(time!) }, { retainMs: 1_000 })
  from.to(link({ to }))
  const deliverAt = new Date(Date.now() + 1_500)
  await server.send(from, { type: 'placed', id: 'later', deliverAt })
  await from.start()
  await to.start()
  await waitUntil(() => seen.length > 0)
  expect(seen).toEqual([deliverAt])
})

test.each(WAYS)('%s: an event whose copy is being handled on arrival does not hold up the others', async (way) => {
  const { from, to } = await open(way)
  let finish = (): void => {}
  const held = new Promise<void>((resolve) => (finish = resolve))
  let begun = false
  const seen: string[] = []
  to.consumer('c', {
    async placed({ id }) {
      if (id === 'held' && !begun) {
        begun = true
        await held
      }
      seen.push(id)
    },
  })
  from.to(link({ to }), { retry: { baseMs: 50 } })
  const handling = to.handle({ id: 'held', source: 'shop', type: 'placed', data: null })
  await waitUntil(() => begun)
  await server.send(from, { type: 'placed', id: 'held', data: null }, { type: 'placed', id: 'free', data: null })
  await from.start()
  await to.start()
  await waitUntil(() => seen.includes('free'))
  finish()
  expect(await handling).toMatchObject({ status: 'handled' })
  await waitUntil(async () => (await outbox(from.schema)).length === 0)
  expect(seen).toEqual(['free', 'held'])
})
