import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Reject } from 'oncebox'
import { open, type Opened } from './open.js'

let opened: Opened
beforeAll(async () => {
  opened = await open('admin_discard')
})
afterAll(() => opened.close())

let box: ReturnType<Opened['box']>
let ran: string[]
beforeEach(() => {
  box = opened.box({ maxBytes: 1_000 })
  ran = []
})

const reason = 'sent by mistake'
const handler = (message: { id: string; data: unknown }) => {
  ran.push(message.id)
  if (message.data === 'broken') throw new Reject('broken')
}
const message = (n: number | string, more: object = {}) => ({
  id: `m${n}`,
  type: 't',
  source: 's',
  data: 'fine',
  ...more,
})
const broken = (n: number | string, more: object = {}) => message(n, { data: 'broken', ...more })
const counts = async (consumer = 'c') => (await box.admin.status()).consumers[consumer]!

describe('discarding', () => {
  beforeEach(async () => {
    box.consumer('c', { t: handler })
    await box.migrate()
    await box.receive([broken(1), broken(2), message(3), message(4, { data: 'x'.repeat(2_000) })])
    await box.drain()
    await box.receive([message(5), message(6)])
  })

  test('takes what is dead or quarantined, and nothing else', async () => {
    expect(await box.admin.discard('all', { reason })).toBe(3)
    expect(await counts()).toMatchObject({ discarded: 2, dead: 0, pending: 2, handled: 1 })
    expect((await box.admin.status()).consumers['']).toMatchObject({ discarded: 1, quarantined: 0 })
    expect(await box.admin.discard('all', { reason })).toBe(0)
  })

  test('takes what is pending when it is told to', async () => {
    expect(await box.admin.discard({ state: 'pending', id: 'm5' }, { reason })).toBe(1)
    ran = []
    await box.drain()
    expect(ran).toEqual(['m6'])
    expect(await counts()).toMatchObject({ discarded: 1, pending: 0 })
  })

  test('never touches what is handled', async () => {
    expect(await box.admin.discard({ id: 'm3' }, { reason })).toBe(0)
    expect(await box.admin.discard({ state: 'handled' }, { reason })).toBe(0)
    expect(await counts()).toMatchObject({ handled: 1, discarded: 0 })
  })

  test('counts in a dry run and obeys the limit', async () => {
    expect(await box.admin.discard('all', { reason, dryRun: true })).toBe(3)
    expect(await counts()).toMatchObject({ discarded: 0 })
    expect(await box.admin.discard({ state: 'dead' }, { reason, limit: 1 })).toBe(1)
    expect((await box.admin.message({ id: 'm1' }))[0]).toMatchObject({
      state: 'discarded',
      error: { message: 'broken' },
    })
    expect((await box.admin.message({ id: 'm2' }))[0]).toMatchObject({ state: 'dead' })
  })

  test('leaves a note with the reason', async () => {
    await box.admin.discard({ state: 'dead' }, { reason })
    const [note] = await opened.sql(box.schema, 'select action, detail from ob.audit')
    expect(note!['action']).toBe('discard')
    expect(JSON.parse(note!['detail'] as string)).toEqual({ filter: { state: 'dead' }, count: 2, reason })
    await box.admin.discard({ reason: 'too-large' }, { reason })
    expect(await opened.sql(box.schema, 'select discarded from ob.quarantine')).toEqual([{ discarded: reason }])
  })

  test('makes a redelivery a duplicate', async () => {
    await box.admin.discard('all', { reason })
    expect(await box.receive(broken(1))).toMatchObject({ status: 'duplicate', ack: true })
  })
})

test('a message that a worker holds is not discarded, and one whose worker died is', async () => {
  let release = (): void => undefined
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  box.consumer('c', { t: () => held }, { leaseMs: 60_000 })
  await box.migrate()
  await box.receive(message(1))
  await box.start()
  await expect.poll(async () => (await counts()).processing).toBe(1)
  expect(await box.admin.discard({ state: ['pending', 'processing', 'dead'] }, { reason })).toBe(0)
  expect((await box.admin.messages({ state: 'processing' })).entries).toHaveLength(1)

  // The lease runs out while the handler still runs: whoever settles late has lost the message.
  await opened.sql(box.schema, `update ob.work set due_at = ob.now() - interval '1 hour'`)
  await opened.sql(box.schema, `update ob.consumer set paused = true`)
  expect(await box.admin.discard({ id: 'm1', state: 'pending' }, { reason })).toBe(1)
  release()
  await box.stop()
  expect(await counts()).toMatchObject({ discarded: 1, handled: 0, pending: 0 })
})

test('an inline failure that waits for its source counts as pending and can be discarded', async () => {
  box.consumer('c', { t: () => Promise.reject(new Error('no')) }, { mode: 'inline' })
  await box.migrate()
  expect(await box.handle(message(1))).toMatchObject({ status: 'failed', ack: false })
  expect(await counts()).toMatchObject({ pending: 1 })
  expect((await box.admin.messages({ state: 'pending' })).entries).toMatchObject([
    { state: 'pending', error: { message: 'no' } },
  ])
  expect(await box.admin.discard('all', { reason })).toBe(0)
  expect(await box.admin.discard({ state: 'pending' }, { reason })).toBe(1)
  expect(await counts()).toMatchObject({ pending: 0, discarded: 1 })
})

describe('in a lane', () => {
  beforeEach(async () => {
    box.consumer('c', { t: handler }, { order: 'key', group: { messages: 1 } })
    await box.migrate()
  })

  test('discarding the dead message that blocks lets the rest run, in order', async () => {
    await box.receive([
      message(1, { key: 'k' }),
      broken(2, { key: 'k' }),
      message(3, { key: 'k' }),
      message(4, { key: 'k' }),
    ])
    await box.drain()
    expect(ran).toEqual(['m1', 'm2'])
    expect(await counts()).toMatchObject({ pending: 2, dead: 1, handled: 1 })
    expect(await box.admin.discard({ state: 'dead' }, { reason })).toBe(1)
    await box.drain()
    expect(ran).toEqual(['m1', 'm2', 'm3', 'm4'])
  })

  test('discarding a message that waits behind a dead one leaves the lane blocked', async () => {
    await box.receive([broken(1, { key: 'k' }), message(2, { key: 'k' }), message(3, { key: 'k' })])
    await box.drain()
    expect(await box.admin.discard({ id: 'm2', state: 'pending' }, { reason })).toBe(1)
    await box.drain()
    expect(ran).toEqual(['m1'])
    await box.admin.discard({ id: 'm1' }, { reason })
    await box.drain()
    expect(ran).toEqual(['m1', 'm3'])
  })

  test('a lease on a lane protects its messages, until it runs out; then its late worker cannot settle', async () => {
    await box.receive([message(1, { key: 'k' }), message(2, { key: 'k' })])
    const token = '00000000-0000-4000-8000-000000000000'
    const lease = (due: string) =>
      opened.sql(box.schema, `update ob.lane set token = '${token}', due_at = ob.now() + interval '${due}'`)
    await lease('1 hour')
    expect(await counts()).toMatchObject({ processing: 2, pending: 0 })
    expect(await box.admin.discard({ state: ['pending', 'processing'] }, { reason })).toBe(0)
    await lease('-1 hour')
    expect(await box.admin.discard({ state: 'pending', id: 'm1' }, { reason })).toBe(1)
    const [lane] = await opened.sql(box.schema, 'select token from ob.lane')
    expect(lane!['token']).not.toBe(token)
    expect(lane!['token']).not.toBeNull()
    await box.drain()
    expect(ran).toEqual(['m2'])
  })
})

test('many are discarded in batches, with others at work on the same rows', async () => {
  box.consumer('c', { t: handler })
  await box.migrate()
  await opened.sql(
    box.schema,
    `with m as (insert into ob.message (consumer, source, id, type, body)
       select 'c', 's', 'm' || n, 't', '"fine"' from generate_series(1, 3000) n returning id)
     insert into ob.work (consumer, source, id, due_at, parked) select 'c', 's', id, 'infinity', 'dead' from m`,
  )
  const [discarded, retried, discardedToo] = await Promise.all([
    box.admin.discard({ state: 'dead' }, { reason }),
    box.admin.retry({ state: 'dead' }),
    box.admin.discard({ state: 'dead' }, { reason }),
  ])
  expect(discarded + retried + discardedToo).toBe(3_000)
  expect(await counts()).toMatchObject({ dead: 0, pending: retried, discarded: discarded + discardedToo })
})
