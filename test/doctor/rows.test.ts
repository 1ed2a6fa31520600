/** Boxes are made ill in their rows, and the doctor names it; what it says mends it does. */
import { runInNewContext } from 'node:vm'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Reject, type Deliver } from 'oncebox'
import { gate } from '../inbox/fixture.js'
import { waitUntil } from '../support/wait.js'
import { codes, finding, openWard, type Ward, type WardBox } from './ward.js'

let ward: Ward
beforeAll(async () => {
  ward = await openWard('doctor_rows')
})
afterAll(() => ward.close())

const message = (id: string, more: object = {}) => ({ id, type: 't', data: { id }, ...more })
const later = (box: WardBox, table: string, column: string, span: string) =>
  ward.sql(box, `update ob.${table} set ${column} = ${column} - interval '${span}'`)
/** Runs a call of a fix as somebody does who copies it into a program. */
const call = (box: WardBox, fix: string): Promise<void> =>
  runInNewContext(`async (box) => {\n${fix}\n}`, {})(box) as Promise<void>
const mend = (fix: string) => ward.pool.query(fix.replace(/;? +--.*$/, ''))

async function send(box: WardBox, type: string, id: string): Promise<void> {
  const client = await ward.pool.connect()
  try {
    await client.query('begin')
    await box.send(client, type, 1, { id })
    await client.query('commit')
  } finally {
    client.release()
  }
}

test('a healthy box that is busy has no finding', async () => {
  const box = await ward.admit()
  const published: string[] = []
  box.consumer('loose', { t: () => undefined })
  box.consumer('ordered', { t: () => undefined }, { order: 'key' })
  box.to(
    { name: 'broker', publish: async (batch) => batch.map(({ id }) => void published.push(id)), close: async () => {} },
    { keepMs: 60_000 },
  )
  await box.start()
  for (let n = 0; n < 20; n++) {
    await box.receive(Array.from({ length: 20 }, (_, i) => message(`m${n}-${i}`, { key: `k${i % 5}` })))
    await send(box, 'event', `e${n}`)
    if (n % 5 === 0) expect(await box.admin.doctor()).toEqual([])
  }
  await waitUntil(
    async () => {
      const { loose, ordered } = (await box.admin.status()).consumers
      return loose!.handled === 400 && ordered!.handled === 400 && published.length >= 20
    },
    { what: 'all to be handled' },
  )
  expect(await box.admin.doctor()).toEqual([])
  await box.stop()
  expect(await box.admin.doctor()).toEqual([])
})

test('a consumer that nothing runs is named, registered or not', async () => {
  const box = await ward.admit()
  box.consumer('idle', { t: () => undefined })
  await box.receive(message('1'))
  expect(await codes(box)).toEqual([])
  await later(box, 'work', 'due_at', '10 minutes')
  const found = await finding(box, 'consumer-unattended')
  expect(found).toMatchObject({ severity: 'serious', figures: { consumer: 'idle', due: 1, declared: 'true' } })
  expect(found.fix).toContain(`box.consumer('idle', …)`)
  await ward.sql(box, `update ob.work set consumer = 'gone'; update ob.message set consumer = 'gone'`)
  expect(await finding(box, 'consumer-unattended')).toMatchObject({ figures: { consumer: 'gone', declared: 'false' } })
  await box.admin.discard({ consumer: 'gone', state: 'pending' }, { reason: 'the consumer is gone' })
  expect(await codes(box)).toEqual([])
})

test('a consumer that a process runs is not said to be unattended, whether it holds messages at this moment or not', async () => {
  const box = await ward.admit()
  box.consumer('busy', { t: () => undefined })
  await box.receive(message('1'))
  await later(box, 'work', 'due_at', '10 minutes')
  await ward.sql(box, `insert into ob.consumer_process (consumer, process, host) values ('busy', gen_random_uuid(), 'here')`)
  expect(await codes(box)).not.toContain('consumer-unattended')
  for (const gone of ['stopped = true', `stopped = false, seen_at = now() - interval '2 minutes'`]) {
    await ward.sql(box, `update ob.consumer_process set ${gone}`)
    const { fix } = await finding(box, 'consumer-unattended')
    expect(fix).toMatch(/^start a process/)
    expect(fix).not.toContain('discard')
  }
}) // prettier-ignore

test('a consumer at work that is far behind is named, and not as one that nothing runs', async () => {
  const box = await ward.admit()
  const held = gate()
  box.consumer('slow', { t: () => held.opened }, { concurrency: 1, group: { messages: 1 } })
  await box.receive([message('1'), message('2')])
  await box.start()
  await waitUntil(async () => (await box.admin.status()).consumers['slow']!.processing > 0, { what: 'a claim' })
  await box.receive(message('3'))
  await ward.sql(box, `update ob.work set due_at = due_at - interval '1 hour' where token is null`)
  const found = await box.admin.doctor()
  expect(found).toMatchObject([{ code: 'consumer-behind', severity: 'warning', figures: { consumer: 'slow' } }])
  held.open()
  await box.stop()
})

test('a paused consumer whose messages wait is named until it is resumed', async () => {
  const box = await ward.admit()
  box.consumer('quiet', { t: () => undefined })
  await box.admin.pause('quiet')
  await box.receive([message('1'), message('2')])
  await later(box, 'work', 'due_at', '10 minutes')
  expect(await box.admin.doctor()).toMatchObject([
    { code: 'consumer-paused', figures: { due: 2, arrivedInFiveMinutes: 2 }, fix: `await box.admin.resume('quiet')` },
  ])
})

test('leases that nobody took over are named', async () => {
  const box = await ward.admit()
  box.consumer('crashed', { t: () => undefined })
  await box.receive(message('1'))
  await ward.sql(box, `update ob.work set token = gen_random_uuid(), due_at = now() - interval '1 hour'`)
  expect(await finding(box, 'leases-expired')).toMatchObject({ figures: { consumer: 'crashed', expired: 1 } })
  await box.drain()
  expect(await codes(box)).toEqual([])
})

test('work that is never due, has no message or no lane is named, and mended by what the doctor says', async () => {
  const box = await ward.admit()
  box.consumer('a', { t: () => undefined })
  box.consumer('k', { t: () => undefined }, { order: 'key' })
  await box.receive([message('1', { key: 'x' }), message('2', { key: 'y' }), message('3', { key: 'z' })])
  await ward.sql(box, `update ob.work set due_at = 'infinity' where consumer = 'a' and id = '1';
    delete from ob.message where id = '2'; delete from ob.lane where key = 'x'; update ob.lane set due_at = 'infinity' where key = 'z'`)
  const never = await finding(box, 'work-never-due')
  const orphaned = await finding(box, 'work-orphaned')
  const asleep = await finding(box, 'keys-asleep')
  expect([never.figures, orphaned.figures, asleep.figures]).toMatchObject([{ messages: 1 }, { orphans: 2 }, { keys: 2 }])
  for (const { fix } of [never, orphaned, asleep]) await mend(fix)
  expect(await codes(box)).toEqual([])
  await box.drain()
  expect(await ward.sql(box, 'select 1 from ob.work')).toEqual([])
}) // prettier-ignore

test('what retention should have deleted long ago is named', async () => {
  const box = await ward.admit()
  box.consumer('old', { t: () => undefined }, { retainMs: 3_600_000 })
  await box.handle(message('1'))
  await later(box, 'message', 'received_at', '3 days')
  await later(box, 'handled', 'at', '3 days')
  expect(await box.admin.doctor()).toMatchObject([
    { code: 'retention-behind', figures: { consumer: 'old', retainMs: 3_600_000 }, fix: 'await box.admin.prune()' },
  ])
  expect(await box.admin.prune()).toBe(1)
  expect(await codes(box)).toEqual([])
})

test('a watermark that a clock left in the future is named, and what it says mends it', async () => {
  const box = await ward.admit()
  box.consumer("ob.it's", { t: () => undefined }, { retainMs: 3_600_000 })
  await box.migrate()
  await ward.sql(box, `update ob.forgotten set sent_before = now() + interval '3 days'`)
  const late = (id: string) => message(id, { time: new Date() })
  expect(await box.handle(late('1'))).toMatchObject({ reason: 'too-old' })
  const found = await finding(box, 'watermark-ahead')
  expect(found).toMatchObject({ severity: 'serious', figures: { consumer: "ob.it's" } })
  expect(found.figures['aheadMs']).toBeGreaterThan(2 * 86_400_000)
  await mend(found.fix)
  expect(await codes(box)).not.toContain('watermark-ahead')
  expect(await box.handle(late('2'))).toMatchObject({ status: 'handled' })
})

test('a message that was received by a clock that was behind is not said to be kept for too long', async () => {
  const box = await ward.admit()
  box.consumer('old', { t: () => undefined }, { retainMs: 3_600_000 })
  await box.handle(message('1', { time: new Date() }))
  await later(box, 'message', 'received_at', '3 days')
  await later(box, 'handled', 'at', '3 days')
  expect(await box.admin.prune()).toBe(0)
  expect(await codes(box)).toEqual([])
})

test('dead letters are a note while they are young, and a warning by their age', async () => {
  const box = await ward.admit()
  box.consumer('d', { t: () => Promise.reject(new Reject('no')) })
  await box.receive([message('1'), message('2')])
  await box.drain()
  expect(await box.admin.doctor()).toMatchObject([{ code: 'dead-letters', severity: 'note', figures: { dead: 2, olderThanDay: 0 } }]) // prettier-ignore
  await ward.sql(box, `update ob.message set received_at = received_at - interval '8 days' where id = '1'`)
  expect(await box.admin.doctor()).toMatchObject([
    { code: 'dead-letters', severity: 'warning', figures: { dead: 2, olderThanDay: 1, olderThanWeek: 1 } },
  ])
})

test('keys that a dead message blocks are named, with what waits behind it', async () => {
  const box = await ward.admit()
  box.consumer('b', { t: () => Promise.reject(new Reject('no')) }, { order: 'key' })
  await box.receive(Array.from({ length: 4 }, (_, n) => message(`${n}`, { key: 'same' })))
  await box.drain()
  expect(await finding(box, 'keys-blocked')).toMatchObject({ severity: 'serious', figures: { consumer: 'b', keys: 1, waiting: 3 } }) // prettier-ignore
  await box.admin.discard({ consumer: 'b', state: 'dead' }, { reason: 'looked at' })
  expect(await codes(box)).not.toContain('keys-blocked')
})

test('effects that wait for an answer are named', async () => {
  const box = await ward.admit()
  const handler = async (_: unknown, { effect }: { effect: (name: string, run: () => never, options: object) => Promise<unknown> }) => {
    await effect('charge', () => { throw new Error('nobody knows') }, { onUnknown: 'park' })
  } // prettier-ignore
  box.consumer('e', { t: handler })
  await box.receive(message('1'))
  await box.drain()
  expect(await box.admin.doctor()).toMatchObject([{ code: 'effects-unanswered', severity: 'note', figures: { messages: 1 } }]) // prettier-ignore
})

test('a key that an effect without an outcome blocks is mended by an answer', async () => {
  const box = await ward.admit()
  const handler = async (_: unknown, { effect }: { effect: (name: string, run: () => never, options: object) => Promise<unknown> }) => {
    await effect('charge', () => { throw new Error('nobody knows') }, { onUnknown: 'park' })
  } // prettier-ignore
  box.consumer('e', { t: handler }, { order: 'key' })
  await box.receive([message('1', { key: 'k' }), message('2', { key: 'k' })])
  await box.drain()
  const { fix } = await finding(box, 'keys-blocked')
  expect(fix).toContain('box.admin.answer')
  expect(fix).not.toContain('retry')
})

test('an old dead letter that was handled just now is not said to be kept for too long', async () => {
  const box = await ward.admit()
  let isFit = false
  box.consumer('d', { t: () => { if (!isFit) throw new Reject('no') } }) // prettier-ignore
  await box.receive(message('1'))
  await box.drain()
  await later(box, 'message', 'received_at', '90 days')
  isFit = true
  await box.admin.retry({ consumer: 'd', state: 'dead' })
  await box.drain()
  expect(await codes(box)).toEqual([])
  await later(box, 'handled', 'at', '2 hours')
  expect(await codes(box)).toEqual(['retention-behind'])
})

test('events of a box that never had a sink are noted, and of one that has one warned of', async () => {
  const box = await ward.admit()
  await send(box, 'event', 'e1')
  await box.drain()
  await later(box, 'outbox', 'created_at', '20 days')
  await later(box, 'delivery', 'due_at', '20 days')
  expect(await finding(box, 'events-unwanted')).toMatchObject({ severity: 'note', figures: { events: 1 } })
  await ward.sql(box, 'update ob.delivery set waiting = true')
  expect(await finding(box, 'events-unwanted')).toMatchObject({ severity: 'note', figures: { events: 1 } })
  await ward.sql(box, `insert into ob.sink (name) values ('broker')`)
  expect(await codes(box)).toEqual(['events-unwanted'])
  expect(await finding(box, 'events-unwanted')).toMatchObject({ severity: 'warning' })
})

test('what failed on arrival and was never delivered again is named', async () => {
  const box = await ward.admit()
  box.consumer('f', { t: () => Promise.reject(new Error('not now')) }, { mode: 'inline' })
  await box.handle(message('1'))
  expect(await codes(box)).toEqual([])
  await later(box, 'message', 'received_at', '2 days')
  expect(await finding(box, 'failed-not-redelivered')).toMatchObject({ figures: { consumer: 'f', messages: 1 } })
})

test('a sink that nobody attaches any more is named, then removed', async () => {
  const box = await ward.admit()
  await ward.sql(box, `insert into ob.sink (name) values ('old')`)
  await send(box, 'event', 'e1')
  await later(box, 'delivery', 'due_at', '1 hour')
  expect(await box.admin.doctor()).toMatchObject([{ code: 'sink-unattended', severity: 'serious', figures: { sink: 'old', due: 1 } }]) // prettier-ignore
  await box.admin.removeSink('old')
  expect(await codes(box, { lagMs: 3_600_000 })).toEqual([])
})

test('an outbox that does not drain though its sink is attached is named, and so are leases of a relay that died', async () => {
  const box = await ward.admit()
  await ward.sql(box, `insert into ob.sink (name) values ('broker'); insert into ob.shard (sink, shard) select 'broker', generate_series(0, 31);
    insert into ob.sink_declaration (sink, process, host) values ('broker', gen_random_uuid(), 'here')`)
  await send(box, 'event', 'e1')
  await later(box, 'delivery', 'due_at', '1 hour')
  expect(await codes(box)).toEqual(['outbox-not-draining'])
  await ward.sql(box, `update ob.shard set token = gen_random_uuid(), due_at = now() - interval '1 hour' where shard < 3`)
  expect(await finding(box, 'relay-leases-expired')).toMatchObject({ figures: { sink: 'broker', expired: 3 } })
}) // prettier-ignore

test('events that were given up are named, and events that no sink wants', async () => {
  const box = await ward.admit()
  const refused = { error: new Error('no'), retry: false }
  box.to({ name: 'broker', publish: async (batch) => batch.map(() => refused) as never, close: async () => {} }, { types: ['bad'], retry: { attempts: 1 } }) // prettier-ignore
  await box.migrate()
  await send(box, 'bad', 'e1')
  await send(box, 'lonely', 'e2')
  await box.drain()
  expect(await finding(box, 'events-dead')).toMatchObject({ severity: 'note', figures: { sink: 'broker', dead: 1 } })
  expect(await codes(box)).not.toContain('events-unwanted')
  await later(box, 'outbox', 'created_at', '2 days')
  await later(box, 'delivery', 'due_at', '1 day')
  const dead = await finding(box, 'events-dead')
  expect(dead).toMatchObject({
    severity: 'warning',
    what: '1 event for sink broker is dead, the first for 1 d, the oldest sent 2 d ago',
  })
  expect(dead.figures).toMatchObject({ deadForMs: expect.any(Number) })
  expect(await finding(box, 'events-unwanted')).toMatchObject({ figures: { events: 1 } })
})

test('what is in quarantine is named by its reason', async () => {
  const box = await ward.admit()
  box.consumer('q', { t: () => undefined })
  await box.handle(message('1'))
  await box.handle(message('1', { data: 'other' }))
  expect(await box.admin.doctor()).toMatchObject([
    { code: 'messages-quarantined', severity: 'note', figures: { consumer: 'q', reason: 'conflict', messages: 1 } },
  ])
  await later(box, 'quarantine', 'received_at', '2 days')
  expect(await finding(box, 'messages-quarantined')).toMatchObject({ severity: 'warning' })
})

test('a source whose part of the quarantine fills up is named', async () => {
  const box = await ward.admit()
  box.consumer('q', { t: () => undefined })
  let deliver: Deliver | undefined
  const source = { name: 'partner', push: true, start: async (given: Deliver) => void (deliver = given), stop: async () => {} } as const // prettier-ignore
  box.from(source, { types: ['t'], quarantine: { maxRows: 5 } })
  await waitUntil(() => deliver !== undefined, { what: 'the source' })
  await deliver!(Array.from({ length: 4 }, (_, n) => ({ id: `x${n}`, type: 'other', data: n })))
  expect(await finding(box, 'quarantine-full')).toMatchObject({ severity: 'warning', figures: { source: 'partner', messages: 4 } }) // prettier-ignore
  await deliver!([{ id: 'x5', type: 'other', data: 5 }])
  const full = await finding(box, 'quarantine-full')
  expect(full).toMatchObject({ severity: 'serious' })
  await call(box, full.fix)
  expect(await codes(box)).toEqual([])
})

test('what makes room in a full quarantine finds messages by the producers that they name', async () => {
  const box = await ward.admit()
  box.consumer('q', { t: () => undefined })
  let deliver: Deliver | undefined
  const source = { name: 'webhook:partner', push: true, start: async (given: Deliver) => void (deliver = given), stop: async () => {} } as const // prettier-ignore
  box.from(source, { types: ['t'], quarantine: { maxRows: 5 } })
  await waitUntil(() => deliver !== undefined, { what: 'the source' })
  const from = (name: string | undefined, id: string) => ({
    id,
    type: 'other',
    data: id,
    ...(name && { source: name }),
  })
  await deliver!([
    from("o'brien", '1'),
    from("o'brien", '2'),
    from(undefined, '3'),
    from('shop', '4'),
    from('shop', '5'),
  ])
  const { fix, figures } = await finding(box, 'quarantine-full')
  expect(figures).toMatchObject({ source: 'webhook:partner', messages: 5 })
  expect(JSON.parse(figures['producers'] as string)).toHaveLength(3)
  await call(box, fix)
  expect(await codes(box)).toEqual([])
})

test('messages that come later than their consumer remembers are named, with their age and its horizon', async () => {
  const box = await ward.admit()
  box.consumer('h', { t: () => undefined }, { retainMs: 3_600_000 })
  await box.handle(message('1', { time: new Date(Date.now() - 7_000_000) }))
  const found = await finding(box, 'horizon-short')
  expect(found).toMatchObject({ figures: { consumer: 'h', messages: 1, retainMs: 3_600_000 } })
  expect(found.figures['oldestMs']).toBeGreaterThan(6_900_000)
  expect(found.fix).toContain('retainMs: 10800000')
})
